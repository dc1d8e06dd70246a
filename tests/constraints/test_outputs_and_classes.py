"""Features with a coefficient for every output or class: shared supports, judged by enumeration."""

import numpy as np
import pandas as pd
import pytest
from constraint_judges import all_least_squares, least, losses_and_slopes, optimum, slopes_of, value_of
from group_tables import LABELS, three_classes
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from pauca import SparseClassifier, SparseRegressor
from pauca.losses import Multinomial
from pauca.methods import Forward
from problems import METHODS, ar_problem, integers, objective

# Several outputs.


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("loss", ["squared_error", "huber", "poisson"])
def test_outputs_share_a_support_and_are_each_fitted_on_it(table, method, loss):
    X, y = table
    rng = np.random.default_rng(0)
    Y = np.column_stack([y, X[:, 2] - X[:, 5] + rng.standard_normal(60), 0.3 * y + rng.standard_normal(60)])
    if loss == "poisson":
        Y = rng.poisson(np.exp(Y / 4)).astype(float)
    threshold = {"loss": loss}
    if loss == "huber":
        from pauca.losses import Huber

        threshold = {"loss": Huber(1.0)}
    model = SparseRegressor(k=4, method=method, **threshold).fit(X, Y)
    assert model.coef_.shape == (3, 8)
    assert model.intercept_.shape == (3,)
    assert model.predict(X).shape == (60, 3)
    assert len(model.support_) == 4
    assert np.all(model.coef_[:, model.support_] != 0)
    others = np.setdiff1d(np.arange(8), model.support_)
    assert not model.coef_[:, others].any()
    total = 0.0
    for c in range(3):
        alone = SparseRegressor(k=4, **threshold).fit(X[:, model.support_], Y[:, c])
        np.testing.assert_allclose(model.coef_[c, model.support_], alone.coef_, rtol=1e-4, atol=1e-6)
        assert model.intercept_[c] == pytest.approx(alone.intercept_, rel=1e-4, abs=1e-6)
        total += alone.objective_
    assert model.objective_ == pytest.approx(total, rel=1e-7)


def test_outputs_of_the_same_numbers_choose_as_one(table):
    X, y = table
    one = SparseRegressor(k=5).fit(X, y).path_
    three = SparseRegressor(k=5).fit(X, np.column_stack([y, -2 * y, y + 5])).path_
    for a, b in zip(one, three, strict=True):
        assert a.support.tolist() == b.support.tolist()
        assert b.objective == pytest.approx(6 * a.objective, rel=1e-7)
        np.testing.assert_allclose(b.coef, np.outer([1, -2, 1], a.coef), rtol=1e-6)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "poisson"])
def test_a_target_of_one_column_is_a_target_of_two_dimensions(table, loss):
    X, y = table
    y = np.abs(y).round() if loss == "poisson" else y
    flat, tall = (SparseRegressor(k=3, loss=loss).fit(X, t) for t in (y, y[:, None]))
    assert (flat.coef_.shape, tall.coef_.shape) == ((8,), (1, 8))
    assert np.shape(flat.intercept_) == ()
    assert tall.intercept_.shape == (1,)
    assert (flat.predict(X).shape, tall.predict(X).shape) == ((60,), (60, 1))
    np.testing.assert_array_equal(flat.coef_, tall.coef_[0])
    assert flat.score(X, y) == pytest.approx(tall.score(X, y[:, None]))
    assert tall.at(2).coef_.shape == (1, 8)


def test_names_of_outputs_are_in_the_summary(table):
    X, y = table
    Y = pd.DataFrame({"weight": y, "height": X[:, 0] - y})
    model = SparseRegressor(k=2).fit(pd.DataFrame(X, columns=list("abcdefgh")), Y)
    assert model.summary().splitlines()[2].split() == ["feature", "weight", "height", "importance"]
    row = next(line.split() for line in model.summary().splitlines() if line.startswith("(intercept)"))
    np.testing.assert_allclose([float(cell) for cell in row[1:]], model.intercept_, rtol=1e-4)
    assert model.path_.output_names == ["weight", "height"]
    assert SparseRegressor(k=2).fit(X, Y.to_numpy()).path_.output_names == ["y0", "y1"]
    assert SparseRegressor(k=2).fit(X, Y["weight"]).path_.output_names is None
    many = SparseRegressor(k=2).fit(X, np.column_stack([y] * 9))
    assert many.summary().splitlines()[2].split() == ["feature", *(f"y{c}" for c in range(6)), "importance"]


def test_several_outputs_against_enumeration():
    found = 0
    for seed in range(8):
        X, Y = ar_problem(50, 9, 4, rho=0.8, seed=seed)
        rng = np.random.default_rng(seed)
        Y = np.column_stack([Y, X @ rng.normal(0, 0.5, 9) + rng.standard_normal(50)])
        values = all_least_squares(X, Y)
        path = SparseRegressor(k=4).fit(X, Y).path_
        first = SparseRegressor(k=1, method=Forward(rule="refit")).fit(X, Y).objective_
        assert first == pytest.approx(optimum(values, size=1), rel=1e-7)
        for size in range(1, 5):
            best = optimum(values, size=size)
            assert path[size].objective >= best * (1 - 1e-7)
            found += path[size].objective <= best * (1 + 1e-7)
    assert found >= 31


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_several_outputs_of_sparse_tables(kind):
    X, y = integers(n=70, d=9, seed=1)
    Y = np.column_stack([y, X[:, 0] * 2 - y])
    model, dense = SparseRegressor(k=3).fit(kind(X), Y), SparseRegressor(k=3).fit(X, Y)
    assert model.support_.tolist() == dense.support_.tolist()
    np.testing.assert_allclose(model.coef_, dense.coef_, rtol=1e-7)
    np.testing.assert_allclose(model.predict(kind(X)), dense.predict(X), rtol=1e-7)


def test_several_outputs_with_weights_and_ridge(table):
    X, y = table
    Y = np.column_stack([y, X[:, 1] + 2 * y])
    weights = np.random.default_rng(1).integers(0, 3, len(y))
    weighted = SparseRegressor(k=3, ridge=0.2, standardize=False).fit(X, Y, sample_weight=weights)
    repeated = SparseRegressor(k=3, ridge=0.2, standardize=False).fit(
        np.repeat(X, weights, axis=0), np.repeat(Y, weights, axis=0)
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-7)
    for one in weighted.path_:
        best = sum(objective(X, Y[:, c], one.support, weights=weights, ridge=0.2) for c in range(2))
        assert one.objective == pytest.approx(best, rel=1e-7)


# Several classes.


@pytest.mark.parametrize("method", METHODS)
def test_shapes_and_probabilities_of_three_classes(method):
    X, y = three_classes()
    model = SparseClassifier(k=3, method=method).fit(X, y)
    assert model.classes_.tolist() == ["low", "mid", "top"]
    assert model.coef_.shape == (3, 8)
    assert model.intercept_.shape == (3,)
    assert len(model.support_) == 3
    assert model.decision_function(X).shape == (90, 3)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    assert np.all(p > 0)
    np.testing.assert_allclose(np.log(p), model.predict_log_proba(X))
    assert model.predict(X).tolist() == model.classes_[p.argmax(axis=1)].tolist()
    losses, _ = losses_and_slopes("log_loss", y, model.decision_function(X))
    assert model.objective_ == pytest.approx(losses.mean(), rel=1e-6)
    assert model.summary().splitlines()[2].split() == ["feature", "low", "mid", "top", "importance"]
    assert model.at(1).coef_.shape == (3, 8)


def test_two_classes_have_one_row():
    X, y = three_classes()
    y = np.where(y == "top", "yes", "no")
    model = SparseClassifier(k=3).fit(X, y)
    assert (model.coef_.shape, model.intercept_.shape) == ((1, 8), (1,))
    assert model.decision_function(X).shape == (90,)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_allclose(np.log(p[:, 1] / p[:, 0]), model.decision_function(X), rtol=1e-9)
    assert set(model.predict(X)) == {"yes", "no"}
    joint = SparseClassifier(k=3, loss=Multinomial()).fit(X, y)
    np.testing.assert_allclose(joint.coef_, model.coef_, rtol=1e-9)
    assert model.summary().splitlines()[2].split() == ["feature", "coefficient", "importance"]


@pytest.mark.parametrize("kind", ["ints", "floats", "bools", "strings"])
def test_classes_of_any_kind_come_back_as_they_were(kind):
    X, y = three_classes()
    code = np.unique(y, return_inverse=True)[1]
    given = {"ints": code * 10 - 5, "floats": code + 0.0, "bools": code > 0, "strings": np.array(["z", "é", "a"])[code]}
    model = SparseClassifier(k=3).fit(X, given[kind])
    assert model.predict(X).dtype == given[kind].dtype
    assert set(model.predict(X)) <= set(given[kind])
    assert model.score(X, given[kind]) > 0.6
    assert model.classes_.tolist() == sorted(set(given[kind].tolist()))


def test_multinomial_equals_scikit_learn_on_the_support():
    X, y = three_classes()
    ridge = 0.05
    model = SparseClassifier(k=3, ridge=ridge, standardize=False).fit(X, y)
    other = LogisticRegression(C=1 / (ridge * len(y)), tol=1e-10, max_iter=10_000).fit(X[:, model.support_], y)
    np.testing.assert_allclose(model.coef_[:, model.support_], other.coef_, atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X[:, model.support_]), atol=1e-6)
    for one in model.path_:
        along, shift = slopes_of("log_loss", X, y, one, ridge=ridge)
        assert max(np.abs(along).max(initial=0), np.abs(shift).max()) < 1e-5
        assert one.objective == pytest.approx(value_of("log_loss", X, y, one, ridge=ridge), rel=1e-7)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_margins_tell_each_class_from_all_others(loss):
    X, y = three_classes()
    options = {"k": 3, "loss": loss, "ridge": 0.05, "standardize": False}
    model = SparseClassifier(**options).fit(X, y)
    assert model.coef_.shape == (3, 8)
    assert not hasattr(model, "predict_proba")
    assert model.predict(X).tolist() == model.classes_[model.decision_function(X).argmax(axis=1)].tolist()
    total = 0.0
    for c, label in enumerate(model.classes_):
        alone = SparseClassifier(**options).fit(X[:, model.support_], y == label)
        total += alone.objective_
        if loss == "squared_hinge":
            np.testing.assert_allclose(model.coef_[c, model.support_], alone.coef_[0], rtol=1e-4, atol=1e-5)
            svm = LinearSVC(C=1.0, intercept_scaling=1e4, max_iter=1).set_params(max_iter=200_000, tol=1e-8)
            svm.C = 1 / (2 * 0.05 * len(y))
            svm.fit(X[:, model.support_], y == label)
            np.testing.assert_allclose(model.coef_[c, model.support_], svm.coef_[0], atol=2e-3)
    assert model.objective_ == pytest.approx(total, rel=3e-3 if loss == "hinge" else 1e-7)


def test_multinomial_with_groups_weights_and_sparse_tables():
    X, y = integers(n=80, d=8, seed=2)
    y = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    params = {"k": 2, "feature_groups": LABELS, "ridge": 0.01, "standardize": False}
    weighted = SparseClassifier(**params).fit(sparse.csr_array(X), y, sample_weight=weights)
    repeated = SparseClassifier(**params).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert weighted.feature_groups_.tolist() == repeated.feature_groups_.tolist()
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-4, atol=1e-7)
    best = least("log_loss", X, y, weighted.support_, weights=weights, ridge=0.01)
    assert weighted.objective_ == pytest.approx(best, rel=1e-6)


def test_balanced_classes_are_sample_weights():
    X, y = three_classes()
    share = {label: (y == label).mean() for label in np.unique(y)}
    balanced = SparseClassifier(k=2, class_weight="balanced").fit(X, y)
    by_hand = SparseClassifier(k=2).fit(X, y, sample_weight=[1 / share[label] for label in y])
    named = SparseClassifier(k=2, class_weight={label: 1 / s for label, s in share.items()}).fit(X, y)
    np.testing.assert_allclose(balanced.coef_, by_hand.coef_, rtol=1e-8)
    np.testing.assert_allclose(named.coef_, by_hand.coef_, rtol=1e-8)
