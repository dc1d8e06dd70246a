"""Limits on the choice: kept by every model of a path, together and with all else."""

import numpy as np
import pandas as pd
import pytest
from constraint_judges import (
    LOSSES,
    all_least_squares,
    estimator,
    least,
    optimum,
    uneven,
    value_of,
)
from limited_problems import FORMATS, K, case, case_null

from pauca import PaucaWarning, SparseClassifier, SparseRegressor, Stop
from pauca.methods import FoBa, Forward
from problems import METHODS, objective

CONSTRAINTS = ["always", "never", "budget", "per group", "bounds"]


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_without_constraints_the_models_would_break_them(loss, constraint):
    assert not case(loss).keeps(constraint, case(loss).free)


# Backward says so where limits end its path; see test_the_reason_is_the_limit.
@pytest.mark.filterwarnings("ignore:k=. features were requested")
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_model_of_a_path_keeps_the_constraint(loss, constraint, method, kind):
    c = case(loss)
    model = estimator(loss, k=K, method=method, **c.constraints[constraint]).fit(FORMATS[kind](c.X), c.y)
    path = model.path_
    assert path[0].support.size == 0
    largest = {"budget": 3, "always": K}.get(constraint, 3)
    assert path.sizes[-1] >= largest
    assert path.sizes[-1] <= K
    for one in path:
        if one.size:
            assert c.keeps(constraint, one)
            assert one.size == len(one.support)
    if constraint == "always":
        assert path.sizes == [0, *range(2, K + 1)]
        assert path[2].support.tolist() == c.others[:2]
    values = [one.objective for one in path]
    slack = 1e-3 * values[0] if loss == "absolute_error" else 1e-9
    assert np.all(np.diff(values) <= slack)
    assert model.k_ == model.path_.sizes[-1] == len(model.support_)


@pytest.mark.filterwarnings("ignore:k=. features were requested")
@pytest.mark.parametrize("constraint", ["always", "never", "budget", "per group"])
@pytest.mark.parametrize("loss", LOSSES)
def test_models_under_limits_are_the_best_on_their_supports(loss, constraint):
    c = case(loss)
    for one in estimator(loss, k=K, **c.constraints[constraint]).fit(c.X, c.y).path_:
        best = least(loss, c.X, c.y, one.support)
        assert one.objective == pytest.approx(value_of(loss, c.X, c.y, one), rel=1e-7)
        assert one.objective <= best + (1e-3 * case_null(c) if loss == "absolute_error" else 1e-7 * best)
        assert one.objective >= best * (1 - 1e-7)


# What is always in, and what is never.


@pytest.mark.parametrize("method", METHODS)
def test_always_alone_fills_k(method):
    X, y, _ = uneven("squared_error", seed=5)
    model = SparseRegressor(k=3, always=[8, 0, 4], method=method).fit(X, y)
    assert model.support_.tolist() == [0, 4, 8]
    assert model.path_.sizes == [0, 3]
    assert model.stop_ is Stop.SIZE
    assert model.objective_ == pytest.approx(objective(X, y, [0, 4, 8]), rel=1e-9)
    assert model.path_[0].objective == pytest.approx(objective(X, y, []), rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_a_useless_column_that_is_always_in_stays_in(method):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    y = X[:, 1] - X[:, 2] + 0.1 * rng.standard_normal(60)
    for model in SparseRegressor(k=4, always=[5], method=method).fit(X, y).path_:
        assert model.size == 0 or 5 in model.support
    assert SparseRegressor(k=3, always=[5], method=method).fit(X, y).support_.tolist() == [1, 2, 5]


def test_sizes_below_what_is_always_in_are_not_on_the_path():
    X, y, _ = uneven("squared_error", seed=5)
    model = SparseRegressor(k=5, always=[8, 0, 4]).fit(X, y)
    assert model.at(3).support_.tolist() == [0, 4, 8]
    with pytest.raises(KeyError, match="no model of size 2 on this path; it has sizes 0, 3-5"):
        model.at(2)


@pytest.mark.parametrize("method", METHODS)
def test_never_leaves_no_choice(method):
    X, y, _ = uneven("squared_error", seed=5)
    model = SparseRegressor(k=2, never=range(7), method=method).fit(X, y)
    assert model.support_.tolist() == [7, 8]
    assert SparseRegressor(k=None, never=range(9), method=method).fit(X, y).k_ == 0


def test_names_indices_and_labels_mean_the_same():
    X, y, _ = uneven("squared_error", seed=6)
    frame = pd.DataFrame(X, columns=list("abcdefghi"))
    by_index = SparseRegressor(k=4, always=[7], never=[1, 2]).fit(X, y)
    for always, never in ((["h"], ["b", "c"]), ([7], ("b", 2)), (np.array([7]), np.array(["b", "c"]))):
        by_name = SparseRegressor(k=4, always=always, never=never).fit(frame, y)
        np.testing.assert_allclose(by_name.coef_, by_index.coef_, rtol=1e-9)
    labels = ["u", "u", "v", "v", "w", "w", "x", "x", "x"]
    by_label = SparseRegressor(k=3, feature_groups=labels, always=["x"], never=["u"]).fit(X, y)
    by_column = SparseRegressor(k=3, feature_groups=labels, always=["i", "g"], never=["b"]).fit(frame, y)
    assert by_label.feature_groups_.tolist() == by_column.feature_groups_.tolist() == ["v", "w", "x"]
    np.testing.assert_allclose(by_label.coef_, by_column.coef_, rtol=1e-6)
    prices = dict(zip("abcdefghi", range(1, 10), strict=True))
    listed = SparseRegressor(k=None, costs=list(prices.values()), budget=12).fit(X, y)
    named = SparseRegressor(k=None, costs=prices, budget=12).fit(frame, y)
    np.testing.assert_allclose(named.coef_, listed.coef_, rtol=1e-9)


@pytest.mark.parametrize("loss", ["squared_error", "huber"])
@pytest.mark.parametrize("method", METHODS)
def test_what_is_always_in_may_not_depend_on_itself(method, loss):
    """Neither a singular matrix nor arbitrary coefficients: an error, before any work, that names the column."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6))
    y = X @ [1.0, 1, 0, 0, 2, 0] + rng.standard_normal(80)
    X = np.column_stack([X, X[:, 0] + X[:, 1], X[:, 0]])
    with pytest.raises(ValueError, match=r"always.*x[67]"):
        SparseRegressor(k=5, loss=loss, always=[0, 1, 6, 7], method=method).fit(X, y)


# Prices.


@pytest.mark.parametrize("method", METHODS)
def test_tenths_add_up_as_people_expect(method):
    X, y, _ = uneven("squared_error", seed=7)
    assert 0.3 - 0.1 - 0.1 < 0.1
    for unit, budget in ((0.1, 0.3), (1e-7, 3e-7), (1e9, 3e9)):
        model = SparseRegressor(k=None, costs=[unit] * 9, budget=budget, method=method).fit(X, y)
        assert model.k_ == 3
        assert SparseRegressor(k=3, always=[1, 2, 3], costs=[unit] * 9, budget=budget, method=method).fit(X, y).k_ == 3
    dear = SparseRegressor(k=None, costs=[0.1 + 1e-6] * 9, budget=0.3, method=method).fit(X, y)
    assert dear.k_ == 2


@pytest.mark.parametrize("method", METHODS)
def test_columns_without_a_price_are_always_payable(method):
    X, y, _ = uneven("squared_error", seed=8)
    costs = [0, 5, 0, 5, 0, 5, 5, 5, 5]
    model = SparseRegressor(k=None, costs=costs, budget=0, method=method).fit(X, y)
    assert set(model.support_) == {0, 2, 4}
    paid = SparseRegressor(k=None, costs=costs, budget=5, method=method).fit(X, y)
    assert sum(costs[j] for j in paid.support_) <= 5
    assert {0, 2, 4} < set(paid.support_)
    free = SparseRegressor(k=4, costs=[0] * 9, budget=0, method=method).fit(X, y)
    assert free.path_.moves == SparseRegressor(k=4, method=method).fit(X, y).path_.moves


@pytest.mark.parametrize("method", ["forward", "foba", "exchange"])
def test_prices_without_a_budget_rank_and_do_not_limit(method):
    X, y, _ = uneven("squared_error", seed=9)
    model = SparseRegressor(k=9, costs=range(1, 10), method=method).fit(X, y)
    assert model.k_ == 9
    assert model.stop_ is Stop.SIZE


def test_forward_takes_the_largest_gain_for_its_price():
    X, y, _ = uneven("squared_error", seed=10)
    price = np.array([1, 7, 2, 5, 1, 3, 9, 4, 2.0])
    values = all_least_squares(X, y)
    for rule in ("objective", "refit"):
        path = SparseRegressor(k=1, costs=price, budget=100, method=Forward(rule=rule)).fit(X, y).path_
        gain_per_price = [(values[()] - values[j,]) / price[j] for j in range(9)]
        assert path[1].support.tolist() == [int(np.argmax(gain_per_price))]
    smooth = SparseRegressor(k=1, loss="huber", costs=price, budget=100, method="forward").fit(X, y)
    dear = SparseRegressor(k=1, loss="huber", method="forward").fit(X, y)
    assert price[smooth.support_[0]] < price[dear.support_[0]] or smooth.support_[0] == dear.support_[0]


def test_a_group_costs_what_its_columns_cost_unless_a_dict_says_otherwise():
    X, y, _ = uneven("squared_error", seed=11)
    labels = np.array(list("aaabbccdd"))
    values = all_least_squares(X, y, [np.flatnonzero(labels == g) for g in "abcd"])
    sums = np.array([6.0, 9, 13, 17])
    for costs, price in ((range(1, 10), sums), ({"a": 5, "b": 1, "c": 2, "d": 1}, np.array([5, 1, 2, 1.0]))):
        budget = price.sum() / 2
        model = SparseRegressor(k=None, feature_groups=labels, costs=costs, budget=budget).fit(X, y)
        codes = [list("abcd").index(g) for g in model.feature_groups_]
        assert price[codes].sum() <= budget
        assert model.objective_ >= optimum(values, lambda S, p=price, b=budget: p[list(S)].sum() <= b) * (1 - 1e-7)


def test_prices_of_columns_by_name_add_up_to_those_of_groups():
    X, y, _ = uneven("squared_error", seed=11)
    frame = pd.DataFrame(X, columns=list("abcdefghi"))
    groups = dict(zip("abcdefghi", [*"pppqqqrrr"], strict=True))
    costs = dict.fromkeys("abcdefghi", 1.0)
    model = SparseRegressor(k=None, feature_groups=groups, costs=costs, budget=3).fit(frame, y)
    assert sum(costs[name] for name in model.get_feature_names_out()) <= 3


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("loss", ["squared_error", "huber"])
@pytest.mark.parametrize("k", [None, 2])
def test_units_dearer_than_the_budget_do_not_stand_in_the_way(method, loss, k):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6))
    y = X @ [1.0, 1, 0, 0, 2, 0] + rng.standard_normal(80)
    model = SparseRegressor(k=k, loss=loss, costs=[5, 1, 1, 5, 5, 1], budget=2, method=method).fit(X, y)
    assert 1 in model.support_


@pytest.mark.parametrize("method", METHODS)
def test_the_reason_is_the_limit(method):
    X, y, _ = uneven("squared_error", seed=12)
    prices, places = {"costs": [1] * 9, "budget": 2}, {"feature_groups": [0] * 4 + [1] * 5, "max_per_group": 1}
    cases = [(prices, "budget=2"), (places, "max_per_group=1"), ({**prices, **places}, "budget=2 and max_per_group=1")]
    for constraint, given in cases:
        words = f"k=5 features .* ended at 2: no other fits in {given}. Allow more or ask for fewer.$"
        with pytest.warns(PaucaWarning, match=words) as caught:
            model = SparseRegressor(k=5, method=method, **constraint).fit(X, y)
        assert len(caught) == 1
        assert model.k_ == 2
        assert model.stop_ is Stop.LIMITS
        assert "Nothing further fits in the limits given: budget" in model.summary()


@pytest.mark.parametrize("method", METHODS)
def test_limits_without_a_size_are_no_news(method):
    """Who gives no k asks for what the budget holds, and gets it without a warning; so does who gives a k that fits."""
    X, y, _ = uneven("squared_error", seed=12)
    for k in (None, 2):
        assert SparseRegressor(k=k, costs=[1] * 9, budget=2, method=method).fit(X, y).k_ == 2
    assert SparseRegressor(tol=1e9, k=2, method="forward").fit(X, y).k_ == 0


# ConstraintParser together, and with all else.


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.filterwarnings("ignore:k=. features were requested")
def test_many_constraints_with_ridge_and_weights(loss, method, kind):
    """Everything at once: each constraint is kept, and the model is the best on its support."""
    c = case(loss)
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 4, len(c.y)).astype(float)
    ridge = 0.05 * np.median(c.scale) ** 2
    sign = np.where(rng.random(9) < 0.5, 1, -1)
    low, high = np.where(sign > 0, 0, -np.inf), np.where(sign > 0, 0.4 / c.scale, 0)
    constraints = {
        "always": [c.others[0]],
        "never": [c.chosen[0]],
        "costs": np.arange(1, 10) / 10,
        "budget": 2.5,
        "feature_groups": np.arange(9) % 4,
        "max_per_group": 2,
        "bounds": {j: (low[j], high[j]) for j in range(9)},
    }
    model = estimator(loss, k=4, ridge=ridge, method=method, **constraints)
    model.fit(FORMATS[kind](c.X), c.y, sample_weight=weights)
    assert model.k_ >= 2
    for one in model.path_:
        w, S = np.ravel(one.coef), one.support
        assert one.objective == pytest.approx(value_of(loss, c.X, c.y, one, weights=weights, ridge=ridge), rel=1e-7)
        if not one.size:
            continue
        assert c.others[0] in S
        assert c.chosen[0] not in S
        assert (S + 1).sum() <= 25
        assert np.bincount(S % 4).max() <= 2
        assert np.all(w >= low[S])
        assert np.all(w <= high[S] * (1 + 1e-12))
        if loss != "absolute_error":
            best = least(loss, c.X, c.y, S, weights=weights, ridge=ridge, lower=low, upper=high)
            assert one.objective == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.filterwarnings("ignore:k=. features were requested")
def test_weights_equal_repetition_under_constraints(constraint, method):
    c = case("squared_error")
    weights = np.random.default_rng(1).integers(0, 3, len(c.y))
    params = {"k": K, "method": method, **c.constraints[constraint]}
    weighted = SparseRegressor(**params).fit(c.X, c.y, sample_weight=weights).path_
    repeated = SparseRegressor(**params).fit(np.repeat(c.X, weights, axis=0), np.repeat(c.y, weights)).path_
    assert weighted.moves == repeated.moves
    for a, b in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(a.coef, b.coef, rtol=1e-6, atol=1e-12)


def cut_short(loss, constraint, method):
    """A run stopped after every move and taken up again, beside one that was not; and the number of calls it took."""
    c = case(loss)
    params = {"k": K, "method": method, **c.constraints[constraint]}
    whole = estimator(loss, **params).fit(c.X, c.y)
    part = estimator(loss, warm_start=True, callback=lambda progress: True, **params)
    for calls in range(1, 40):
        before = part.fit(c.X, c.y).path_
        assert all(c.keeps(constraint, one) for one in before if one.size)
        if part.stop_ is not Stop.CALLBACK:
            break
        assert len(before.moves) == calls
    return part, whole, calls


@pytest.mark.filterwarnings("ignore:k=. features were requested")
@pytest.mark.parametrize("method", ["forward", FoBa(nu=0.8), "exchange"], ids=["forward", "foba", "exchange"])
@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_a_run_cut_short_goes_on_the_same_way(loss, constraint, method):
    part, whole, calls = cut_short(loss, constraint, method)
    assert part.path_.moves == whole.path_.moves
    assert len(whole.path_.moves) == calls - 1
    assert part.stop_ is whole.stop_
    for a, b in zip(part.path_, whole.path_, strict=True):
        np.testing.assert_allclose(a.coef, b.coef, rtol=1e-5)


@pytest.mark.parametrize("constraint", ["always", "never", "bounds"])
def test_a_backward_run_cut_short_goes_on(constraint):
    part, whole, _ = cut_short("squared_error", constraint, "backward")
    assert part.path_.moves == whole.path_.moves


@pytest.mark.filterwarnings("ignore:k=. features were requested")
def test_other_constraints_begin_afresh():
    c = case("squared_error")
    model = SparseRegressor(k=K, warm_start=True)
    wider = {"bounds": {j: (-1 / c.scale[j], 1 / c.scale[j]) for j in range(9)}}
    for constraints in (*(c.constraints[constraint] for constraint in CONSTRAINTS), wider, {"ridge": 1e-9}):
        reset = dict.fromkeys(["always", "never", "costs", "budget", "bounds", "feature_groups", "max_per_group"])
        model.set_params(**(reset | constraints)).fit(c.X, c.y)
        afresh = SparseRegressor(k=K, **constraints).fit(c.X, c.y)
        assert model.path_.moves == afresh.path_.moves
        np.testing.assert_array_equal(model.coef_, afresh.coef_)
    constraint = c.constraints["budget"]
    model.set_params(**(reset | constraint), ridge=0.0).fit(c.X, c.y)
    less = model.set_params(budget=0.5).fit(c.X, c.y)
    assert sum(constraint["costs"][j] for j in less.support_) <= 0.5 * (1 + 1e-9)
    dearer = model.set_params(costs=[0.4] * 9, budget=0.9).fit(c.X, c.y)
    assert dearer.k_ == 2


@pytest.mark.filterwarnings("ignore:k=. features were requested")
def test_a_larger_goal_goes_on_under_the_same_limits():
    c = case("squared_error")
    for constraint in CONSTRAINTS:
        model = SparseRegressor(k=3, warm_start=True, **c.constraints[constraint]).fit(c.X, c.y)
        events = model.path_.moves
        model.set_params(k=K).fit(c.X, c.y)
        assert model.path_.moves[: len(events)] == events
        assert model.path_.moves == SparseRegressor(k=K, **c.constraints[constraint]).fit(c.X, c.y).path_.moves


@pytest.mark.parametrize("method", METHODS)
def test_several_classes_under_limits(method):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 6))
    y = np.argmax(X @ rng.normal(0, 1, (6, 3)) + rng.gumbel(size=(120, 3)), axis=1)
    costs = np.array([1, 2, 3, 1, 2, 3.0])
    model = SparseClassifier(k=None, costs=costs, budget=6, always=[2], never=[0], method=method).fit(X, y)
    for one in model.path_:
        if one.size:
            assert costs[one.support].sum() <= 6
            assert 2 in one.support
            assert 0 not in one.support
            assert one.coef.shape == (3, one.size)
            assert one.objective == pytest.approx(least("log_loss", X, y, one.support), rel=1e-6)
    assert model.k_ >= 2
