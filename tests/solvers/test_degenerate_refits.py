"""Refits where the data are degenerate: classes that can be separated, rows of zeros, huge counts, constants."""

import warnings

import numpy as np
import pytest
from judges import (
    LOSSES,
    SMOOTH,
    Kind,
    at_most,
    linear_program,
    refit,
)
from refit_problems import SUPPORT, fitted, table
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from pauca import PaucaWarning, SparseClassifier, SparseRegressor
from pauca.losses import (
    AbsoluteError,
    Hinge,
    Huber,
    LogLoss,
    Loss,
    Multinomial,
    Poisson,
    SquaredHinge,
)
from pauca.solvers import newton
from problems import DESIGNS

# Classes that can be separated, and other minima at infinity.


def separable(classes=2, n=40):
    rng = np.random.default_rng(0)
    X = rng.integers(-4, 5, (n, 5)).astype(float)
    signal = X[:, 0] - 2 * X[:, 1] + 0.5
    return X, (signal > 0).astype(int) if classes == 2 else np.digitize(signal, [-3, 3])


def fit_and_warnings(model, X, y, weights=None):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, weights)
    return model, [(warning.category, str(warning.message)) for warning in caught]


@pytest.mark.parametrize("method", ["forward", "foba", "exchange", "backward"])
@pytest.mark.parametrize("classes", [2, 3])
def test_separable_classes_have_finite_coefficients_and_one_warning(classes, method):
    X, y = separable(classes)
    model, warned = fit_and_warnings(SparseClassifier(k=2, method=method), X, y)
    assert [category for category, _ in warned] == [PaucaWarning]
    assert warned[0][1].startswith("The data are separable")
    assert "new rows may be predicted badly" in warned[0][1]
    assert "ridge=0.001" in warned[0][1]
    assert model.support_.tolist() == [0, 1]
    assert model.score(X, y) == 1
    assert np.all(np.isfinite(model.coef_))
    assert np.abs(model.coef_).max() < 1e4
    assert model.objective_ < 1e-3 * model.path_[0].objective
    for form in ("csr", "csc", "float32-F"):
        other, _ = fit_and_warnings(SparseClassifier(k=2, method=method), DESIGNS[form](X), y)
        np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-6)
        np.testing.assert_allclose(other.intercept_, model.intercept_, rtol=1e-6)
        assert other.path_.moves == model.path_.moves


@pytest.mark.parametrize("loss", ["log_loss", "hinge", "squared_hinge"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_ridge_makes_separable_classes_ordinary(classes, loss):
    X, y = separable(classes)
    model, warned = fit_and_warnings(SparseClassifier(k=2, ridge=1e-3, loss=loss), X, y)
    assert warned == []
    assert model.support_.tolist() == [0, 1]
    assert np.abs(model.coef_).max() < 50


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_margins_are_reached_at_finite_coefficients(loss):
    X, y = separable()
    model, warned = fit_and_warnings(SparseClassifier(k=2, loss=loss), X, y)
    assert warned == []
    assert model.score(X, y) == 1
    assert model.objective_ <= 1e-3 * model.path_[0].objective
    assert np.min((2 * y - 1) * model.decision_function(X)) > 0.99


def test_a_column_that_tells_part_of_the_rows_without_error():
    """One coefficient runs away, the others have ordinary optima: those of the rows that are left."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    X[:, 0] = rng.random(200) < 0.3
    y = np.where((X[:, 0] == 1) | (rng.logistic(size=200) < X[:, 1]), 1, 0)
    model, warned = fit_and_warnings(SparseClassifier(k=3, always=[0, 1, 2]), X, y)
    assert [category for category, _ in warned] == [PaucaWarning]
    rest = X[:, 0] == 0
    judge = LogisticRegression(C=np.inf, tol=1e-10).fit(X[rest, 1:], y[rest])
    np.testing.assert_allclose(model.coef_[0, 1:], judge.coef_[0], atol=1e-3)
    counts = np.where(X[:, 0] == 1, 0, rng.poisson(np.exp(1 + 0.5 * X[:, 1])))
    model, warned = fit_and_warnings(SparseRegressor(k=3, always=[0, 1, 2], loss="poisson"), X, counts)
    assert [category for category, _ in warned] == [PaucaWarning]
    judge = PoissonRegressor(alpha=0, tol=1e-8).fit(X[rest, 1:], counts[rest])
    np.testing.assert_allclose(model.coef_[1:], judge.coef_, atol=1e-3)


def test_ordinary_data_give_no_warning_however_large_rows_without_weight_are():
    kind = SMOOTH["log_loss"]
    X, y = table(kind)
    X[0], weights = 1e12, np.arange(80) > 0
    assert fit_and_warnings(SparseClassifier(k=3), X, y, weights)[1] == []
    assert fit_and_warnings(SparseRegressor(k=3, loss="poisson"), X, y + 1, weights)[1] == []


# What is degenerate has finite answers all the same.


def is_finite(model):
    return all(
        np.all(np.isfinite(m.coef)) and np.all(np.isfinite(m.intercept)) and np.isfinite(m.objective)
        for m in model.path_
    )


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("name", LOSSES)
def test_rows_of_zeros(name, center):
    kind = LOSSES[name]
    X, y = table(kind, seed=10)
    X[::2] = 0
    dense = fitted(kind, X, y, fit_intercept=center)
    assert is_finite(dense)
    sparse = fitted(kind, X, y, fit_intercept=center, form=DESIGNS["csr"])
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-6)
    if not center:
        assert np.all(np.asarray(dense.intercept_) == 0)


@pytest.mark.parametrize("method", ["forward", "foba", "exchange", "backward"])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("name", ["multinomial", "squared hinge, 3 classes"])
def test_no_intercept_with_several_classes(name, center, method):
    kind = SMOOTH[name]
    X, y = table(kind, seed=11)
    model = kind.estimator(k=3, method=method, fit_intercept=center, ridge=0.01).fit(X, y)
    value, _ = refit(kind, X, y, model.support_, ridge=0.01, center=center)
    assert model.objective_ == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize(
    ("loss", "ridge"), [("log_loss", 0.0), ("log_loss", 0.05), ("hinge", 0.05), ("squared_hinge", 0.0)]
)
def test_a_class_without_weight(loss, ridge):
    """As good as absent: of two classes one is left, which is refused, and of three classes two."""
    X, y = table(SMOOTH["log_loss"])
    with pytest.raises(ValueError, match="one class"):
        SparseClassifier(k=2, loss=loss, ridge=ridge).fit(X, y, y > 0)
    X, y = table(SMOOTH["multinomial"])
    with at_most(5):
        model, _ = fit_and_warnings(SparseClassifier(k=2, loss=loss, ridge=ridge, standardize=False), X, y, y > 0)
    assert is_finite(model)
    assert set(model.predict(X)) == {1, 2}
    if ridge:
        # The two classes that are left, each with half of the difference of the scores.
        two = SparseClassifier(k=2, loss=loss, ridge=ridge, standardize=False).fit(X[y > 0], y[y > 0])
        np.testing.assert_array_equal(model.support_, two.support_)


def test_counts_without_weight_are_as_good_as_none():
    X, y = table(SMOOTH["poisson"])
    with np.errstate(all="ignore"), at_most(1), pytest.raises(ValueError, match="positive count"):
        SparseRegressor(k=2, loss="poisson").fit(X, y, y == 0)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("method", ["forward", "exchange"])
def test_huge_counts(method, center):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    for y in (rng.poisson(1e9 * np.exp(0.1 * X[:, 0])), np.where(X[:, 0] > 0.5, 1e9, 0.0), np.arange(60) * 1e8):
        with at_most(10):
            model, _ = fit_and_warnings(SparseRegressor(k=2, loss="poisson", method=method, fit_intercept=center), X, y)
        assert is_finite(model)
        assert np.all(np.isfinite(model.predict(X)))
        for m in model.path_:
            if m.size:
                a = X[:, m.support] @ m.coef + m.intercept
                slope = (np.exp(a) - y) / 60
                np.testing.assert_allclose(slope @ X[:, m.support], 0, atol=1e-5 * y.mean())
                assert m.objective == pytest.approx(Poisson().value(y, a).mean(), rel=1e-6)


def test_real_features_of_large_counts_are_found():
    """At counts of a million the noise is a millionth of the signal; what stands ten sigma above it is no rounding."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 6))
    y = rng.poisson(1e6 * np.exp(X @ [1, -0.5, 10 / np.sqrt(200 * 1e6), 0, 0, 0]))
    model = SparseRegressor(k=3, loss="poisson").fit(X, y)
    assert model.support_.tolist() == [0, 1, 2]


class Broken(Loss):
    """Not a number beyond a score of five."""

    def value(self, y, a):
        return np.where(a > 5, np.nan, 0.5 * (a - y) ** 2)

    def derivative(self, y, a):
        return np.where(a > 5, np.nan, a - y)

    def curvature(self, y, a):
        return np.where(a > 5, np.nan, 1.0)


@pytest.mark.filterwarnings("ignore:k=2 features were requested")
def test_a_loss_that_is_not_a_number_somewhere_does_not_hang():
    X, y = table(LOSSES["huber"])
    with at_most(10):
        model = SparseRegressor(k=2, loss=Broken(), method="forward").fit(X, 10 * y)
    assert is_finite(model)


def test_a_constant_target_leaves_nothing_to_fit():
    X, _ = table(LOSSES["huber"])
    for loss in ("huber", "absolute_error", "quantile"):
        model = SparseRegressor(k=2, loss=loss).fit(X, np.full(80, 3.0))
        assert model.k_ == 0
        assert model.intercept_ == pytest.approx(3)
    model = SparseRegressor(k=2, loss="poisson").fit(X, np.full(80, 3.0))
    assert model.intercept_ == pytest.approx(np.log(3))


@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_a_constant_column_in_a_group_does_no_harm(ridge, loss):
    X, y = table(SMOOTH["log_loss"])
    X[:, 1] = 1.0
    model, _ = fit_and_warnings(
        SparseClassifier(k=2, always=[0], feature_groups=[0, 0, 1, 1, 2, 2], ridge=ridge, loss=loss), X, y
    )
    without, _ = fit_and_warnings(
        SparseClassifier(k=2, always=[0], feature_groups=[0, 1, 1, 2, 2], ridge=ridge, loss=loss),
        np.delete(X, 1, axis=1),
        y,
    )
    assert model.coef_[0, 1] == 0
    assert list(model.feature_groups_) == list(without.feature_groups_)
    assert model.objective_ == pytest.approx(without.objective_, rel=1e-6)


def test_huber_near_the_ends_is_absolute_or_squared():
    X, y = table(LOSSES["huber"])
    squared = SparseRegressor(k=3, always=SUPPORT).fit(X, y)
    wide = SparseRegressor(k=3, always=SUPPORT, loss=Huber(1e6)).fit(X, y)
    np.testing.assert_allclose(wide.coef_, squared.coef_, rtol=1e-5)
    assert wide.objective_ == pytest.approx(squared.objective_, rel=1e-10)
    narrow = SparseRegressor(k=3, always=SUPPORT, loss=Huber(1e-4)).fit(X, y)
    best = linear_program(AbsoluteError(), X[:, SUPPORT], y)
    assert np.abs(narrow.predict(X) - y).mean() == pytest.approx(best, rel=1e-3)


def test_two_classes_are_the_same_by_any_name():
    X, y = table(SMOOTH["log_loss"])
    model = SparseClassifier(k=3).fit(X, y)
    for loss in (LogLoss(), Multinomial()):
        other = SparseClassifier(k=3, loss=loss).fit(X, np.where(y > 0, "yes", "no"))
        np.testing.assert_array_equal(other.coef_, model.coef_)
        assert list(other.classes_) == ["no", "yes"]
    turned = SparseClassifier(k=3).fit(X, -y)
    np.testing.assert_allclose(turned.coef_, -model.coef_, rtol=1e-6)
    for loss in ("hinge", "squared_hinge"):
        kind = Kind(Hinge() if loss == "hinge" else SquaredHinge(), "signs")
        there, back = kind.estimator(k=3).fit(X, y), kind.estimator(k=3).fit(X, -y)
        np.testing.assert_allclose(there.coef_, -back.coef_, rtol=1e-4, atol=1e-6)


def test_poisson_rates_with_exposures_as_weights():
    """Counts over exposures, weighted by exposure, are counts with the logarithm of the exposure as an offset."""
    rng = np.random.default_rng(0)
    X, _ = table(SMOOTH["poisson"])
    exposure = rng.uniform(0.5, 4.0, 80)
    counts = rng.poisson(exposure * np.exp(X @ np.array([0, 0.2, 0, -0.1, 0.1, 0])))
    model = SparseRegressor(k=3, always=SUPPORT, loss=Poisson()).fit(X, counts / exposure, exposure)
    judge = minimize(
        lambda p: np.sum(exposure * np.exp(X[:, SUPPORT] @ p[:3] + p[3]) - counts * (X[:, SUPPORT] @ p[:3] + p[3])),
        np.zeros(4),
        tol=1e-9,
    )
    np.testing.assert_allclose([*model.coef_[SUPPORT], model.intercept_], judge.x, atol=1e-4)


def test_steps_below_the_rounding_of_scores_end(monkeypatch):
    steps, search, minimise_all = [], newton._search_slope, newton._minimise_piecewise

    def minimise_counted(*given):
        steps.append(0)
        return minimise_all(*given)

    def search_counted(*given):
        steps[-1] += 1
        return search(*given)

    monkeypatch.setattr(newton, "_minimise_piecewise", minimise_counted)
    monkeypatch.setattr(newton, "_search_slope", search_counted)
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 3))
    noise = [X[:, 0] + rng.standard_normal(40), X[:, 1] - rng.standard_normal(40)]
    y = np.column_stack(noise) + 4.32092970725e11 * np.array([1, -1])
    fit_and_warnings(SparseRegressor(k=1, loss="absolute_error", ridge=1e-6, method="forward"), X, y)
    assert steps
    assert max(steps) < newton.MOST_STEPS // 4
