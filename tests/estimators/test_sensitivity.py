"""What else could have been chosen, and how often a choice comes out the same."""

import pickle

import numpy as np
import pandas as pd
import pytest

from pauca import SparseClassifier, SparseRegressor
from pauca.estimators.training_data import search_one_size
from pauca.methods import Forward
from pauca.results.stability import halves
from pauca.runs.run import Budget, Goal, SearchRun


def table(n=80, d=7, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.7 * rng.standard_normal((n, 1))
    return X, X[:, :3] @ [2.0, -1.0, 1.0] + rng.standard_normal(n)


def labels(X, y):
    return np.where(y + np.random.default_rng(1).logistic(size=len(y)) > y.mean(), "sick", "well")


CASES = {
    "squared_error": lambda X, y: (SparseRegressor(k=3), y),
    "squared, ridge": lambda X, y: (SparseRegressor(k=3, ridge=0.3), y),
    "log_loss": lambda X, y: (SparseClassifier(k=3), labels(X, y)),
    "huber": lambda X, y: (SparseRegressor(k=3, loss="huber"), y),
    "two outputs": lambda X, y: (SparseRegressor(k=3), np.column_stack([y, X[:, 4] - y])),
    "three classes": lambda X, y: (SparseClassifier(k=2), np.digitize(y, [-2, 2])),
}


@pytest.mark.filterwarnings("ignore:The data are separable")
@pytest.mark.parametrize("case", CASES)
def test_alternatives_are_refits_of_all_exchanges(case):
    X, y = table()
    estimator, y = CASES[case](X, y)
    model = estimator.fit(X, y)
    k, inside = model.k_, model.support_.tolist()
    found = {}
    for record in model.alternatives(count=2):
        found.setdefault(int(record["feature"][1:]), []).append(record)
    assert sorted(found) == inside
    for out in inside:
        kept = [j for j in inside if j != out]
        costs = {}
        for j in set(range(X.shape[1])) - set(inside):
            refit = type(estimator)(**{**estimator.get_params(), "always": [*kept, j], "method": "forward"}).fit(X, y)
            assert refit.k_ == k
            costs[j] = refit.objective_
        best = sorted(costs, key=costs.get)[:2]
        assert [int(record["replacement"][1:]) for record in found[out]] == best
        for record, j in zip(found[out], best, strict=True):
            assert record["objective"] == pytest.approx(costs[j], rel=1e-6)
            lost = (costs[j] - model.objective_) / model.path_[0].objective
            assert record["explained_lost"] == pytest.approx(lost, abs=1e-6)


def test_a_copy_can_take_the_place_of_its_original_for_nothing():
    X, y = table()
    X = np.column_stack([X, -5 * X[:, 0]])
    with pytest.warns(match="linear combinations"):
        model = SparseRegressor(k=8, method="forward").fit(X, y)
    model = model.at(3)
    first = {record["feature"]: record for record in reversed(model.alternatives(count=1))}
    assert first["x0"]["replacement"] == "x7"
    assert first["x0"]["explained_lost"] == pytest.approx(0, abs=1e-9)


def test_alternatives_keep_the_constraints():
    X, y = table()
    model = SparseRegressor(k=3, always=[6], never=[5]).fit(X, y)
    records = model.alternatives(count=10)
    assert "x6" not in {record["feature"] for record in records}
    assert not {"x5", "x6"} & {record["replacement"] for record in records}
    groups = SparseRegressor(k=2, feature_groups=["a", "a", "b", "b", "c", "c", "d"]).fit(X, y)
    assert {record["feature"] for record in groups.alternatives()} == set(groups.feature_groups_)


def test_alternatives_of_another_size_and_of_none():
    X, y = table()
    model = SparseRegressor(k=3).fit(X, y)
    assert {record["feature"] for record in model.at(1).alternatives()} == set(model.path_.names(1))
    assert model.at(0).alternatives() == []


def test_alternatives_are_compared_at_the_ridge_of_the_model():
    X, y = table()
    model, same = (SparseRegressor(k=3, ridge=0.1, search_ridge=ridge).fit(X, y) for ridge in (1.0, 0.1))
    assert model.path_.names(3) == same.path_.names(3)
    assert list(model.alternatives()) == list(same.alternatives())
    assert "compared" not in str(model.alternatives())
    found = SparseRegressor(k=3, ridge=0.1, search_ridge=50.0).fit(X, y).alternatives()
    said = "features were searched at ridge 50, and here models are compared at ridge 0.1, that of the model."
    assert said in str(found)
    assert min(one["explained_lost"] for one in found) < 0
    assert "no other feature is left" in str(SparseRegressor(k=7).fit(X, y).alternatives())


def test_with_a_ridge_alternatives_name_the_rise_of_the_objective():
    X, y = table()
    plain, shrunken = (SparseRegressor(k=3, ridge=ridge).fit(X, y) for ridge in (0.0, 0.5))
    assert "explained lost" in str(plain.alternatives())
    assert "objective" not in str(plain.alternatives())
    found = shrunken.alternatives(count=1)
    assert "rise of objective" in str(found)
    assert "explained" not in str(found)
    assert "the ridge included, as a share of the empty model's" in str(found)
    rise = (found[0]["objective"] - shrunken.objective_) / shrunken.path_[0].objective
    assert found[0]["explained_lost"] == pytest.approx(rise)


def test_what_is_printed_is_a_table():
    X, y = table()
    model = SparseRegressor(k=2).fit(X, y)
    for found in (model.stability(4), model.alternatives(), model.inference(), model.evaluate()):
        assert str(found) == found.summary()
        assert len(str(found).splitlines()) > 3
    assert str(model.stability_).splitlines()[2].split()[-1] == "yes"


def test_strong_features_are_stable_and_noise_is_not():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((200, 10)), columns=list("abcdefghij"))
    y = 3 * X["b"] - 2 * X["e"] + rng.standard_normal(200)
    model = SparseRegressor(k=3).fit(X, y)
    found = model.stability(n_resamples=20)
    assert found is model.stability_
    assert found.frequency["b"] == found.frequency["e"] == 1.0
    assert sum(found.frequency.values()) == pytest.approx(3.0)
    assert max(share for name, share in found.frequency.items() if name not in "be") < 1.0
    assert list(found.frequency.values()) == sorted(found.frequency.values(), reverse=True)
    assert found.frequency == model.stability(n_resamples=20, n_jobs=2).frequency
    assert found.frequency != model.stability(n_resamples=20, random_state=1).frequency
    assert {record["name"] for record in found.table() if record["chosen"]} == set(model.path_.names(3))


def test_stability_by_hand():
    X, y = table()
    model = SparseRegressor(k=2).fit(X, y)
    counts = np.zeros(7)
    for weights in halves(6, np.full(80, 1 / 80), np.zeros(80), 0):
        counts[SparseRegressor(k=2).fit(X[weights > 0], y[weights > 0]).support_] += 1
    found = model.stability(n_resamples=6).frequency
    assert found == {f"x{j}": counts[j] / 6 for j in sorted(range(7), key=lambda j: -counts[j]) if counts[j]}


def test_halves_make_up_the_whole_and_keep_classes():
    weights = np.r_[np.full(31, 1.0), np.zeros(9)]
    strata = np.repeat([0, 1], [6, 34])
    found = halves(8, weights / 31, strata, 0)
    for first, second in zip(found[::2], found[1::2], strict=True):
        assert np.array_equal((first > 0) ^ (second > 0), weights > 0)
        for half in (first, second):
            assert half.sum() == pytest.approx(1)
            assert (half[:6] > 0).sum() == 3
            assert not half[31:].any()


def test_what_needs_data_says_so():
    X, y = table()
    model = SparseRegressor(k=2).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    for call in (again.alternatives, again.stability):
        with pytest.raises(ValueError, match=r"needs the data of the fit.*fit the model again"):
            call()
    with pytest.raises(ValueError, match=r"call stability\(\) first"):
        model.plot_stability()
    with pytest.raises(ValueError, match=r"'count' parameter of alternatives must be an int in the range \[1, inf\)"):
        model.alternatives(0)


def test_the_picture_names_what_it_shows():
    X, y = table()
    model = SparseRegressor(k=2).fit(X, y)
    model.stability(n_resamples=4)
    ax = model.plot_stability(most=3)
    assert [label.get_text() for label in ax.get_yticklabels()] == [r["name"] for r in model.stability_.table()[:3]]
    assert "4 resamples" in ax.get_title(loc="left")


def test_doubt_is_over_after_another_fit():
    X, y = table()
    model = SparseRegressor(k=2).fit(X, y)
    model.stability(n_resamples=4)
    model.alternatives()
    model.fit(X, -y)
    assert not hasattr(model, "stability_")
    assert not hasattr(model, "alternatives_")


def test_halves_are_searched_for_one_size_to_where_no_swap_helps():
    """Of losses that take refits the sizes below are passed through; the model is one that no swap improves."""
    X, y = table(d=12)
    data = SparseClassifier(k=4, ridge=0.01).fit(X, labels(X, y))._training_data
    run = data.problem.begin(data.weights)
    ended = search_one_size(run, 4, Budget())
    forward = SearchRun(Forward(), run.design, run.subset.restarted()).advance(Goal(4), Budget())
    assert len(ended.best[4].support) == run.subset.size == 4
    assert run.subset.best_swap() is None
    assert ended.best[4].value <= forward.best[4].value
    assert len(forward.best) == 5
    assert sorted(ended.best) == [0, 4]
