"""Objectives and options that are wrong are refused with the place; sound ones are not."""

import matplotlib as mpl
import numpy as np
import pytest
from custom_objectives import HOOKS, Half, Logits, Scaled, Squares, assert_same, numbers, signs, warned_of

from pauca import Path, select
from pauca.methods import Forward

mpl.use("Agg")


def broken(**methods):
    return type("Broken", (Half,), methods)()


def off_in_3(self, w):
    return (w - np.arange(6)) * np.where(np.arange(6) == 3, 1.3, 1)


def off_away_from_zero(self, w):
    return w - np.arange(6) + 0.2 * w * (np.arange(6) == 3)


def in_place(self, w):
    w -= np.arange(6)
    return w


def dip(self, w):
    return 0.5 * np.sum((w - np.arange(6)) ** 2) - 3 * np.exp(-4 * (w[2] - 0.7) ** 2)


def slope_of_dip(self, w):
    return w - np.arange(6) + (np.arange(6) == 2) * 24 * (w[2] - 0.7) * np.exp(-4 * (w[2] - 0.7) ** 2)


def fails(self, w):
    raise RuntimeError("no data")


BROKEN = {
    r"gradient is -3.9 in coordinate 3 at the start, where value rises by -3 per unit; they must agree": {
        "gradient": off_in_3
    },
    r"gradient is .* in coordinate 3 at w\[.*, where value rises by .* per unit": {"gradient": off_away_from_zero},
    r"value is not convex along coordinate 2: ": {"value": dip, "gradient": slope_of_dip},
    r"value is nan at the start; give a start where it is finite": {"value": lambda self, w: np.nan},
    r"value is inf at the start": {"value": lambda self, w: np.inf},
    r"value returns an array of shape \(6,\), not a number": {"value": lambda self, w: w**2},
    r"value fails at the start: no data": {"value": fails},
    r"gradient is nan in coordinate 4 at a point where the value is 27.5": {
        "gradient": lambda self, w: np.where(np.arange(6) == 4, np.nan, 1)
    },
    r"gradient returns an array of shape \(6,\) and type <U1, not an array": {
        "gradient": lambda self, w: list("abcdef")
    },
    r"gradient returns an array of shape \(6, 1\), not an array of shape \(6,\)": {
        "gradient": lambda self, w: (w - np.arange(6))[:, None]
    },
    r"value returns an array of shape \(1,\), not a number": {"value": lambda self, w: np.array([w @ w])},
    r"value returns NoneType, not a number": {"value": lambda self, w: None},
    r"value is -inf at the start; give a start where it is finite": {"value": lambda self, w: -np.inf},
    r"value is not finite as soon as one leaves the start along coordinates \d, \d, \d, \d; give a start inside": {
        "value": lambda self, w: -np.inf if np.any(w) else 0.0
    },
    r"value is .* at w\[.*, and then .*; it must not depend on chance": {
        "value": lambda self, w: Half.value(self, w) + np.random.default_rng().normal()
    },
    r"value is 27.5 at the start, below floor=30; give a lower floor, or none": {"floor": 30},
    r"value_and_gradient returns float64, not a value and a gradient": {
        "value_and_gradient": lambda self, w: self.value(w)
    },
    r"value_and_gradient changes the array it is given": {
        "value_and_gradient": lambda self, w: (self.value(w), in_place(self, w))
    },
    r"gradient returns an array of shape \(5,\), not an array of shape \(6,\)": {"gradient": lambda self, w: w[1:]},
    r"gradient changes the array it is given": {"gradient": in_place},
    r"curvature returns an array of shape \(5,\)": {"curvature": lambda self, w: np.ones(5)},
    r"curvature is -1 in coordinate 0": {"curvature": lambda self, w: -np.ones(6)},
    r"gains returns an array of shape \(2,\), not an array of numbers of shape \(6,\)": {
        "gains": lambda self, w: np.ones(2)
    },
    r"hessian does not agree": {"hessian": lambda self, w, coords: 2 * np.eye(len(coords))},
    r"removal_costs is 1 for coordinate": {"removal_costs": lambda self, w, units: np.ones(len(units))},
    r"value_and_gradient gives other numbers": {"value_and_gradient": lambda self, w: (self.value(w), 2 * w)},
}


@pytest.mark.parametrize("message", BROKEN)
@pytest.mark.parametrize("seed", range(2))
def test_broken_objectives_are_refused_with_the_place(message, seed):
    with pytest.raises(ValueError, match=message):
        select(broken(**BROKEN[message]), 2, random_state=seed)


@pytest.mark.parametrize("seed", range(2))
def test_sound_objectives_are_not_refused(seed):
    X, y = signs()
    hooked = type("Hooked", (Logits,), HOOKS)

    class Single(Logits):
        def value(self, w):
            return np.float32(super().value(w))

        def gradient(self, w):
            return super().gradient(w).astype(np.float32)

    for objective in (Half(), Logits(X, y), hooked(X, y), Single(X, y), Scaled(*numbers()), Squares(1e3 * X, y)):
        assert isinstance(select(objective, 1, method="forward", random_state=seed), Path)


NAMES = ["base", "age", "dose", "weight", "bmi", "pulse"]


def slope_of_half(w):
    return off_in_3(None, w)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"gradient": slope_of_half},
            r"slope_of_half \(the gradient\) is -3.9 in coordinate 3 \('weight'\) at the start",
        ),
        ({"gradient": lambda w: off_in_3(None, w)}, r"^The gradient is -3.9 in coordinate 3 \('weight'\) at the start"),
        ({"gradient": lambda w: w[1:]}, r"^The gradient returns an array of shape \(5,\)"),
        ({"objective": fails}, r"^fails \(the value\) fails at the start: .*argument"),
        ({"curvature": lambda w: -np.ones(6)}, r"^The curvature is -1 in coordinate 0 \('base'\)"),
        ({"start": np.ones(6)}, r"It is 1 in coordinate 0 \('base'\)"),
        ({"always": ["age"], "never": [1]}, r"overlap: coordinate 1 \('age'\) cannot be both"),
        ({"always": ["age"], "free": [1]}, r"'always' names coordinate 1 \('age'\), which is free"),
        ({"costs": [1, 1, 1, 1, np.inf, 1]}, r"those of coordinate 4 \('bmi'\) are not"),
        (
            {"objective": lambda w: -w[1], "gradient": lambda w: -np.eye(6)[1], "floor": None},
            r"^The objective falls without end along coordinate 1 \('age'\)",
        ),
    ],
)
def test_errors_name_coordinates_and_functions_as_the_user_does(options, message):
    given = {"objective": Half().value, "gradient": Half().gradient, "n_coords": 6, "names": NAMES, "k": 2, **options}
    with pytest.raises(ValueError, match=message):
        select(**given)


KINKED = {
    "l1": (lambda w: 1e-3 * np.abs(w).sum(), lambda w: 1e-3 * np.sign(w)),
    "one": (lambda w: 1e-3 * abs(w[3]), lambda w: 1e-3 * np.sign(w) * (np.arange(6) == 3)),
    "maximum": (lambda w: max(w[2], w[4]), lambda w: np.eye(6)[2] if w[2] >= w[4] else np.eye(6)[4]),
    "differences": (
        lambda w: np.abs(np.diff(w)).sum(),
        lambda w: np.append(0, np.sign(np.diff(w))) - np.append(np.sign(np.diff(w)), 0),
    ),
    "norm": (
        lambda w: np.linalg.norm(w[:3]),
        lambda w: np.where(np.arange(6) < 3, w, 0) / (np.linalg.norm(w[:3]) or 1),
    ),
}


SMOOTH = {
    "steep": (lambda w: 1e10 * w @ w, lambda w: 2e10 * w),
    "least at zero": (lambda w: w @ w - Half().value(w), lambda w: 2 * w - Half().gradient(w)),
    "nearly l1": (lambda w: np.sqrt(w * w + 1e-16).sum(), lambda w: w / np.sqrt(w * w + 1e-16)),
    "half": (lambda w: np.sum(np.maximum(w, 0) ** 2), lambda w: 2 * np.maximum(w, 0)),
    "far from zero": (lambda w: np.exp(w).sum(), np.exp),
}


@pytest.mark.parametrize("kind", [*KINKED, *SMOOTH])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_kinks_where_coordinates_are_zero_are_found_and_curvature_is_not_taken_for_one(kind, dtype):
    value, slope = (KINKED | SMOOTH)[kind]

    def both(w):
        w = w.astype(dtype)
        return dtype(Half().value(w) + value(w)), (Half().gradient(w) + slope(w)).astype(dtype)

    def tried():
        return select(lambda w: both(w)[0], 1, gradient=lambda w: both(w)[1], n_coords=6, method="forward")

    if kind in SMOOTH:
        assert isinstance(warned_of(tried)[0], Path)
        return
    with pytest.raises(
        ValueError, match=r"jumps between .* where coordinate \d passes zero .*: the objective has a kink"
    ):
        tried()


@pytest.mark.parametrize("check", [True, False])
def test_what_functions_return_may_be_of_any_kind_and_change_later(check):
    X, y = signs(8)
    objective, held = Logits(X, y), np.zeros(9)

    class Held(Logits):
        """The same array at each call, with other numbers in it."""

        def gradient(self, w):
            held[:] = super().gradient(w)
            return held

        def value_and_gradient(self, w):
            return self.value(w), self.gradient(w)

    whole = select(objective, 4, method="exchange")
    for value, gradient in (
        (objective.value, lambda w: objective.gradient(w).tolist()),
        (lambda w: np.array(objective.value(w)), objective.gradient),
        (objective.value, lambda w: np.concatenate([objective.gradient(w)] * 2)[:9]),
        (objective.value, Held(X, y).gradient),
    ):
        path = select(value, 4, gradient=gradient, n_coords=9, free=[0], method="exchange", check=check)
        assert_same(path, whole)
        assert path.moves == whole.moves
    path = select(Held(X, y), 4, method="exchange", check=check)
    assert_same(path, whole)


def test_without_a_check_a_wrong_gradient_is_not_looked_for():
    assert select(broken(gradient=off_in_3), 1, method=Forward(rule="gradient"), check=False)[1].support == [5]


def test_a_refit_that_does_not_work_is_done_over():
    class Idle(Half):
        def refit(self, coords, start, tol):
            return np.where(start == 0, 0, start + 7)

    assert_same(select(Idle(), 3), select(Half(), 3))


def test_errors_after_the_checks_name_the_function():
    class Late(Half):
        def gradient(self, w):
            return np.where((np.arange(6) == 4) & (w[5] > 4), np.nan, w - np.arange(6))

    with pytest.raises(ValueError, match=r"Late.gradient is nan in coordinate 4 at a point where the value is"):
        select(Late(), 2)

    class Stray(Half):
        def refit(self, coords, start, tol):
            return np.arange(6.0)

    with pytest.raises(
        ValueError, match=r"refit must return .* zero outside of the coordinates it is given.* 1 is not"
    ):
        select(Stray(), 2)

    class Endless(Half):
        def value(self, w):
            return super().value(np.where(np.arange(6) == 1, 1, w)) - w[1]

        def gradient(self, w):
            return np.where(np.arange(6) == 1, -1.0, w - np.arange(6))

    with pytest.raises(ValueError, match=r"Endless falls without end along coordinate 1: it has no minimum"):
        select(Endless(), 6)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"k": [1, 2]},
            TypeError,
            r"'k' parameter of select must be an int .* or None. Got \[1, 2\] instead. The path holds all sizes",
        ),
        (
            {"k": 0},
            ValueError,
            r"'k' parameter of select must be an int in the range \[1, inf\) or None. Got 0 instead",
        ),
        (
            {"k": 1.5},
            TypeError,
            r"'k' parameter of select must be an int in the range \[1, inf\) or None. Got 1.5 instead",
        ),
        ({"free": range(6)}, ValueError, "free holds all coordinates"),
        ({"free": [6]}, ValueError, "'free' names coordinate 6; the objective has coordinates 0 to 5"),
        ({"free": ["b"]}, ValueError, "'free' names the coordinate 'b', but the objective has no coordinate names"),
        ({"free": 3}, TypeError, "free must be a list"),
        ({"groups": [1, 2]}, ValueError, "'groups' must hold one label for each of the 6 coordinates"),
        ({"start": np.ones(6)}, ValueError, "start must be zero outside of the free coordinates.* 1 in coordinate 0"),
        ({"start": [np.nan] * 6}, ValueError, "start is not finite in coordinate 0"),
        ({"start": np.zeros(3)}, ValueError, r"start must have shape \(6,\)"),
        ({"floor": "low"}, TypeError, "floor must be a finite number or None"),
        ({"always": [1], "never": [1]}, ValueError, "'always' and 'never' overlap: coordinate 1 cannot be both"),
        ({"always": [1, 2], "k": 1}, ValueError, "'always' holds 2 coordinates, more than k=1"),
        ({"always": [0], "free": [0]}, ValueError, "'always' names coordinate 0, which is free"),
        ({"always": ["z"], "groups": list("aabbaa")}, ValueError, "'always' names 'z', which is no group"),
        ({"always": [True]}, TypeError, "'always' must name coordinates by name or index"),
        ({"costs": [1, 2]}, ValueError, "'costs' must hold one number for each of the 6 coordinates"),
        (
            {"costs": [1, 2, -1, 3, 4, 5]},
            ValueError,
            "'costs' must be finite and not negative; those of coordinate 2 are not",
        ),
        (
            {"costs": dict.fromkeys("abz", 1), "groups": list("aabbaa")},
            ValueError,
            "'costs' names 'z', which is not the label of a group",
        ),
        (
            {"costs": dict.fromkeys(range(7), 1)},
            ValueError,
            "'costs' names coordinate 6; the objective has coordinates 0 to 5",
        ),
        ({"costs": [2] * 6, "budget": 1}, ValueError, "budget of 1 is below the cheapest of the coordinates.* costs 2"),
        ({"groups": [1, 2, None, 1, 1, 1]}, ValueError, "'groups' holds no label for some coordinates: coordinate 2"),
        ({"groups": [1, 2, 2, 1, 1, np.nan]}, ValueError, "'groups' holds no label for some coordinates: coordinate 5"),
        (
            {"groups": [[1], [1, 2], 3, 4, 5, 6]},
            ValueError,
            "'groups' must hold one label for each .* got shape \\(6, 0\\)",
        ),
        ({"names": "abcdef"}, TypeError, "names must be a list; got 'abcdef'"),
        ({"start": "zero"}, TypeError, "start must be an array of 6 numbers; got 'zero'"),
        ({"check": "no"}, TypeError, "'check' parameter of select must be a bool. Got 'no' instead"),
        (
            {"random_state": "any"},
            TypeError,
            "'random_state' parameter of select must be an int .*, a Generator or None",
        ),
        ({"budget": 3}, ValueError, "'budget' needs 'costs'"),
        ({"budget": 1, "costs": [2] * 6, "always": [0]}, ValueError, "'always' alone costs 2, more than the budget"),
        ({"names": ["a"]}, ValueError, "names must hold a name for each of the 6 coordinates"),
        ({"names": list("abcdea")}, ValueError, "names holds 'a' more than once"),
        ({"tol": -1}, ValueError, r"'tol' parameter of select must be a float in the range \[0, inf\)"),
        ({"time_limit": 0}, ValueError, r"'time_limit' parameter of select must be a float in the range \(0, inf\)"),
        ({"callback": 3}, TypeError, "'callback' parameter of select must be a callable or None"),
        ({"curvature": 3}, TypeError, "'curvature' parameter of select must be a callable or None"),
        ({"method": "magic"}, ValueError, "method must be one of"),
        ({"resume": 3}, TypeError, "resume must be a Path"),
        ({"gradient": Half().gradient}, TypeError, "Two functions are given as"),
    ],
)
def test_invalid_options_raise(options, error, message):
    with pytest.raises(error, match=message):
        select(Half(), **{"k": 2, **options})


def test_objects_that_are_no_objectives():
    with pytest.raises(TypeError, match="objective is the class Half; make an object of it first"):
        select(Half, 2)
    with pytest.raises(TypeError, match="function has no n_coords and no value and no gradient"):
        select(lambda w: 0.0, 2)
    with pytest.raises(
        TypeError, match=r"'objective\.refit' parameter of select must be a callable or None. Got True instead"
    ):
        select(broken(refit=True), 2)
    with pytest.raises(ValueError, match="another objective"):
        select(Half(), 3, resume=select(Squares(*numbers()), 2))
