"""sparsify: from a dense model to a sparse one, what can be done with it, and invalid input."""

import pickle
from contextlib import nullcontext
from copy import deepcopy
from math import ceil, log2

import numpy as np
import pandas as pd
import pytest
from dense_models import DRAWN, LOSSES, correlated, targets_of, weights_of
from judges import shares
from scipy import sparse
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeRegressor

import pauca
from pauca import L1Classifier, L1Regressor, SparseClassifier, SparseRegressor, sparsify
from pauca.losses import Hinge, Huber, LogLoss, Poisson, SquaredError, SquaredHinge
from pauca.sparsification.draws import TRUNCATIONS
from problems import DESIGNS, integers, objective

# From a dense model to a sparse one.


@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize("truncation", TRUNCATIONS)
def test_objectives_are_those_of_the_models_returned(truncation, refit):
    X, y, coef = correlated()
    v = shares(weights_of(60, True), 60)
    found = sparsify(
        coef[0],
        X,
        y[0],
        k=4,
        truncation=truncation,
        refit=refit,
        ridge=0.2,
        sample_weight=weights_of(60, True),
        random_state=3,
    )
    residual = y[0] - found.predict(X)
    np.testing.assert_allclose(found.objective_, 0.5 * v @ residual**2 + 0.1 * np.sum(found.coef_**2), rtol=1e-9)
    drawn = np.zeros(14)
    drawn[found.drawn.support] = found.drawn.values
    left = y[0] - X @ drawn
    np.testing.assert_allclose(
        found.drawn_objective, 0.5 * v @ (left - v @ left) ** 2 + 0.1 * np.sum(drawn**2), rtol=1e-9
    )
    np.testing.assert_allclose(found.measured_excess, found.drawn_objective - found.dense_objective)
    np.testing.assert_allclose(found.excess, found.objective_ - found.dense_objective)
    assert (found.excess < found.measured_excess) if refit else (found.excess == found.measured_excess)
    assert f"excess {found.excess:.6g} over the dense model" in found.summary()
    assert (f"before the refit: {found.measured_excess:.6g}" in found.summary()) == refit
    np.testing.assert_array_equal(found.support_, np.flatnonzero(found.coef_))
    if refit:
        np.testing.assert_allclose(
            found.objective_, objective(X, y[0], found.support_, weights=v, ridge=0.2), rtol=1e-9
        )
        assert found.objective_ <= found.drawn_objective
    else:
        np.testing.assert_allclose(found.coef_, drawn)


@pytest.mark.parametrize("name", [*LOSSES, "squared_error"])
def test_refits_are_never_worse(name):
    loss, outputs = {**LOSSES, "squared_error": (SquaredError(), 2)}[name]
    X, y, coef = correlated(5, outputs=outputs)
    target = targets_of(loss, outputs, y)
    for truncation in TRUNCATIONS:
        found = sparsify(
            coef / 5,
            X,
            target if loss.joint else target.T if outputs > 1 and not loss.classifies else _labels(target),
            k=4,
            truncation=truncation,
            loss=loss,
            random_state=0,
        )
        assert found.objective_ <= found.drawn_objective
        assert found.refitted


def _labels(target):
    """Signs of one or of several outputs as classes."""
    return target[0] if len(target) == 1 else target.argmax(axis=0)


def test_without_y_the_scores_of_the_model_are_the_target():
    X, y, _ = correlated()
    dense = Ridge().fit(X, y[0])
    for truncation in TRUNCATIONS:
        found = sparsify(dense, X, k=4, truncation=truncation, random_state=0)
        gap = dense.predict(X) - found.predict(X)
        np.testing.assert_allclose(found.objective_, 0.5 * np.mean(gap**2))
        np.testing.assert_allclose(found.objective_, objective(X, dense.predict(X), found.support_), rtol=1e-9)
        assert found.dense_objective == pytest.approx(0, abs=1e-12)
        bare = sparsify(dense.coef_, X, k=4, truncation=truncation, random_state=0, intercept=dense.intercept_)
        np.testing.assert_allclose(bare.predict(X), found.predict(X))
        without = sparsify(dense.coef_, X, k=4, truncation=truncation, random_state=0)
        np.testing.assert_allclose(without.predict(X), found.predict(X) - dense.intercept_)


def test_exchange_finds_what_a_regression_of_the_scores_finds():
    X, y, _ = correlated()
    X = np.delete(X, 4, axis=1)  # it is constant, of which a fit would warn
    dense = Ridge().fit(X, y[0])
    found = sparsify(dense, X, k=4, truncation="exchange", ridge=0.5)
    alone = SparseRegressor(k=4, ridge=0.5, standardize=False).fit(X, dense.predict(X))
    np.testing.assert_array_equal(found.support_, alone.support_)
    np.testing.assert_allclose(found.objective_, alone.objective_, rtol=1e-9)
    np.testing.assert_allclose(found.predict(X), alone.predict(X), rtol=1e-6)
    assert found.expectation == "none"
    assert found.bound is None


@pytest.mark.parametrize("name", [*LOSSES, "squared_error"])
def test_exchange_is_never_worse_than_truncation(name):
    loss, outputs = {**LOSSES, "squared_error": (SquaredError(), 2)}[name]
    X, y, coef = correlated(5, outputs=outputs)
    target = targets_of(loss, outputs, y)
    target = target if loss.joint else target.T if outputs > 1 and not loss.classifies else _labels(target)
    kept, searched = (
        sparsify(coef / 5, X, target, k=4, truncation=truncation, loss=loss, ridge=0.05)
        for truncation in ("truncate", "exchange")
    )
    assert searched.k_ == 4
    assert searched.objective_ <= kept.objective_ * (1 + 1e-9)


def test_exchange_takes_features_that_the_dense_model_does_not_use():
    rng = np.random.default_rng(3)
    shared = rng.normal(size=80)
    X = np.column_stack([shared + 0.4 * rng.normal(size=(6, 80)).T[:, j] for j in range(6)] + [shared])
    dense = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0])
    found = sparsify(dense, X, k=1, truncation="exchange")
    assert found.support_.tolist() == [6]
    assert found.objective_ < sparsify(dense, X, k=1).objective_


def test_exchange_says_where_no_further_feature_helps():
    X, _, _ = correlated()
    with pytest.warns(pauca.PaucaWarning, match="can be taken: no other lowers the objective"):
        found = sparsify(np.eye(14)[3], X, k=3, truncation="exchange")
    assert found.support_.tolist() == [3]


@pytest.mark.parametrize("confidence", [0.3, 0.5, 0.75, 0.95, 0.99])
def test_confidence_sets_the_number_of_draws(confidence):
    X, y, coef = correlated()
    found = sparsify(coef[0], X, y[0], k=3, truncation="moments", confidence=confidence, random_state=0)
    assert len(found.measured) == ceil(log2(1 / (1 - confidence)))
    assert found.measured_excess == found.measured.min()
    assert len(sparsify(coef[0], X, y[0], k=3, truncation="moments", repeats=9).measured) == 9
    assert len(sparsify(coef[0], X, y[0], k=3, confidence=confidence).measured) == 1


def test_confidence_is_kept_where_the_dense_model_is_the_best():
    """Markov: without y no excess is negative, and the best of five exceeds twice the mean in at most 1 of 32 cases."""
    X, _, coef = correlated()
    for truncation in DRAWN:
        found = [sparsify(coef[0], X, k=4, truncation=truncation, refit=False, random_state=seed) for seed in range(40)]
        assert all(one.measured.min() >= -1e-12 for one in found)
        assert np.mean([one.measured_excess > 2 * one.expected_excess for one in found]) <= 0.05


@pytest.mark.parametrize("truncation", DRAWN)
def test_the_same_seed_gives_the_same_model(truncation):
    X, y, coef = correlated()

    def coef_of(state):
        return sparsify(coef[0], X, y[0], k=3, truncation=truncation, refit=False, repeats=1, random_state=state).coef_

    np.testing.assert_array_equal(coef_of(7), coef_of(7))
    np.testing.assert_array_equal(coef_of(7), coef_of(np.random.default_rng(7)))
    np.testing.assert_array_equal(coef_of(np.random.RandomState(7)), coef_of(np.random.RandomState(7)))
    generator = np.random.default_rng(7)
    assert len({coef_of(generator).tobytes() for _ in range(8)}) > 1
    # The commonest systematic draw has a share of 0.61: sixty without a seed are all alike once in 10^12 runs.
    assert len({coef_of(None).tobytes() for _ in range(60)}) > 1


@pytest.mark.parametrize("form", DESIGNS)
@pytest.mark.parametrize("truncation", TRUNCATIONS)
def test_every_form_of_X_gives_the_same(truncation, form):
    X, y = integers()
    coef = Ridge().fit(X, y).coef_
    given = DESIGNS[form](X)
    before = deepcopy(given)
    plain = sparsify(coef, X, y, k=4, truncation=truncation, random_state=0)
    found = sparsify(coef, given, y, k=4, truncation=truncation, random_state=0)
    np.testing.assert_array_equal(found.support_, plain.support_)
    np.testing.assert_allclose(found.coef_, plain.coef_, rtol=1e-9)
    names = [
        "objective_",
        "drawn_objective",
        "dense_objective",
        *([] if truncation == "truncate" else ["expected_excess"]),
    ]
    for name in names:
        np.testing.assert_allclose(getattr(found, name), getattr(plain, name), rtol=1e-9)
    np.testing.assert_allclose(np.asarray(found.predict(given)), plain.predict(X), rtol=1e-9)
    same = given != before if isinstance(given, np.ndarray | sparse.sparray | sparse.spmatrix) else np.zeros(0)
    assert same.nnz == 0 if sparse.issparse(given) else not same.any()


@pytest.mark.parametrize("truncation", TRUNCATIONS)
def test_as_many_as_there_are_is_the_dense_model_or_better(truncation):
    X, y, coef = correlated()
    exact = truncation in {"systematic", "truncate"}
    warning = pytest.warns(pauca.PaucaWarning, match="k=50, but only 12 of 14 features can be taken")
    with warning if exact else nullcontext():
        found = sparsify(coef[0], X, y[0], k=50, truncation=truncation, refit=False, random_state=0)
    assert found.k_ <= 12  # one coefficient is zero, one column is constant
    if exact:
        assert found.k_ == 12
        assert found.model.stop_ == "exhausted"
        np.testing.assert_allclose(found.measured_excess, 0, atol=1e-9 * found.dense_objective)
        np.testing.assert_allclose(found.coef_[found.support_], coef[0][found.support_])
    else:
        assert found.expected_excess > 0


@pytest.mark.filterwarnings("ignore:k=3, but only")
@pytest.mark.parametrize("truncation", TRUNCATIONS)
def test_coefficients_of_zero_give_the_constant_model(truncation):
    X, y, _ = correlated()
    for dense in (Lasso(alpha=1e6).fit(X, y[0]), np.zeros(14), np.where(np.arange(14) == 4, 1.0, 0.0)):
        found = sparsify(dense, X, y[0], k=3, truncation=truncation, random_state=0)
        assert found.k_ == 0
        np.testing.assert_allclose(found.predict(X), np.full(60, y[0].mean()))
        np.testing.assert_allclose([found.measured_excess, found.excess], 0, atol=1e-9 * found.objective_)
        assert found.expected_excess is None or abs(found.expected_excess) <= 1e-9 * found.objective_
        assert "0 features of 14" in found.summary()


def test_linear_models_of_every_kind():
    X, y, _ = correlated(n=90)
    y, two, three = y[0], y[0] > 0, np.array(["a", "b", "c"])[np.digitize(y[0], np.quantile(y[0], [0.3, 0.6]))]
    scaled = StandardScaler().fit_transform(X + np.random.default_rng(0).normal(size=X.shape))
    for model, target, outputs in [
        (Ridge(), y, 1),
        (LinearRegression(fit_intercept=False), y, 1),
        (Ridge(), np.column_stack([y, -y, y**2]), 3),
        (SparseRegressor(k=8, loss="huber"), y, 1),
        (LogisticRegression(), two, 1),
        (LogisticRegression(), three, 3),
        (SGDClassifier(random_state=0), three, 3),
        (LinearSVC(), two, 1),
        (RidgeClassifier(), two, 1),
        (SparseClassifier(k=8), three, 3),
    ]:
        dense = model.fit(scaled, target)
        for given in (target, None):
            found = sparsify(dense, scaled, given, k=7, truncation="systematic", random_state=0)
            assert found.k_ == 7
            assert found.coef_.shape == ((outputs, 14) if outputs > 1 or hasattr(dense, "classes_") else (14,))
            assert found.predict(scaled).shape == target.shape
            assert found.expectation == ("exact" if found.loss.quadratic else "upper bound")
            if hasattr(dense, "classes_"):
                assert set(found.predict(scaled)) <= set(dense.classes_)
                assert np.mean(found.predict(scaled) == dense.predict(scaled)) > 0.5
            if not getattr(dense, "fit_intercept", True):
                assert found.intercept_ == 0


def test_which_loss_is_meant():
    X, y, _ = correlated(n=90)
    X, two = StandardScaler().fit_transform(np.delete(X, 4, axis=1)), np.where(y[0] > 0, "yes", "no")
    for model, loss in [
        (LogisticRegression(), LogLoss()),
        (LinearSVC(), SquaredHinge()),
        (SGDClassifier(random_state=0), Hinge()),
        (SGDClassifier(loss="log_loss", random_state=0), LogLoss()),
        (SparseClassifier(k=8, loss="squared_hinge"), SquaredHinge()),
        (L1Classifier(radius=2.0, loss="squared_hinge"), SquaredHinge()),
    ]:
        assert sparsify(model.fit(X, two), X, two, k=3).loss == loss
        assert sparsify(model, X, k=3).loss == SquaredError()
    own = L1Regressor(radius=2.0, loss=Huber(1.0)).fit(X, y[0])
    assert sparsify(own, X, y[0], k=3).loss == Huber(1.0)
    assert sparsify(LogisticRegression().fit(X, two), X, two, k=3, loss="hinge").loss == Hinge()
    coef = LogisticRegression().fit(X, two).coef_
    bare = sparsify(coef, X, two, k=3, loss="log_loss")
    np.testing.assert_array_equal(bare.predict(X), sparsify(LogisticRegression().fit(X, two), X, two, k=3).predict(X))


def test_names_of_frames_go_through():
    X, y, _ = correlated()
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(14)])
    dense = Ridge().fit(frame, y[0])
    found = sparsify(dense, frame, y[0], k=3)
    assert found.names() == [f"c{j}" for j in found.support_]
    np.testing.assert_allclose(found.predict(frame[found.names()[::-1]]), found.predict(frame))
    text = found.summary()
    assert all(name in text for name in found.names())
    assert text.startswith("3 features of 14 by 'truncate', refitted, objective")
    assert repr(found) == f"<Sparsified: {text.splitlines()[0]}>"
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.predict(frame), found.predict(frame))
    assert sparsify(dense.coef_, X, y[0], k=2).names() == [
        f"x{j}" for j in sparsify(dense.coef_, X, y[0], k=2).support_
    ]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("with_y", [True, False])
def test_columns_without_names_can_be_given_some(form, with_y, tmp_path):
    X, y, _ = correlated()
    names = [f"word {j}" for j in range(14)]
    dense, given = Ridge().fit(X, y[0]), form(X)
    found = sparsify(dense, given, y[0] if with_y else None, k=3, feature_names=np.array(names, dtype=object))
    assert found.names() == [names[j] for j in found.support_]
    assert found.names()[0] in found.summary()
    found.save(tmp_path / "model.json")
    expected = found.predict(pd.DataFrame(X, columns=names)[found.names()])
    if form is np.asarray:
        return
    # No warning of missing names: a sparse matrix has none.
    for model in (found, pauca.load(tmp_path / "model.json")):
        np.testing.assert_allclose(model.predict(given), expected)
        with pytest.raises(ValueError, match="X has 3 features, but SparseRegressor is expecting 14 features"):
            model.predict(given[:, :3])


def test_many_features_are_summed_up():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 50))
    found = sparsify(rng.normal(size=50), X, k=40, truncation="systematic", random_state=0)
    assert "... and 10 more" in found.summary()
    assert "the least of 5 draws" in found.summary()
    assert f"expected of a draw: {found.expected_excess:.6g}" in found.summary()


def test_copies_of_a_column_are_refitted_all_the_same():
    X, y, _ = correlated()
    X[:, 1] = X[:, 0]
    found = sparsify(np.where(np.arange(14) < 2, 1.0, 0.0), X, y[0], k=2)
    assert found.k_ == 2
    np.testing.assert_allclose(found.objective_, objective(X, y[0], [0]), rtol=1e-9)


# What can be done with them.


@pytest.mark.parametrize("with_y", [True, False])
@pytest.mark.parametrize("kind", ["numbers", "outputs", "two", "three", "margins"])
def test_sparsified_models_are_fitted_estimators(kind, with_y, tmp_path):
    X, y, _ = correlated(outputs=2)
    frame = pd.DataFrame(StandardScaler().fit_transform(np.delete(X, 4, axis=1)), columns=list("abcdefghijklm"))
    two, three = np.where(y[0] > 0, "yes", "no"), np.digitize(y[0], np.quantile(y[0], [0.3, 0.6]))
    model, target = {
        "numbers": (Ridge(), y[0]),
        "outputs": (Ridge(), pd.DataFrame(y.T, columns=["u", "v"])),
        "two": (LogisticRegression(), two),
        "three": (LogisticRegression(), three),
        "margins": (RidgeClassifier(), two),
    }[kind]
    dense = model.fit(frame, target)
    found = sparsify(dense, frame, target if with_y else None, k=4)
    found.save(tmp_path / "model.json")
    again = pauca.load(tmp_path / "model.json")
    assert type(again) is type(found.model)
    np.testing.assert_array_equal(again.coef_, found.coef_)
    np.testing.assert_array_equal(again.predict(frame), found.predict(frame))
    assert list(again.get_feature_names_out()) == list(found.get_feature_names_out()) == found.names()
    assert found.score(frame, target) == again.score(frame, target)
    assert again.summary() == found.model.summary()
    assert (again.k_, again.path_.sizes, again.stop_) == (4, [0, 4], "size")
    module = {}
    exec(found.to_python(), module)
    written = [module["predict"](row) for row in frame.to_dict(orient="records")]
    if kind == "outputs":
        assert again.path_.output_names == (["u", "v"] if with_y else ["y0", "y1"])
    assert_same = np.testing.assert_allclose if kind in {"numbers", "outputs"} else np.testing.assert_array_equal
    assert_same(np.array(written), found.predict(frame))
    assert found.to_sql("t") == found.model.to_sql("t")
    assert hasattr(found.model, "predict_proba") == (kind in {"two", "three"} or (kind == "margins" and with_y))
    if kind in {"two", "three"}:
        np.testing.assert_allclose(found.model.predict_proba(frame).sum(axis=1), 1)


@pytest.mark.parametrize("refit", [True, False])
def test_importance_in_sparsified_models(refit):
    """After a refit of squared loss exactly; the constant model is on the path in any case."""
    X, y, coef = correlated(outputs=2)
    found = sparsify(coef, X, y.T, k=4, ridge=0.1, refit=refit)
    small, model = found.model.path_[0], found.model.path_[4]
    np.testing.assert_allclose(small.objective, 0.5 * np.sum((y - y.mean(axis=1, keepdims=True)) ** 2) / 60)
    np.testing.assert_allclose(model.objective, found.objective_)
    assert model.importance_is_exact == refit
    if refit:
        without = [
            sum(objective(X, one, np.delete(found.support_, place), ridge=0.1) for one in y) for place in range(4)
        ]
        np.testing.assert_allclose(model.importance, np.array(without) - found.objective_, rtol=1e-7)


def test_importance_where_outputs_share_a_loss():
    X, y, _ = correlated(n=200)
    X = StandardScaler().fit_transform(X[:, :4])
    three = np.digitize(y[0] + 20 * X[:, 0], np.quantile(y[0] + 20 * X[:, 0], [0.3, 0.6]))
    dense = LogisticRegression().fit(X, three)
    found = sparsify(dense, X, three, k=4, ridge=0.05)
    for place in range(4):
        rest = sparsify(np.where(np.arange(4) == place, 0, dense.coef_), X, three, k=3, ridge=0.05, loss="log_loss")
        np.testing.assert_allclose(found.model.path_[4].importance[place], rest.objective_ - found.objective_, rtol=0.5)


def test_models_of_pauca_keep_their_loss():
    X = np.delete(correlated()[0], 4, axis=1)
    counts = np.random.default_rng(0).poisson(np.exp(X[:, 0] / 10))
    for dense in (SparseRegressor(k=4, loss="poisson").fit(X, counts), L1Regressor(2.0, loss="poisson").fit(X, counts)):
        assert sparsify(dense, X, counts, k=2).loss == Poisson()
        near = sparsify(dense, X, k=2)
        np.testing.assert_allclose(near.predict(X), np.exp(near.decision_function(X)))


# Bad input.


def _ridge():
    X, y, _ = correlated()
    return Ridge().fit(X, y[0])


def _of(**changes):
    X, y, coef = correlated()
    given = {"model": coef[0], "X": X, "y": y[0], "k": 3, **changes}
    return lambda: sparsify(given.pop("model"), given.pop("X"), given.pop("y"), **given)


BAD = {
    "k of zero": (_of(k=0), ValueError, "'k' parameter of sparsify must be an int in the range"),
    "k of a half": (_of(k=0.5), TypeError, "'k' parameter of sparsify"),
    "k of True": (_of(k=True), TypeError, "'k' parameter of sparsify"),
    "truncation": (_of(truncation="sparsify"), ValueError, "one of 'exchange', 'magnitude', 'moments'"),
    "refit": (_of(refit="no"), TypeError, "'refit' parameter"),
    "no refit of a search": (_of(refit=False, truncation="exchange"), ValueError, "leave out refit=False"),
    "repeats of a search": (_of(repeats=2, truncation="exchange"), ValueError, "'exchange' gives the same every time"),
    "fit_intercept": (_of(fit_intercept=1), TypeError, "'fit_intercept' parameter"),
    "ridge": (_of(ridge=-1), ValueError, "'ridge' parameter"),
    "confidence of one": (_of(confidence=1), ValueError, "'confidence' parameter"),
    "confidence of zero": (_of(confidence=0.0), ValueError, "'confidence' parameter"),
    "confidence of text": (_of(confidence="high"), TypeError, "'confidence' parameter"),
    "repeats": (_of(repeats=0, truncation="moments"), ValueError, "'repeats' parameter"),
    "repeats of the same": (_of(repeats=2), ValueError, "'truncate' gives the same every time"),
    "seed": (_of(random_state="seed"), TypeError, "'random_state' parameter"),
    "negative seed": (_of(random_state=-1), ValueError, "'random_state' parameter"),
    "too few coefficients": (_of(model=np.ones(13)), ValueError, "13 coefficients for 14 columns of X"),
    "too many dimensions": (_of(model=np.ones((1, 1, 14))), ValueError, "must have shape"),
    "no coefficients": (_of(model=np.zeros(0)), ValueError, "must have shape"),
    "NaN": (_of(model=np.where(np.arange(14) == 2, np.nan, 1.0)), ValueError, "not finite: 'x2'"),
    "NaN in X": (_of(X=np.where(np.arange(14) == 2, np.nan, np.ones((60, 14)))), ValueError, "Input X contains NaN"),
    "NaN in y": (_of(y=np.full(60, np.nan)), ValueError, "NaN"),
    "words": (_of(model=["a"] * 14), TypeError, "must be numbers"),
    "a class": (_of(model=Ridge), TypeError, r"Ridge\(\).fit\(X, y\)"),
    "not fitted": (_of(model=Ridge()), TypeError, "Ridge has no coef_: it is not fitted"),
    "not linear": (_of(model=DecisionTreeRegressor()), TypeError, "not a linear model"),
    "pipeline": (_of(model=make_pipeline(StandardScaler(), Ridge())), TypeError, r"pipeline\[:-1\].transform\(X\)"),
    "search": (
        lambda: sparsify(GridSearchCV(Ridge(), {"alpha": [1]}).fit(*_regression()), _regression()[0], k=3),
        TypeError,
        "best_estimator_",
    ),
    "intercept twice": (_of(model=_ridge(), intercept=1.0), ValueError, "an intercept of its own"),
    "intercepts": (_of(intercept=[1.0, 2.0]), ValueError, "2 intercepts for 1 rows"),
    "infinite intercept": (_of(intercept=np.inf), ValueError, "intercept is not finite"),
    "intercept without fit_intercept": (_of(intercept=1.0, fit_intercept=False), ValueError, "fit_intercept is False"),
    "loss without y": (_of(y=None, loss="huber"), ValueError, "needs y"),
    "no such loss": (_of(loss="cubed"), ValueError, "loss must be one of"),
    "outputs": (_of(model=np.ones((2, 14))), ValueError, "y has 1 columns"),
    "too many classes": (_of(y=np.arange(60) % 3, loss="log_loss"), ValueError, "y has 3 classes"),
    "amounts as classes": (_of(loss="log_loss"), ValueError, "Unknown label type"),
    "a name for all": (_of(feature_names="abcdefghijklmn"), TypeError, "'feature_names' parameter of sparsify"),
    "numbers for names": (_of(feature_names=range(14)), TypeError, "one for every column"),
    "too few names": (_of(feature_names=["a"]), ValueError, "1 feature_names for 14 columns"),
    "a name twice": (_of(feature_names=list("abcdeafghijklm")), ValueError, "'a' is there twice"),
    "names twice": (
        lambda: sparsify(np.ones(2), pd.DataFrame({"a": [1, 2], "b": [3, 5]}), k=1, feature_names=["a", "b"]),
        ValueError,
        "names of its own",
    ),
    "weights": (_of(sample_weight=np.zeros(60)), ValueError, "All values in `sample_weight` are zero"),
    "weights of other rows": (_of(sample_weight=np.ones(59)), ValueError, "sample_weight"),
}


def _regression():
    X, y, _ = correlated()
    return X, y[0]


@pytest.mark.parametrize("case", BAD)
def test_bad_input_raises_an_error_that_says_why(case):
    call, kind, words = BAD[case]
    with pytest.raises(kind, match=words):
        call()


def test_invalid_data_for_classifiers_raise_errors():
    X, y, _ = correlated(n=90)
    X, two = StandardScaler().fit_transform(X), y[0] > 0
    dense = LogisticRegression().fit(X, two)
    with pytest.raises(ValueError, match="the model is a classifier"):
        sparsify(dense, X, two, k=3, loss="squared_error")
    with pytest.raises(ValueError, match="holds the class 7, which the model does not know"):
        sparsify(dense, X, np.where(two, 7, 0), k=3)
    with pytest.raises(ValueError, match="All rows that have weight are of one class"):
        sparsify(dense, X, two, k=3, sample_weight=two)
    pairs = SVC(kernel="linear").fit(X, np.arange(90) % 4)
    with pytest.raises(ValueError, match="6 rows of coefficients for 4 classes"):
        sparsify(pairs, X, k=3)


def test_columns_in_another_order_raise_an_error():
    X, y, _ = correlated()
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(14)])
    dense = Ridge().fit(frame, y[0])
    with pytest.raises(ValueError, match=r"'c13', 'c12'.* where the model has 'c0', 'c1'"):
        sparsify(dense, frame[frame.columns[::-1]], k=3)
    with pytest.raises(ValueError, match="X has 3 features, but SparseRegressor is expecting 14"):
        sparsify(dense.coef_, X, k=3).predict(X[:, :3])
