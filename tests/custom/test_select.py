"""An objective of the user's own: the answers of estimators and brute force, whatever it offers beyond a gradient."""

import itertools
import json
import warnings

import matplotlib as mpl
import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

import pauca
from pauca import ModelFileError, Path, PaucaWarning, SparseClassifier, SparseRegressor, Stop, select
from pauca.constraints.limits import Limits
from pauca.custom.objective import CustomProblem
from pauca.custom.subset import CustomSubset
from pauca.export.json_files import JsonReader
from pauca.export.path_file import read_path, write_path
from pauca.methods import Backward, Exchange, FoBa, Forward
from pauca.runs import run as driver
from problems import METHODS, ar_problem

mpl.use("Agg")


class Linear:
    """A mean loss of linear scores; coordinate 0 is the intercept, which is free."""

    free = (0,)

    def __init__(self, X, y):
        self.Z, self.y = np.column_stack([np.ones(len(X)), X]), y
        self.n_coords = self.Z.shape[1]

    def value(self, w):
        return float(np.mean(self.loss(self.Z @ w)))

    def gradient(self, w):
        return self.Z.T @ self.slope(self.Z @ w) / len(self.y)


class Squares(Linear):
    def loss(self, a):
        return 0.5 * (a - self.y) ** 2

    def slope(self, a):
        return a - self.y

    def bend(self, a):
        return np.ones_like(a)


class Logits(Linear):
    def loss(self, a):
        return np.logaddexp(0, -self.y * a)

    def slope(self, a):
        return -self.y / (1 + np.exp(self.y * a))

    def bend(self, a):
        return 1 / (2 + 2 * np.cosh(a))


class Scaled:
    """Squares with a scale t = 1 / sigma that is fitted too: ``mean (t y - X w)^2 / 2 - log t``, convex for t > 0.

    Given the coordinates, the minimum is ``(1 + log RSS) / 2``: negative for good fits.
    """

    free = (0,)

    def __init__(self, X, y, *, outside=np.inf):
        self.X, self.y, self.outside = X, y, outside
        self.n_coords = 1 + X.shape[1]
        self.start = np.eye(self.n_coords)[0]

    def value(self, w):
        if w[0] <= 0:
            return self.outside
        return 0.5 * np.mean((w[0] * self.y - self.X @ w[1:]) ** 2) - np.log(w[0])

    def gradient(self, w):
        residual = w[0] * self.y - self.X @ w[1:]
        return np.concatenate([[np.mean(residual * self.y) - 1 / w[0]], -self.X.T @ residual / len(self.y)])


def with_both(self, w):
    return self.value(w), self.gradient(w)


def with_curvature(self, w):
    return self.bend(self.Z @ w) @ self.Z**2 / len(self.y)


def with_hessian(self, w, coords):
    Z = self.Z[:, coords]
    return (Z.T * self.bend(self.Z @ w)) @ Z / len(self.y)


def with_gains(self, w):
    def along(j):
        step = np.eye(self.n_coords)[j]
        return self.value(w) - minimize_scalar(lambda t: self.value(w + t * step), tol=1e-10).fun

    return np.array([along(j) if w[j] == 0 else -np.inf for j in range(self.n_coords)])


def with_removal_costs(self, w, units):
    return np.array([self.value(np.where(np.arange(len(w)) == unit, 0, w)) - self.value(w) for unit in units])


def with_refit(self, coords, start, tol):
    return restricted(self, coords, start)[1]


HOOKS = {
    "value_and_gradient": with_both,
    "curvature": with_curvature,
    "hessian": with_hessian,
    "gains": with_gains,
    "removal_costs": with_removal_costs,
    "refit": with_refit,
}


def restricted(objective, coords, start=None):
    """The minimum over some coordinates, and where it is, by scipy."""
    w = np.zeros(objective.n_coords) if start is None else np.array(start)

    def put(part):
        there = w.copy()
        there[coords] = part
        return there

    def both(part):
        return objective.value(put(part)), objective.gradient(put(part))[coords]

    found = minimize(both, w[coords], jac=True, method="BFGS", options={"gtol": 1e-9})
    return found.fun, put(found.x)


def numbers(d=12, seed=0):
    """Centred columns: a unit that moves alone then leaves the intercept where it is best."""
    X, y = ar_problem(80, d, 4, rho=0.7, seed=seed)
    return X - X.mean(axis=0), y


def signs(d=12, seed=0):
    X, y = numbers(d, seed)
    return X, np.where(y + np.random.default_rng(seed).logistic(size=len(y)) > 0, 1.0, -1.0)


def assert_same(path, other, *, shift=0, within=1e-8, sizes=None):
    for size in sizes or other.sizes:
        assert path[size].support.tolist() == (other[size].support + shift).tolist(), size
        assert path[size].objective == pytest.approx(other[size].objective, abs=within), size


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", [0, 1])
def test_squares_and_logits_take_the_path_of_the_estimators(method, seed):
    X, y = numbers(seed=seed)
    ours, theirs = select(Squares(X, y), 5, method=method), SparseRegressor(k=5, method=method).fit(X, y)
    assert_same(ours, theirs.path_, shift=1)
    assert ours.stop is theirs.stop_
    assert ours[5].coef == pytest.approx(theirs.path_[5].coef, rel=1e-5)
    assert ours[5].free == pytest.approx([theirs.intercept_], rel=1e-5, abs=1e-6)
    assert ours[5].importance == pytest.approx(theirs.path_[5].importance, rel=1e-2)
    X, y = signs(seed=seed)
    theirs = SparseClassifier(k=5, method=method).fit(X, y).path_
    # Without a ridge the classifier has a tiny one.
    assert_same(select(Logits(X, y), 5, method=method), theirs, shift=1, within=1e-7)


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("method", [*METHODS, FoBa(rule="refit", removal="zero")], ids=str)
def test_hooks_change_no_answer(hook, method):
    X, y = signs(8)
    bare = select(Logits(X, y), 3, method=method)
    kind = type("Hooked", (Logits,), {hook: HOOKS[hook]})
    assert_same(select(kind(X, y), 3, method=method), bare)


@pytest.mark.parametrize("method", METHODS)
def test_every_model_is_the_minimum_on_its_support_and_exchange_the_best_of_all(method):
    X, y = signs(8, seed=3)
    objective = Logits(X, y)
    path = select(objective, 4, method=method)
    for size in (1, 2, 4):
        least = {S: restricted(objective, [0, *S])[0] for S in itertools.combinations(range(1, 9), size)}
        assert path[size].objective == pytest.approx(least[tuple(path[size].support)], abs=1e-9)
        assert path[size].objective == pytest.approx(objective.value(path.parameters(size)), abs=1e-14)
        assert path[size].objective >= min(least.values()) - 1e-9
        if method == "exchange":
            assert path[size].objective == pytest.approx(min(least.values()), abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("outside", [np.inf, np.nan])
def test_a_domain_with_a_border_and_values_below_zero(method, outside):
    X, y = numbers(8)
    y = 0.1 * (y - y.mean())
    path = select(Scaled(X, y, outside=outside), 5, method=method)
    assert path[5].objective < 0
    for model in SparseRegressor(k=5, method=method, fit_intercept=False).fit(X, y).path_:
        size = model.size
        assert path[size].support.tolist() == (model.support + 1).tolist()
        # Half the mean square is known, and (1 + log of the mean square) / 2 is the least value.
        assert path[size].objective == pytest.approx(0.5 + 0.5 * np.log(2 * model.objective), abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_changes_nothing(method):
    X, y = numbers()

    class Lower(Squares):
        def value(self, w):
            return super().value(w) - shift

    plain = select(Squares(X, y), 4, method=method)
    for shift in (plain[0].objective, 3 * plain[0].objective):
        path = select(Lower(X, y), 4, method=method)
        assert path.moves == plain.moves
        assert path[4].objective == pytest.approx(plain[4].objective - shift, abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_groups(method):
    X, y = numbers(12, seed=4)
    labels = np.array(list("ccaabbddeeff"))
    theirs = SparseRegressor(k=3, method=method, feature_groups=labels).fit(X, y).path_
    path = select(Squares(X, y), 3, method=method, groups=["free", *labels])
    assert_same(path, theirs, shift=1)
    assert path.groups(3) == theirs.groups(3)
    assert path.moves == theirs.moves
    curved = type("Curved", (Squares,), {"curvature": with_curvature, "groups": np.array(["z", *labels])})
    assert_same(select(curved(X, y), 3, method=method), path)


@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "constraints",
    [{"always": [5]}, {"never": [0, 3]}, {"costs": np.arange(1.0, 13)}, {"costs": np.arange(1.0, 13), "budget": 15.0}],
    ids=str,
)
def test_constraints_give_the_same_path_as_estimators(method, constraints):
    X, y = numbers(12, seed=5)
    theirs = SparseRegressor(k=4, method=method, **constraints).fit(X, y).path_
    ours = {name: [j + 1 for j in columns] for name, columns in constraints.items() if name in ("always", "never")}
    ours |= {"costs": [9.0, *constraints["costs"]]} if "costs" in constraints else {}
    ours |= {"budget": constraints["budget"]} if "budget" in constraints else {}
    path = select(Squares(X, y), 4, method=method, **ours)
    assert_same(path, theirs, shift=1)
    assert path.stop is theirs.stop


def subset_of(objective, units=(), **options):
    subset = CustomSubset.start(CustomProblem(objective, **options), Limits())
    for unit in units:
        subset.add(unit)
    return subset


@pytest.mark.parametrize("hooks", [(), ("curvature",), ("curvature", "hessian"), ("gains",)])
@pytest.mark.parametrize("seed", range(3))
def test_rules_and_removals_rank_as_brute_force_does(hooks, seed):
    X, y = signs(9, seed=seed)
    objective = type("Hooked", (Logits,), {hook: HOOKS[hook] for hook in hooks})(X, y)
    chosen = [2, 5, 8]
    subset = subset_of(objective, chosen)
    value, w = restricted(objective, [0, *chosen])
    assert subset.value == pytest.approx(value, rel=1e-6)
    others = [j for j in range(1, 10) if j not in chosen]
    assert subset.best_addition("gradient") == max(others, key=lambda j: abs(objective.gradient(w)[j]))
    assert subset.best_addition("objective") == others[int(np.argmax(with_gains(objective, w)[others]))]
    refitted = {j: value - restricted(objective, [0, *chosen, j])[0] for j in others}
    best = max(others, key=refitted.get)
    assert subset.best_addition("refit") == best
    assert subset.decrease(best) == pytest.approx(refitted[best], rel=1e-2)
    zeroed = dict(zip(chosen, with_removal_costs(objective, w, chosen), strict=True))
    assert subset.cheapest_removal("zero") == (
        min(zeroed, key=zeroed.get),
        pytest.approx(min(zeroed.values()), rel=1e-3),
    )
    lost = {i: restricted(objective, [0, *(j for j in chosen if j != i)])[0] - value for i in chosen}
    assert subset.cheapest_removal("refit") == (min(lost, key=lost.get), pytest.approx(min(lost.values()), rel=1e-2))
    assert subset.cheapest_removal("refit", 1e-3 * min(lost.values())) is None


@pytest.mark.parametrize("hooks", [(), ("curvature",), ("hessian",)])
@pytest.mark.parametrize("seed", range(3))
def test_exchanges_and_replacements_against_brute_force(hooks, seed):
    X, y = signs(9, seed=seed)
    objective = type("Hooked", (Logits,), {hook: HOOKS[hook] for hook in hooks})(X, y)
    chosen = [1, 4, 7]
    subset = subset_of(objective, chosen)
    swapped = {
        (i, j): restricted(objective, [0, *(other for other in chosen if other != i), j])[0]
        for i in chosen
        for j in range(1, 10)
        if j not in chosen
    }
    found = subset.best_swap()
    if min(swapped.values()) < subset.value - 1e-6:
        assert swapped[found.out, found.into] < subset.value
        assert found.decrease == pytest.approx(subset.value - swapped[found.out, found.into], rel=0.05)
    for out, swaps in subset.replacements(2).items():
        best = min(swapped[out, j] for i, j in swapped if i == out)
        assert subset.value - swaps[0].decrease == pytest.approx(best, rel=0.05)
    # Until none helps: then no exchange does.
    while (swap := subset.best_swap()) is not None:
        subset.drop(swap.out)
        subset.add(swap.into)
    chosen = list(subset.support)
    for i, j in itertools.product(chosen, set(range(1, 10)) - set(chosen)):
        assert restricted(objective, [0, *(o for o in chosen if o != i), j])[0] >= subset.value - 1e-7


def test_a_trial_leaves_no_trace():
    subset = subset_of(Logits(*signs()), [2, 3])
    before, value = list(subset.support), subset.value
    with subset.trial():
        subset.add(5)
    twin = subset.copy()
    twin.drop(2)
    assert (subset.support, subset.value) == (before, value)
    assert subset.restarted().support == []
    assert subset.data_key() == subset.restarted().data_key() != subset_of(Logits(*signs(seed=1))).data_key()


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


def warned_of(call):
    """What a call returns, and what its one warning says; nothing if there is none."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = call()
    assert all(warning.category is PaucaWarning and warning.filename == __file__ for warning in found)
    assert len(found) <= 1
    return result, "".join(str(warning.message) for warning in found)


def test_the_time_limit_ends_a_run_with_what_it_has():
    path, words = warned_of(lambda: select(Logits(*signs()), 5, time_limit=1e-9))
    assert (path.stop, path.sizes) == (Stop.TIME, [0, 1])
    assert words.startswith("k=5 coordinates were asked for, but the search ended at 1: the time limit was reached.")


def test_the_clock_is_looked_at_within_a_move(monkeypatch):
    now, called_at = [0.0], []
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    class Slow(Logits):
        def value(self, w):
            now[0] += 1  # a second for each value
            called_at.append(now[0])
            return super().value(w)

    ends = {}
    told = {"callback": lambda done: ends.setdefault(done.size, done.elapsed)}
    whole = select(Slow(*signs()), 3, method="forward", check=False, **told)
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
    told = X.copy()
    told[:, 3] = (mixed > 0) & (rng.random(50) < 0.3)  # where it is 1, the label is known: one coordinate runs away
    twins = np.column_stack([X[:, 0], X])

    def runs_away(kind, X, y, size):
        objective = type("Hooked", (kind,), {hook: HOOKS[hook] for hook in hooks})(X, y)
        subset = subset_of(objective, range(1, size + 1))
        return subset.finish([subset.snapshot()], 0)[0].diverged

    assert runs_away(Logits, X, parted, 3)
    assert runs_away(Logits, X, parted, 5)
    assert runs_away(Logits, told, mixed, 4)
    assert runs_away(Logits, told[:, [3, 0, 1]], mixed, 2)
    assert runs_away(Logits, 1 - told[:, [3]], mixed, 1)  # against the intercept
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
            f"k=5 coordinates were asked for, but the search ended at {n_needed}: the objective is as low as it can be"
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


def test_two_functions_and_names():
    X, y = numbers(6)
    objective = Squares(X, y)
    names = ["(intercept)", *"abcdef"]
    path = select(objective.value, 2, gradient=objective.gradient, n_coords=7, free=["(intercept)"], names=names)
    assert_same(path, select(objective, 2))
    assert path.names(2) == [names[j] for j in path[2].support]
    never = select(objective, 2, names=names, never=path.names(1))
    assert path.names(1)[0] not in never.names(2)


@pytest.mark.parametrize("floor", [None, 0.0])
def test_words_and_pictures(floor):
    X, y = numbers(6)
    path = select(Squares(X, y), 3, floor=floor, names=["base", *"abcdef"])
    words, picture = path.summary(3), path.plot()
    assert words.startswith("3 coordinates of 6, objective")
    assert words.splitlines()[7].split() == ["(base)", f"{path[3].free[0]:.6g}"]
    assert picture.figure.axes[-1].get_xlabel() == "number of coordinates"
    if floor is None:
        assert np.isnan(path.explained(3))
        assert "%" not in words
        assert "explained" not in path.table()[1]
        assert picture.get_ylabel() == "objective"
    else:
        assert path.explained(3) == pytest.approx(1 - path[3].objective / path[0].objective)
        assert f"{100 * path.explained(3):.2f} % explained" in words
        assert picture.get_ylabel() == "explained (%)"
    with pytest.raises(ValueError, match="linear model"):
        SparseRegressor(k=2).fit(X, y).path_.parameters(2)


@pytest.mark.parametrize("options", [{}, {"groups": list("zaabbcc"), "costs": {"a": 1, "b": 2, "c": 3}}], ids=str)
@pytest.mark.parametrize("floor", [None, 0.0])
def test_paths_are_written_and_read(options, floor):
    path = select(Squares(*numbers(6)), 3, floor=floor, names=["base", *"abcdef"], **options)
    written = write_path(path)
    read = read_path(JsonReader(json.loads(json.dumps(written))).fields(written))
    assert_same(read, path, within=0.0)
    assert (read.floor, read.noun, read.moves) == (path.floor, path.noun, path.moves)
    assert read.table() == path.table()
    for size in path.sizes:
        np.testing.assert_array_equal(read.parameters(size), path.parameters(size))
    assert isinstance(path, Path)
    written["custom"]["free"] = [7]
    with pytest.raises(ModelFileError, match="a free coordinate is beyond the last"):
        read_path(JsonReader(written).fields(written))


@pytest.mark.parametrize("free", [[], [0], [0, 2]], ids=str)
@pytest.mark.parametrize("options", [{}, {"groups": list("zaabbcc"), "costs": {"a": 1, "b": 2, "c": 3}}], ids=str)
def test_a_path_is_saved_loaded_and_taken_up_again(tmp_path, free, options):
    objective, names = Squares(*numbers(6)), ["base", *"abcdef"]
    if not options.get("groups"):
        options = {"costs": dict.fromkeys(names, 1.0)}
    elif not free:
        options = {**options, "costs": {"a": 1, "b": 2, "c": 3, "z": 1}}
    call = {"free": free, "names": names, "method": "forward", **options}
    whole = select(objective, 3, **call)
    path = select(objective, 2, **call)
    path.save(tmp_path / "path.json")
    again = pauca.load(tmp_path / "path.json")
    assert type(again) is type(path)
    assert (again.moves, again.stop, again.table()) == (path.moves, path.stop, path.table())
    assert again.summary(2) == path.summary(2)
    for size in path.sizes:
        np.testing.assert_array_equal(again.parameters(size), path.parameters(size))
    assert select(objective, 3, resume=again, **call).moves == whole.moves
    text = (tmp_path / "path.json").read_text()
    (tmp_path / "path.json").write_text(text.replace('"add"', '"sub"', 1))
    with pytest.raises(ModelFileError, match="was changed after it was saved"):
        pauca.load(tmp_path / "path.json")


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ({"never": [4]}, "another method, always or never"),
        ({"always": [1]}, "another method, always or never"),
        ({"method": "backward"}, "another method, always or never"),
        ({"costs": [1] * 6}, "other groups or costs"),
        ({"groups": list("abcdef")}, "other groups or costs"),
        ({"free": [0]}, "another objective"),
    ],
)
def test_resume_refuses_other_constraints(constraints, message):
    with pytest.raises(ValueError, match=f"resume is the path of .*{message}"):
        select(Half(), 3, resume=select(Half(), 2), **constraints)
    rich = select(Half(), 2, costs=[1] * 6, budget=2)
    with pytest.raises(ValueError, match="larger budget"):
        select(Half(), 3, resume=rich, costs=[1] * 6, budget=1)
    even = {"gradient": lambda w: w - 1, "n_coords": 6}
    one_free = select(lambda w: 0.5 * np.sum((w - 1) ** 2), 2, free=[0], **even)
    with pytest.raises(ValueError, match="another objective"):
        select(lambda w: 0.5 * np.sum((w - 1) ** 2), 3, free=[1], resume=one_free, **even)


class Half:
    """A sound objective; each one below breaks one thing of it."""

    n_coords = 6

    def value(self, w):
        return 0.5 * np.sum((w - np.arange(6)) ** 2)

    def gradient(self, w):
        return w - np.arange(6)


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
    assert message == f"k={options['k']} {noun} were asked for, {words}"
    assert path.sizes[-1] < options["k"]


def test_ends_that_were_asked_for_are_not_explained_and_a_floor_that_is_none_is():
    assert warned_of(lambda: select(Half(), 6, tol=3.0))[1] == ""
    assert warned_of(lambda: select(Half(), 6, callback=lambda progress: True))[1] == ""
    words = warned_of(lambda: select(Half(), 2, floor=20.0, check=False))[1]
    assert words == "The objective fell to 15, below floor=20: give a lower floor, or none."


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


@pytest.mark.parametrize("seed", range(5))
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
