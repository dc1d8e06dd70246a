"""Why a search over coordinates ends: limits, interrupts, parameters that diverge, too few candidates."""

import matplotlib as mpl
import numpy as np
import pytest
from custom_objectives import HOOKS, Half, Linear, Logits, Squares, assert_same, numbers, signs, subset_of, warned_of

from pauca import Stop, select
from pauca.constraints.limits import Limits
from pauca.custom.objective import CustomProblem
from pauca.custom.subset import CustomSubset
from pauca.methods import Backward, Exchange, FoBa, Forward
from pauca.runs import run as driver
from problems import METHODS

mpl.use("Agg")


@pytest.mark.parametrize("method", [*METHODS, FoBa(rule="gradient")], ids=str)
def test_a_run_that_was_cut_short_goes_on_as_if_it_had_not_been(method):
    objective = Logits(*signs(10, seed=6))
    whole = select(objective, 5, method=method)
    seen = []
    first = select(objective, 5, method=method, callback=lambda progress: seen.append(progress) or len(seen) == 2)
    assert first.stop is Stop.CALLBACK
    assert first.moves == whole.moves[:2]
    assert (
        seen[1].objective == pytest.approx(objective.value(first.parameters(seen[1].size)), abs=1e-6)
        or seen[1].size > 5
    )
    assert seen[1].null_objective == pytest.approx(whole[0].objective)
    rest = select(objective, 5, method=method, resume=first)
    assert rest.moves == whole.moves
    assert_same(rest, whole)
    assert select(objective, 2, method="forward", resume=select(objective, 4, method="forward")).sizes == [0, 1, 2]


def test_the_time_limit_ends_a_run_with_what_it_has():
    path, words = warned_of(lambda: select(Logits(*signs()), 5, time_limit=1e-9))
    assert (path.stop, path.sizes) == (Stop.TIME, [0, 1])
    assert words.startswith("k=5 coordinates were requested, but the search ended at 1: the time limit was reached.")


def test_the_clock_is_looked_at_within_a_move(monkeypatch):
    now, called_at = [0.0], []
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    class Slow(Logits):
        def value(self, w):
            now[0] += 1  # a second for each value
            called_at.append(now[0])
            return super().value(w)

    ends = {}
    timed = {"callback": lambda done: ends.setdefault(done.size, done.elapsed)}
    whole = select(Slow(*signs()), 3, method="forward", check=False, **timed)
    for limit in (ends[1] + 1, 0.5 * (ends[1] + ends[2])):
        subset, began = subset_of(Slow(*signs())), now[0]
        history = driver.run(Forward(), subset, driver.Goal(3), driver.Budget(limit))
        assert (history.stop, history.moves) == (Stop.TIME, whole.moves[:1])
        assert limit <= called_at[-1] - began < limit + 1
        # The models that were found are polished in peace.
        assert subset.finish([history.best[1]], 0)[0].converged


@pytest.mark.parametrize("method", METHODS)
def test_an_interrupt_keeps_what_was_found_wherever_it_comes(method, monkeypatch):
    X, y = signs(6)

    class Cut(Logits):
        def __init__(self, after):
            super().__init__(X, y)
            self.left = after

        def value(self, w):
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt
            return super().value(w)

    whole = select(Cut(0), 4, method=method, check=False)
    counted = Cut(0)
    subset = CustomSubset.start(CustomProblem(counted), Limits())
    resolved = {"foba": FoBa, "forward": Forward, "exchange": Exchange, "backward": Backward}[method]()
    resolved.begin(subset)
    driver.History(subset, 4)
    first, ends, lengths = -counted.left + 1, set(), set()
    for after in range(first, first + 2000, 19):
        monkeypatch.setattr(driver, "_interrupts", driver._Interrupts())
        objective = Cut(after)
        path, words = warned_of(lambda objective=objective: select(objective, 4, method=method, check=False))
        assert path.moves == whole.moves[: len(path.moves)]
        for size in path.sizes:
            assert path[size].objective == pytest.approx(Logits.value(objective, path.parameters(size)), abs=1e-12)
        if objective.left > 0:
            break
        ends.add(path.stop)
        if path.stop is Stop.INTERRUPTED:
            assert f"The search was interrupted; the models up to size {path.sizes[-1]} were kept." in words
        # It may also come while the models of a search that was over are polished: then all of them are there.
        lengths.add(len(path.moves))
    assert Stop.INTERRUPTED in ends
    assert len(whole.moves) in lengths


def separated(n_needed, seed=0):
    X = np.random.default_rng(seed).normal(size=(50, 6))
    return X, np.where(X[:, :n_needed] @ [1.0, 1.2, -0.9][:n_needed] > 0, 1.0, -1.0)


class SquaredHinge(Linear):
    """Flat where it is zero: the minimum is a finite one."""

    def loss(self, a):
        return 0.5 * np.maximum(0, 1 - self.y * a) ** 2

    def slope(self, a):
        return -self.y * np.maximum(0, 1 - self.y * a)

    def bend(self, a):
        return np.where(self.y * a < 1, 1.0, 0.0)


class Ridged(Logits):
    def value(self, w):
        return super().value(w) + 1e-3 * w[1:] @ w[1:]

    def gradient(self, w):
        return super().gradient(w) + 2e-3 * np.where(np.arange(len(w)) > 0, w, 0)


@pytest.mark.parametrize("hooks", [(), ("curvature",), ("hessian",)], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_parameters_that_run_away_are_told_from_those_that_do_not(hooks, seed):
    """Whether a minimum is finite: judged by what is known of the data."""
    rng = np.random.default_rng(seed)
    X, parted = separated(3, seed)
    mixed = np.where(X[:, 0] + rng.logistic(size=50) > 0, 1.0, -1.0)
    leaking = X.copy()
    leaking[:, 3] = (mixed > 0) & (rng.random(50) < 0.3)  # where it is 1, the label is known: one coordinate runs away
    twins = np.column_stack([X[:, 0], X])

    def runs_away(kind, X, y, size):
        objective = type("Hooked", (kind,), {hook: HOOKS[hook] for hook in hooks})(X, y)
        subset = subset_of(objective, range(1, size + 1))
        return subset.finish([subset.snapshot()], 0)[0].diverged

    assert runs_away(Logits, X, parted, 3)
    assert runs_away(Logits, X, parted, 5)
    assert runs_away(Logits, leaking, mixed, 4)
    assert runs_away(Logits, leaking[:, [3, 0, 1]], mixed, 2)
    assert runs_away(Logits, 1 - leaking[:, [3]], mixed, 1)  # against the intercept
    assert runs_away(Logits, X, np.ones(50), 0)  # the intercept
    assert not runs_away(Logits, X, parted, 2)
    assert not runs_away(Logits, X, mixed, 5)
    assert not runs_away(Logits, twins, mixed, 3)
    assert not runs_away(Squares, twins, X[:, 1], 3)
    assert not runs_away(Squares, 1e6 * X, mixed, 3)
    assert not runs_away(SquaredHinge, X, parted, 3)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_needed", [1, 3])
def test_separable_classes_without_a_ridge_give_a_warning_that_says_what_to_do(method, n_needed):
    X, y = separated(n_needed)
    path, words = warned_of(lambda: select(Logits(X, y), 5, method=method))
    assert path[path.sizes[-1]].diverged
    assert "Some parameters diverge, as where the data are separable" in words
    assert words.endswith("Add a ridge, such as 1e-3 times the sum of squares of the coordinates that are chosen from.")
    assert "some coefficients diverge" in path.summary(path.sizes[-1])
    if 5 not in path:
        ended = (
            f"k=5 coordinates were requested, but the search ended at {n_needed}: the objective is as low as it can be"
        )
        assert words.startswith(ended)
    path, words = warned_of(lambda: select(Ridged(X, y), 5, method=method))
    assert (path.sizes, words) == (list(range(6)), "")


def test_tolerance_and_no_gain_and_perfect():
    X, y = numbers()
    whole = select(Squares(X, y), 5, method="forward")
    gains = -np.diff([whole[size].objective for size in whole.sizes])
    assert select(Squares(X, y), None, method="forward", tol=0.5 * (gains[2] + gains[3])).sizes == [0, 1, 2, 3]
    twice = np.column_stack([X[:, :3], X[:, :3]])
    assert select(Squares(twice, y), None).stop is Stop.NO_GAIN
    exact = X[:, :6] @ [1.0, 0, 2, 0, 0, 0]
    assert select(Squares(X[:, :6], exact), None, floor=0.0).stop is Stop.PERFECT
    assert select(Squares(X[:, :6], exact), None, floor=0.0)[2].support.tolist() == [1, 3]


def test_costly_objectives_are_asked_less_and_end_near():
    X, y = signs(12, seed=2)
    calls = {True: 0, False: 0}

    class Counted(Logits):
        def gradient(self, w):
            calls[self.costly] += 1
            return super().gradient(w)

    paths = {}
    for costly in calls:
        objective = Counted(X, y)
        objective.costly = costly
        paths[costly] = select(objective, 5, method=FoBa(rule="gradient"), check=False)
    assert calls[True] < calls[False]
    assert not paths[True][5].importance_is_exact
    for size in range(6):
        near, least = paths[True][size], paths[False][size]
        assert near.support.tolist() == least.support.tolist()
        assert -1e-9 <= near.objective - least.objective <= 1e-5 * least.objective


class Shifted(Half):
    """Every coordinate helps, the first one too."""

    def value(self, w):
        return super().value(w - 1)

    def gradient(self, w):
        return super().gradient(w - 1)


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        (Shifted, {"k": 9}, "but only 6 of 6 can be used together."),
        (Shifted, {"k": 9, "method": "backward"}, "but only 6 of 6 can be used together."),
        (Shifted, {"k": 6, "free": [0]}, "but only 5 of 5 can be used together."),
        (Shifted, {"k": 3, "groups": list("aabbaa")}, "but only 2 of 2 can be used together."),
        (Shifted, {"k": 6, "never": [1, 2]}, "but only 4 of 6 can be used together. 'never' leaves out the others."),
        (
            Shifted,
            {"k": 4, "costs": [2] * 6, "budget": 5},
            "but the search ended at 2: no other fits in budget=5. Allow more or ask for fewer.",
        ),
        (
            Half,
            {"k": 6},
            "but the search ended at 5: no other lowers the objective by more than rounding. Ask for fewer.",
        ),
        (
            Half,
            {"k": 6, "floor": 0.0},
            "but the search ended at 5: the objective is at its floor, and nothing is left to gain. Ask for fewer.",
        ),
        (
            Half,
            {"k": 3, "method": FoBa(max_steps=2)},
            "but the search ended at 2: the largest number of steps was reached. Allow more, or go on with "
            "resume=path.",
        ),
    ],
    ids=str,
)
def test_fewer_than_k_are_explained(kind, options, words):
    path, message = warned_of(lambda: select(kind(), **options))
    noun = "groups" if "groups" in options else "coordinates"
    assert message == f"k={options['k']} {noun} were requested, {words}"
    assert path.sizes[-1] < options["k"]


def test_ends_that_were_asked_for_are_not_explained_and_a_floor_that_is_none_is():
    assert warned_of(lambda: select(Half(), 6, tol=3.0))[1] == ""
    assert warned_of(lambda: select(Half(), 6, callback=lambda progress: True))[1] == ""
    words = warned_of(lambda: select(Half(), 2, floor=20.0, check=False))[1]
    assert words == "The objective fell to 15, below floor=20: give a lower floor, or none."


def test_backward_starts_from_all_that_may_be_in():
    path = select(Half(), 2, method=Backward(), never=[5])
    assert path[2].support.tolist() == [3, 4]
    assert path.moves == [("drop", 0), ("drop", 1), ("drop", 2), ("drop", 3)]


@pytest.mark.parametrize("scale", [1e-200, 1e-60, 1e60, 1e100])
def test_objectives_of_any_sensible_scale(scale):
    X, y = numbers(d=5)

    def value(w):
        return 0.5 * scale * np.mean((X @ w - y) ** 2)

    def gradient(w):
        return scale * (X.T @ (X @ w - y)) / len(y)

    if 1e-70 < scale < 1e70:
        found, wanted = select(value, 2, gradient=gradient, n_coords=5), select(Squares(X, y), 2)
        assert found[2].support.tolist() == [coord - 1 for coord in wanted[2].support]
    else:
        with pytest.raises(ValueError, match=r"^gradient has entries of at most .* Divide the objective"):
            select(value, 2, gradient=gradient, n_coords=5)


def test_a_coordinate_without_curvature_is_no_candidate():
    """A curvature next to zero, as of weights that diverge, gives no numbers that are none."""

    class Flat:
        n_coords = 4
        weights = np.array([1.0, 0.0, 2.0, 0.0])

        def value(self, w):
            return float(np.sum(self.weights * (w - 1) ** 2))

        def gradient(self, w):
            return 2 * self.weights * (w - 1)

        def curvature(self, w):
            return np.array([2.0, 5e-324, 4.0, 0.0])

    assert select(Flat(), k=2, method=Forward(shortlist=None)).moves == [("add", 2), ("add", 0)]
