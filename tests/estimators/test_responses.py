"""Counts, amounts and rates: offsets, exposures, links and dispersion, judged by statsmodels."""

import itertools
import math
import pickle
import sqlite3
from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm

from pauca import PaucaWarning, SparseClassifier, SparseRegressor, load
from pauca.estimators import fit
from pauca.losses import Gamma, GammaInverseLink, NegativeBinomial, Poisson, Tweedie

LOG = sm.families.links.Log()
FAMILIES = {
    "poisson": (Poisson(), sm.families.Poisson()),
    "gamma": (Gamma(), sm.families.Gamma(LOG)),
    "tweedie": (Tweedie(1.6), sm.families.Tweedie(link=LOG, var_power=1.6)),
    "negative binomial": (NegativeBinomial(0.5), sm.families.NegativeBinomial(alpha=0.5)),
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 8))
    exposure = rng.uniform(0.2, 5.0, 300)
    mean = np.exp(0.5 + 0.6 * X[:, 3] - 0.4 * X[:, 5]) * exposure
    return X, mean, exposure


def drawn(name, mean):
    rng = np.random.default_rng(1)
    if name == "gamma":
        return rng.gamma(2.0, mean / 2)
    if name == "tweedie":
        return np.where(rng.random(len(mean)) < 0.3, 0.0, rng.gamma(2.0, mean / 2))
    return rng.negative_binomial(2.0, 2.0 / (2.0 + mean)).astype(float)


@pytest.mark.parametrize("name", FAMILIES)
def test_coefficients_and_deviance_are_those_of_statsmodels(name, rows):
    X, mean, exposure = rows
    (loss, family), y = FAMILIES[name], drawn(name, mean)
    weights = np.random.default_rng(2).integers(0, 4, len(y)).astype(float)
    model = SparseRegressor(k=2, loss=loss).fit(X, y, weights, exposure=exposure)
    assert model.support_.tolist() == [3, 5]
    table = sm.add_constant(X[:, model.support_])
    judge = sm.GLM(y, table, family=family, offset=np.log(exposure), freq_weights=weights).fit(tol=1e-13, maxiter=100)
    np.testing.assert_allclose([model.intercept_, *model.coef_[model.support_]], judge.params, rtol=1e-6)
    assert model.objective_ == pytest.approx(judge.deviance / 2 / weights.sum(), rel=1e-9)
    assert model.path_.explained(2) == pytest.approx(1 - judge.deviance / judge.null_deviance, rel=1e-6)
    np.testing.assert_allclose(model.predict(X, exposure=exposure), judge.fittedvalues, rtol=1e-6)
    np.testing.assert_allclose(model.predict(X) * exposure, model.predict(X, offset=np.log(exposure)), rtol=1e-12)


@pytest.mark.filterwarnings("ignore:The InversePower link")
def test_the_inverse_link(rows, tmp_path):
    X = rows[0]
    y = np.random.default_rng(1).gamma(3.0, 1 / (3 * (1.5 + 0.4 * np.tanh(X[:, 2]) - 0.3 * np.tanh(X[:, 6]))))
    model = SparseRegressor(k=2, loss=GammaInverseLink()).fit(X, y)
    assert model.support_.tolist() == [2, 6]
    family = sm.families.Gamma(sm.families.links.InversePower())
    judge = sm.GLM(y, sm.add_constant(X[:, model.support_]), family=family).fit(tol=1e-13, maxiter=100)
    np.testing.assert_allclose([model.intercept_, *model.coef_[model.support_]], judge.params, rtol=1e-6)
    model.save(tmp_path / "model.json")
    np.testing.assert_array_equal(load(tmp_path / "model.json").predict(X), model.predict(X))
    assert SparseRegressor(loss=GammaInverseLink()).fit(X, y).k_ >= 2
    with pytest.raises(ValueError, match="intercept"):
        SparseRegressor(k=2, loss=GammaInverseLink(), fit_intercept=False).fit(X, y)


def test_the_dispersion_is_estimated_with_the_coefficients(rows, tmp_path):
    X, mean, exposure = rows
    y = drawn("negative binomial", mean)
    model = SparseRegressor(k=2, loss="negative_binomial").fit(X, y, exposure=exposure)
    table = sm.add_constant(X[:, model.support_])
    judge = sm.NegativeBinomial(y, table, exposure=exposure).fit(disp=0, method="newton", tol=1e-12)
    found = [model.intercept_, *model.coef_[model.support_], model.loss_.dispersion]
    np.testing.assert_allclose(found, judge.params, rtol=1e-6)
    chosen = SparseRegressor(loss="negative_binomial").fit(X, y, exposure=exposure)
    assert {3, 5} <= set(chosen.support_.tolist())
    assert 0.3 < chosen.loss_.dispersion < 0.7
    note = f"m + {chosen.loss_.dispersion:.3g} m²"
    chosen.save(tmp_path / "model.json")
    for model in (chosen, load(tmp_path / "model.json"), pickle.loads(pickle.dumps(chosen)), chosen.at(1)):
        assert model.dispersion_ == chosen.loss_.dispersion
        assert note in model.summary()
        model.report(tmp_path / "page.html", n_resamples=0)
        assert note in (tmp_path / "page.html").read_text()
    assert SparseRegressor(k=1).fit(X, y).dispersion_ is None


def test_of_sizes_that_are_better_at_each_others_dispersion_the_best_at_its_own_is_chosen(rows, monkeypatch):
    """Two sizes prefer each other by decree; every figure in the choice is that of a model with its own dispersion."""
    X, mean, exposure = rows
    y = drawn("negative binomial", mean)
    parameters = {"loss": "negative_binomial", "criterion": "bic"}
    free = SparseRegressor(**parameters).fit(X, y, exposure=exposure)
    real, preferred = fit.weigh_models, itertools.cycle([free.k_ + 1, free.k_])

    def weigh(*arguments):
        return replace(real(*arguments), chosen=next(preferred))

    monkeypatch.setattr(fit, "weigh_models", weigh)
    model = SparseRegressor(**parameters).fit(X, y, exposure=exposure)
    assert model.k_ == model.path_.choice.chosen == free.k_
    own = {
        size: SparseRegressor(k=size, loss="negative_binomial").fit(X, y, exposure=exposure).path_.to_frame()
        for size in (free.k_, free.k_ + 1)
    }
    for size, frame in own.items():
        place = model.path_.choice.position(size)
        assert model.path_.choice.mean[place] == pytest.approx(frame.loc[size, "bic"], rel=1e-5)
    assert f"{free.k_} has the lowest BIC" in model.summary()


@pytest.mark.parametrize("loss", ["squared_error", "huber", "absolute_error"])
def test_the_offset_of_a_residual_loss_is_taken_from_the_target(rows, loss):
    X, mean, offset = rows
    one = SparseRegressor(k=2, loss=loss).fit(X, mean, offset=offset)
    two = SparseRegressor(k=2, loss=loss).fit(X, mean - offset)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_allclose(one.predict(X, offset=offset), two.predict(X) + offset)
    with pytest.warns(PaucaWarning, match="fitted with an offset, a known part"):
        without = one.score(X, mean)
    assert one.score(X, mean, offset=offset) > without


def test_counts_are_not_scored_as_rates_in_silence(rows):
    X, mean, exposure = rows
    y = drawn("poisson", mean)
    model = SparseRegressor(k=2, loss="poisson").fit(X, y, exposure=exposure)
    with pytest.warns(PaucaWarning, match="predicts rates per unit of it, .* pass exposure="):
        model.score(X, y)
    assert model.score(X, y, exposure=exposure) > 0


def test_folds_take_offsets_along(rows):
    """An exposure of Poisson's is a weight, and the count a rate: the same likelihood, so the same choice."""
    X, mean, exposure = rows
    y = np.random.default_rng(4).poisson(mean).astype(float)
    one = SparseRegressor(k=range(5), loss="poisson", ridge=0.0).fit(X, y, exposure=exposure)
    two = SparseRegressor(k=range(5), loss="poisson", ridge=0.0).fit(X, y / exposure, exposure)
    np.testing.assert_allclose(one.path_.choice.mean, two.path_.choice.mean, rtol=1e-6)
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"exposure": [1.0, 0.0]}, "positive in every row; the least is 0"),
        ({"exposure": [1.0, -2.0]}, "the least is -2"),
        ({"exposure": [1.0, np.nan]}, "NaN"),
        ({"exposure": [1.0, 2.0], "offset": [1.0, 2.0]}, "either"),
        ({"offset": [1.0]}, "one number for every row"),
    ],
)
def test_invalid_offsets(how, words):
    X, y = np.arange(4.0).reshape(2, 2), np.array([1.0, 2.0])
    with pytest.raises(ValueError, match=words):
        SparseRegressor(k=1, loss="poisson").fit(X, y, **how)


def test_exposure_is_for_logarithmic_links_and_scorers_know_none():
    X, y = np.arange(20.0).reshape(10, 2), np.arange(10.0)
    with pytest.raises(ValueError, match="logarithm of the mean"):
        SparseRegressor(k=1).fit(X, y, exposure=y + 1)
    with pytest.raises(ValueError, match="'scoring' cannot be combined"):
        SparseRegressor(loss="poisson", scoring="r2").fit(X, y, exposure=y + 1)


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(4)
    X, offset = rng.standard_normal((400, 6)), rng.normal(0, 1.5, 400)
    y = np.where(X[:, 1] - 0.7 * X[:, 4] + offset + rng.logistic(size=400) > 0, "sick", "healthy")
    return X, y, offset


def test_an_offset_of_classes_is_a_known_logarithm_of_odds(classes):
    X, y, offset = classes
    model = SparseClassifier(k=2).fit(X, y, offset=offset)
    assert model.support_.tolist() == [1, 4]
    judge = sm.GLM(y == "sick", sm.add_constant(X[:, [1, 4]]), family=sm.families.Binomial(), offset=offset)
    fitted = judge.fit(tol=1e-13)
    found = np.concatenate([model.intercept_, model.coef_[0, [1, 4]]])
    np.testing.assert_allclose(found, fitted.params, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X, offset=offset)[:, 1], fitted.fittedvalues, rtol=1e-6)
    with pytest.warns(PaucaWarning, match="fitted with an offset, a known part"):
        without = model.score(X, y)
    assert model.score(X, y, offset=offset) > without
    np.testing.assert_array_equal(
        model.predict(X, offset=offset), np.where(fitted.fittedvalues > 0.5, "sick", "healthy")
    )
    np.testing.assert_allclose(model.predict_log_proba(X, offset=offset), np.log(model.predict_proba(X, offset=offset)))


@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge", "hinge"])
def test_an_offset_that_is_constant_is_taken_from_the_intercept(classes, loss):
    X, y, _ = classes
    plain = SparseClassifier(k=2, loss=loss).fit(X, y)
    shifted = SparseClassifier(k=2, loss=loss).fit(X, y, offset=np.full(len(y), 0.75))
    assert shifted.support_.tolist() == plain.support_.tolist()
    assert shifted.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    if loss == "log_loss":
        np.testing.assert_allclose(shifted.intercept_, plain.intercept_ - 0.75, rtol=1e-6)


def test_the_default_chooses_classes_with_an_offset(classes):
    X, y, offset = classes
    model = SparseClassifier().fit(X, y, offset=offset)
    assert {1, 4} <= set(model.support_.tolist())
    with pytest.raises(ValueError, match="no line for an offset"):
        model.to_points()
    with pytest.raises(ValueError, match="two classes; y holds 3"):
        SparseClassifier(k=1).fit(X, np.arange(400) % 3, offset=offset)
    with pytest.raises(ValueError, match="'scoring' cannot be combined"):
        SparseClassifier(k=range(3), scoring="roc_auc").fit(X, y, offset=offset)


def test_offsets_and_exposures_go_into_sql_and_python(rows, classes):
    X, mean, exposure = rows
    y = np.random.default_rng(1).poisson(mean)
    model = SparseRegressor(k=2, loss="poisson").fit(X, y, exposure=exposure)
    table = {f"x{j}": X[:, j] for j in model.support_} | {"years": exposure, "known": np.log(exposure)}
    for how in ({"exposure": "years"}, {"offset": "known"}):
        expected = model.predict(X, exposure=exposure)
        np.testing.assert_allclose(from_sql(model.to_sql("t", **how), table)[:, 0], expected, rtol=1e-12)
        np.testing.assert_allclose(from_python(model.to_python(**how), table), expected, rtol=1e-12)
    X, y, offset = classes
    model = SparseClassifier(k=2).fit(X, y, offset=offset)
    table = {f"x{j}": X[:, j] for j in model.support_} | {"known": offset}
    expected = model.predict_proba(X, offset=offset)[:, 1]
    found = from_sql(model.to_sql("t", offset="known"), table)[:, 1].astype(float)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    source = model.to_python(offset="known")
    np.testing.assert_allclose(from_python(source, table, "predict_proba")[:, 1], expected, rtol=1e-12)
    with pytest.raises(ValueError, match="logarithm of the mean"):
        model.to_sql("t", exposure="years")


def from_sql(query, table):
    database = sqlite3.connect(":memory:")
    database.create_function("EXP", 1, lambda x: None if x is None else math.exp(x))
    columns = ", ".join(f"{name} REAL" for name in table)
    database.execute(f"CREATE TABLE t ({columns})")
    places = ", ".join("?" * len(table))
    database.executemany(f"INSERT INTO t VALUES ({places})", np.column_stack(list(table.values())).tolist())
    return np.array(database.execute(query).fetchall())


def from_python(source, table, name="predict"):
    module = {}
    exec(source, module)
    rows = zip(*table.values(), strict=True)
    return np.array([module[name](dict(zip(table, row, strict=True))) for row in rows])


@pytest.mark.parametrize("seed", [304, 308, 311, 315])
def test_models_of_the_inverse_link_are_found_where_steps_leave_its_domain(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(40, 300)), int(rng.integers(5, 25))
    X = rng.standard_normal((n, d)) + rng.standard_normal((n, 1)) * rng.uniform(0, 1)
    if seed % 2:
        X = X**3
    rate = 1.05 + np.tanh(X[:, :5] @ (rng.choice([-1, 1], 5) * rng.uniform(0.2, 1, 5)))
    y = rng.gamma(2.0, 1.0 / (2.0 * rate))
    loss = GammaInverseLink()
    model = SparseRegressor(k=6, loss=loss).fit(X, y)
    Z = np.column_stack([np.ones(n), X[:, model.support_]])

    def mean(coef):
        return float(np.mean(loss.value(y, Z @ coef)))

    def gradient(coef):
        return Z.T @ loss.derivative(y, Z @ coef) / n

    found = np.concatenate([[model.intercept_], model.coef_[model.support_]])
    assert mean(found) == pytest.approx(model.objective_, rel=1e-9)
    assert np.all(Z @ found > 0)
    assert np.abs(gradient(found) / np.sqrt(np.mean(Z**2, axis=0))).max() < 1e-5
