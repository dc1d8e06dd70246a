"""Figures of textbooks, standard errors and evaluations, judged by statsmodels and scikit-learn."""

import html
import pickle
import re

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import (
    accuracy_score,
    confusion_matrix,
    d2_tweedie_score,
    f1_score,
    log_loss,
    r2_score,
    roc_auc_score,
)
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict, train_test_split
from statsmodels.miscmodels.ordinal_model import OrderedModel

import pauca
from pauca import PaucaWarning, SparseClassifier, SparseCox, SparseOrdinalClassifier, SparseRegressor
from pauca.estimators.refits_on_rows import held_out_score
from pauca.losses import NegativeBinomial, Tweedie
from pauca.model_selection.scoring import scorer_for
from pauca.report.model_data import Findings, model_data_of, with_class_names
from pauca.report.sections import header


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def tumours():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X.iloc[:, :10], y.map({0: "malignant", 1: "benign"})


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6))
    mean = np.exp(0.5 + 0.4 * X[:, 1] - 0.3 * X[:, 4])
    return X, rng.poisson(mean).astype(float), rng.gamma(2.0, mean / 2.0)


def test_criteria_of_every_size_are_those_of_statsmodels(diabetes):
    X, y = diabetes
    path = SparseRegressor(k=10).fit(X, y).path_
    frame = path.to_frame()
    full = sm.OLS(y, sm.add_constant(X)).fit()
    for size in path.sizes:
        judge = sm.OLS(y, sm.add_constant(X[path.names(size)])).fit()
        assert frame.loc[size, "adjusted_r2"] == pytest.approx(judge.rsquared_adj, abs=1e-9)
        assert frame.loc[size, "aic"] == pytest.approx(judge.aic)
        assert frame.loc[size, "bic"] == pytest.approx(judge.bic)
        assert frame.loc[size, "cp"] == pytest.approx(judge.ssr / full.mse_resid - 442 + 2 * (size + 1), abs=1e-6)
    # Without the model of all columns on the path it is fitted for Cp; copies of columns count once.
    copied = X.assign(again=X["age"])
    few = SparseRegressor(k=3).fit(copied, y, sample_weight=np.full(442, 2.0)).path_.to_frame()
    assert few["cp"].tolist() == pytest.approx(frame["cp"].tolist()[:4], abs=1e-6)
    assert "cp" not in SparseRegressor(k=3, ridge=0.1).fit(X, y).path_.to_frame()
    assert "cp" not in SparseRegressor(k=3).fit(X.iloc[:10], y.iloc[:10]).path_.to_frame()
    constant = SparseRegressor(k=1).fit(X, 0 * y + 3.0)
    assert constant.path_.to_frame().index.tolist() == [0]  # nothing to explain, and nothing is divided by zero
    for changed in (0, 1):  # the fit of all columns is made later, from arrays that may no longer hold what they held
        data = [X.to_numpy(copy=True), y.to_numpy(copy=True)]
        model = SparseRegressor(k=3).fit(*data)
        data[changed] *= 1.01
        assert "cp" not in model.path_.to_frame()
    chosen = SparseRegressor(criterion="bic").fit(X, y).path_
    assert chosen.to_frame()["bic"][3] == pytest.approx(frame.loc[3, "bic"])
    assert chosen.choice.mean.tolist() == pytest.approx(chosen.to_frame()["bic"].dropna().tolist())


def test_criteria_of_likelihoods_are_those_of_statsmodels(tumours, counts):
    X, y = tumours
    path = SparseClassifier(k=3).fit(X, y).path_
    for size in path.sizes:
        design = sm.add_constant(X[path.names(size)]) if size else np.ones(len(X))
        judge = sm.GLM((y == "malignant").astype(float), design, family=sm.families.Binomial()).fit()
        assert path.statistics[size]["aic"] == pytest.approx(judge.aic, rel=1e-6)
        assert path.statistics[size]["bic"] == pytest.approx(judge.bic_llf, rel=1e-6)
    X, y, _ = counts
    path = SparseRegressor(k=2, loss="poisson").fit(X, y).path_
    judges = [sm.GLM(y, sm.add_constant(X[:, path[k].support]), family=sm.families.Poisson()).fit() for k in (1, 2)]
    assert path.statistics[2]["aic"] - path.statistics[1]["aic"] == pytest.approx(judges[1].aic - judges[0].aic)


def test_criteria_of_classes_and_times_count_what_can_be_told_apart():
    """One set of coefficients of several classes may be zero, ordered ones have thresholds, and times no constant."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    latent = X[:, 1] - 0.6 * X[:, 3] + rng.logistic(size=200)
    times, died = np.exp(latent), rng.random(200) < 0.7
    several, ordered = np.digitize(latent, [-1, 1]), np.digitize(latent, [-1, 0.3, 1.2])
    survival = np.array(list(zip(died, times, strict=True)), dtype=[("event", bool), ("time", float)])
    fits = {
        SparseClassifier: (several, lambda X: sm.MNLogit(several, sm.add_constant(X)).fit(disp=0)),
        SparseOrdinalClassifier: (
            ordered,
            lambda X: OrderedModel(ordered, X, distr="logit").fit(method="bfgs", disp=0),
        ),
        SparseCox: (survival, lambda X: sm.PHReg(times, X, status=died.astype(int), ties="efron").fit()),
    }
    for kind, (y, judged_on) in fits.items():
        path = kind(criterion="aic", k=range(5)).fit(X, y).path_
        for size in (1, 2):
            judge, figures = judged_on(X[:, path[size].support]), path.statistics[size]
            n_parameters = np.size(judge.params)
            assert figures["aic"] == pytest.approx(-2 * judge.llf + 2 * n_parameters, rel=1e-6)
            assert figures["bic"] == pytest.approx(-2 * judge.llf + np.log(200) * n_parameters, rel=1e-6)
            assert path.choice.mean[size] == pytest.approx(figures["aic"], rel=1e-9)


def test_losses_and_outputs_without_a_likelihood_have_no_criteria(diabetes):
    X, y = diabetes
    assert not SparseRegressor(k=2, loss="huber").fit(X, y).path_.statistics
    assert not SparseRegressor(k=2).fit(X, np.c_[y, -y]).path_.statistics
    assert "aic" not in SparseRegressor(k=2, loss="huber").fit(X, y).path_.to_frame()


def judged(model, X, family, y, **options):
    design = sm.add_constant(np.asarray(X)[:, model.support_])
    return sm.GLM(np.asarray(y, dtype=float), design, family=family, **options).fit()


@pytest.mark.parametrize(
    ("loss", "family"),
    [
        ("squared_error", sm.families.Gaussian()),
        ("poisson", sm.families.Poisson()),
        ("gamma", sm.families.Gamma(sm.families.links.Log())),
        (Tweedie(1.5), sm.families.Tweedie(var_power=1.5)),
        (NegativeBinomial(0.5), sm.families.NegativeBinomial(alpha=0.5)),
    ],
    ids=["squared", "poisson", "gamma", "tweedie", "negative binomial"],
)
def test_standard_errors_are_those_of_statsmodels(counts, loss, family):
    X, whole, amounts = counts
    y = amounts if loss == "gamma" else whole
    weights = np.random.default_rng(1).uniform(0.5, 1.5, len(y))
    weights /= weights.mean()
    model = SparseRegressor(k=2, loss=loss).fit(X, y, sample_weight=weights)
    found, judge = model.inference().to_frame(), judged(model, X, family, y, var_weights=weights)
    np.testing.assert_allclose(found["coefficient"].iloc[[2, 0, 1]], judge.params, rtol=1e-5)
    np.testing.assert_allclose(found["standard_error"].iloc[[2, 0, 1]], judge.bse, rtol=1e-4)


def test_intervals_are_those_of_statsmodels(diabetes, tumours):
    X, y = diabetes
    model = SparseRegressor(k=4).fit(X, y)
    judge = sm.OLS(y, sm.add_constant(X[model.get_feature_names_out()])).fit()
    found = model.inference(confidence=0.9).to_frame()
    interval = judge.conf_int(0.1).loc[["bmi", "bp", "s1", "s5", "const"]]
    np.testing.assert_allclose(found[["lower", "upper"]], interval, rtol=1e-6)
    X, y = tumours
    model = SparseClassifier(k=2).fit(X, y)
    judge = judged(model, X, sm.families.Binomial(), y == "malignant")
    np.testing.assert_allclose(
        model.inference().to_frame()[["lower", "upper"]].iloc[[2, 0, 1]], judge.conf_int(), rtol=1e-4
    )


def test_with_a_ridge_the_errors_are_those_of_the_shrunken_estimate():
    """Over many samples of the noise the coefficients vary as much as the errors say."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    X[:, 2] = X[:, 0] + 0.3 * X[:, 2]
    Y = X[:, [0]] + rng.standard_normal((80, 400))
    coefs = SparseRegressor(k=3, ridge=0.2).fit(X, Y).coef_
    errors = []
    for output in range(30):
        model = SparseRegressor(k=3, ridge=0.2).fit(X, Y[:, output])
        np.testing.assert_allclose(model.coef_, coefs[output], rtol=1e-9)
        errors.append(model.inference().standard_error[:3])
    np.testing.assert_allclose(np.std(coefs, axis=0), np.mean(errors, axis=0), rtol=0.12)
    assert "pulls" in model.inference().caution


def test_the_bootstrap_agrees_with_the_likelihood_and_with_its_seed(diabetes):
    X, y = diabetes
    model = SparseRegressor(k=3).fit(X, y)
    found, likelihood = model.inference("bootstrap", n_resamples=400), model.inference()
    np.testing.assert_allclose(found.standard_error, likelihood.standard_error, rtol=0.2)
    assert found.lower.tolist() == model.inference("bootstrap", n_resamples=400).lower.tolist()
    assert (found.lower < found.coef).all()
    assert (found.coef < found.upper).all()
    for one in (found, likelihood):
        assert "too narrow" in one.caution
        assert one.caution in one.summary()


@pytest.mark.parametrize("loss", ["absolute_error", "huber"])
def test_any_loss_has_a_bootstrap(diabetes, loss):
    model = SparseRegressor(k=2, loss=loss).fit(*diabetes)
    found = model.inference("bootstrap", n_resamples=20)
    assert (found.standard_error > 0).all()
    with pytest.raises(ValueError, match="bootstrap"):
        model.inference()


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_a_model_without_features_has_a_bootstrap_of_its_intercept(loss):
    y = np.random.default_rng(0).standard_normal(20)
    with pytest.warns(PaucaWarning):  # no column varies
        model = SparseRegressor(k="auto", cv=3, loss=loss).fit(np.full((20, 2), 1e14), y)
    found = model.inference("bootstrap", n_resamples=5)
    assert model.k_ == 0
    assert found.names == ["(intercept)"]
    assert found.lower[0] < found.upper[0]


def test_many_classes_and_outputs_have_a_bootstrap(tumours):
    X, y = tumours
    three = np.where(y == "benign", "b", np.where(X["mean radius"] > 15, "l", "m"))
    model = SparseClassifier(k=2, ridge=0.01).fit(X, three)
    found = model.inference("bootstrap", n_resamples=20)
    assert found.outputs == ["b"] * 3 + ["l"] * 3 + ["m"] * 3
    np.testing.assert_allclose(found.coef.reshape(3, 3)[:, :2], model.coef_[:, model.support_])
    assert found.to_frame().loc[("l", "(intercept)"), "coefficient"] == pytest.approx(model.intercept_[1])
    assert (found.lower < found.coef).mean() > 0.8
    assert str(found).startswith("output  feature")
    two = SparseRegressor(k=2).fit(X, np.c_[X["mean area"], X["mean texture"]])
    assert len(two.inference("bootstrap", n_resamples=5).names) == 6


def test_many_classes_have_a_table_of_confusions(tumours):
    X, y = tumours
    three = np.where(y == "benign", "b", np.where(X["mean radius"] > 15, "l", "m"))
    fit, test = np.arange(0, 569, 2), np.arange(1, 569, 2)
    model = SparseClassifier(k=2, ridge=0.01).fit(X.iloc[fit], three[fit])
    found = model.evaluate(X.iloc[test], three[test])
    judge = confusion_matrix(three[test], model.predict(X.iloc[test]), labels=model.classes_)
    np.testing.assert_array_equal(found.class_confusion.counts, judge)
    for code, line in enumerate(found.class_table()[1:]):
        assert line[1] == str(judge[code].sum())
        assert line[2] == f"{100 * judge[code, code] / judge[code].sum():.1f} %"
        assert line[3] == f"{100 * judge[code, code] / judge[:, code].sum():.1f} %"
    assert "most often taken for" in str(found)
    assert "most often taken for" not in str(SparseClassifier(k=1).fit(X, y).evaluate(X, y))


def test_what_inference_cannot_do_is_said(diabetes, tmp_path):
    X, y = diabetes
    with pytest.raises(ValueError, match=r'one number.*this model has 2 outputs: use inference\("bootstrap"\)'):
        SparseRegressor(k=2).fit(X, np.c_[y, -y]).inference()
    model = SparseRegressor(k=2).fit(X, y)
    with pytest.raises(ValueError, match="'method' parameter of inference"):
        model.inference("guess")
    model.save(tmp_path / "model.json")
    with pytest.raises(ValueError, match="needs the data of the fit"):
        pauca.load(tmp_path / "model.json").inference()


def test_rows_of_the_fit_are_recognised(tumours, tmp_path):
    X, y = tumours
    model = SparseClassifier(k=2, ridge=0.01).fit(X, y)
    found = model.evaluate(X.copy(), y.copy())
    assert (found.rows, found.optimistic) == ("fit", True)
    assert "These are the rows of the fit: figures are optimistic" in str(found)
    model.report(tmp_path / "page.html", X, y, n_resamples=0)
    assert "AUC (rows of the fit, optimistic)" in (tmp_path / "page.html").read_text(encoding="utf-8")
    unused = X.columns[~model.get_support()]
    others = [X[:-1], X[::-1], X.assign(**{unused[0]: 0.0}), X.assign(**{unused[0]: "text"}), X.drop(columns=unused)]
    for rows in others:
        assert model.evaluate(rows, y.loc[rows.index]).rows == "test"
    sparse_rows = csr_array(X.to_numpy())
    assert SparseClassifier(k=1, ridge=0.01).fit(sparse_rows, y).evaluate(sparse_rows, y).rows == "fit"


def test_test_rows_are_judged_as_scikit_learn_does(tumours):
    X, X_test, y, y_test = train_test_split(*tumours, random_state=0)
    model = SparseClassifier(k=3, ridge=0.01).fit(X, y)
    found = model.evaluate(X_test, y_test, threshold=0.3)
    probability = model.predict_proba(X_test)[:, 1]
    assert found.rows == "test"
    assert not found.optimistic
    assert found.ranking.auc == pytest.approx(roc_auc_score(y_test == "malignant", probability))
    assert found.accuracy.value == accuracy_score(y_test == "malignant", probability >= 0.3)
    assert found.class_counts == [(y_test == "benign").sum(), (y_test == "malignant").sum()]
    with pytest.raises(ValueError, match="together"):
        model.evaluate(X_test)
    with pytest.raises(ValueError, match="has not seen"):
        model.evaluate(X_test, y_test.replace("benign", "other"))
    numbers = SparseClassifier(k=1, ridge=0.01).fit(X, (y == "benign") + 1)
    with pytest.raises(ValueError, match=r"^y holds the class 0, which the fit has not seen"):
        numbers.evaluate(X_test, np.zeros(len(X_test), dtype=int))


@pytest.mark.parametrize(
    "model", [SparseClassifier(k=3, ridge=0.01), SparseClassifier(k=2, loss="hinge", method="forward")]
)
def test_folds_hold_out_what_they_predict(tumours, model):
    X, y = tumours
    found = model.fit(X, y).evaluate()
    assert found.rows == "folds"
    assert not found.optimistic
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    scores = cross_val_predict(model, X, y, cv=folds, method="decision_function")
    assert found.ranking.auc == pytest.approx(roc_auc_score(y == "malignant", scores), abs=1e-4)
    assert (found.brier is None) == (found.log_loss is None) == (model.loss == "hinge")
    if found.log_loss is not None:
        assert found.log_loss == pytest.approx(log_loss(y == "malignant", expit(scores)), abs=1e-4)
        assert "log loss" in str(found)
    words = "value: of class 'malignant'; specificity and negative predictive value: of class 'benign'"
    assert f"sensitivity and predictive {words}\n" in str(found)


def test_rows_that_chose_are_called_optimistic_and_nested_folds_are_not(diabetes):
    X, y = diabetes
    model = SparseRegressor(ridge=[0, 0.1]).fit(X, y)
    found = model.evaluate()
    assert found.optimistic
    assert "ptimistic" in found.message
    constants = "r2 compares with the mean of these very rows; what summary() calls explained on held-out rows, with a"
    assert constants in str(found)
    assert constants not in str(SparseRegressor(k=2).fit(X, y).evaluate())  # whose summary has no such share
    assert found.errors.rmse == pytest.approx(model.path_.choice.held_out["rmse"])
    assert 1 - found.errors.rmse**2 / y.var(ddof=0) == pytest.approx(found.errors.r2)
    assert model.at(2).evaluate().optimistic
    nested = model.evaluate(nested=True)
    assert not nested.optimistic
    folds = KFold(5, shuffle=True, random_state=0)
    predicted = cross_val_predict(SparseRegressor(ridge=[0, 0.1]), X, y, cv=folds)
    assert nested.errors.r2 == pytest.approx(r2_score(y, predicted), abs=2e-3)
    # The share of the page: of the choosing folds it is that of the choice, of nested ones a little less.
    data, choice = model._training_data, model.path_.choice
    share = choice.mean[choice.position(model.k_)]
    assert held_out_score(data, data.folds, data.held_out, None) == pytest.approx(share, rel=1e-12)
    assert share - 0.05 < nested.score < share
    tile = header(model_data_of(model, Findings(nested)), "a title")
    assert f"held-out rows (nested folds)</dt><dd>{100 * nested.score:.1f}" in tile
    assert "chose the size" not in tile
    with pytest.raises(ValueError, match="no list"):
        SparseRegressor(cv=list(folds.split(X))).fit(X, y).evaluate(nested=True)


@pytest.mark.parametrize("nested", [True, False])
def test_rows_held_out_fill_in_nothing(nested):
    """A few missing values in a skewed column, with medians that differ between folds."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"a": rng.lognormal(0, 2, 60), "b": rng.normal(size=60), "c": rng.choice(["u", "v"], 60)})
    y = np.minimum(X["a"], 5.0).to_numpy() + 2 * X["b"].to_numpy() + rng.normal(size=60)
    X.loc[::3, "a"] = np.nan
    settings = {
        "missing": "median",
        **({"k": range(4), "ridge": [0, 0.1], "selection_rule": "best"} if nested else {"k": 2, "ridge": 0.1}),
    }
    found = SparseRegressor(**settings).fit(X, y).evaluate(nested=nested)
    folds = KFold(5, shuffle=True, random_state=0)
    predicted = cross_val_predict(SparseRegressor(**settings), X, y, cv=folds)
    assert found.errors.r2 == pytest.approx(r2_score(y, predicted), abs=1e-9)


def test_groups_of_rows_stay_together_in_folds(diabetes):
    X, y = diabetes
    patients = np.arange(len(X)) // 4
    model = SparseRegressor(k=2).fit(X, y, groups=patients)
    folds = model._make_folds(model._training_data)
    assert all(not set(patients[fold.test]) & set(patients[fold.weights > 0]) for fold in folds)


def test_exposure_is_part_of_the_prediction(counts):
    X, y, _ = counts
    exposure = np.random.default_rng(3).uniform(1, 100, len(y)).round()
    rates = np.random.default_rng(4).poisson(exposure * np.exp(0.3 * X[:, 1]))
    found = SparseRegressor(k=1, loss="poisson").fit(X, rates, exposure=exposure).evaluate()
    assert found.errors.r2 > 0.8


@pytest.fixture(scope="module")
def rates(counts):
    """Columns, counts and exposures of rows to fit, and of test rows."""
    X = counts[0]
    exposure = np.random.default_rng(3).uniform(1, 100, len(X)).round()
    y = np.random.default_rng(4).poisson(exposure * np.exp(0.3 * X[:, 1]))
    return (X[:200], y[:200], exposure[:200]), (X[200:], y[200:], exposure[200:])


@pytest.mark.parametrize("given", ["exposure", "offset"])
def test_test_rows_of_rates_have_an_exposure(rates, tmp_path, given):
    rows = [(X, y, {given: part if given == "exposure" else np.log(part)}) for X, y, part in rates]
    (X, y, known), (X_test, y_test, known_test) = rows
    model = SparseRegressor(k=1, loss="poisson").fit(X, y, **known)
    model.save(tmp_path / "model.json")
    for fitted in (model, pauca.load(tmp_path / "model.json"), model.at(0), pickle.loads(pickle.dumps(model))):
        with pytest.raises(ValueError, match=f"pass {given}="):
            fitted.evaluate(X_test, y_test)
        with pytest.raises(ValueError, match=f"pass {given}="):
            fitted.report(tmp_path / "page.html", X=X_test, y=y_test)
        with pytest.raises(ValueError, match="give X and y too"):
            fitted.evaluate(**known_test)
        with pytest.raises(ValueError, match="give X and y too"):
            fitted.report(tmp_path / "page.html", **known_test)
        found = fitted.evaluate(X_test, y_test, **known_test)
        assert found.errors.r2 == pytest.approx(fitted.score(X_test, y_test, **known_test), abs=1e-12)
    assert model.known_part_ == given
    assert model.fit(X, y).known_part_ is None
    assert model.evaluate(X_test, y_test).n_rows == len(y_test)


def test_the_deviance_of_rates_is_compared_with_that_of_one_rate(rates):
    (X, y, exposure), (X_test, y_test, exposure_test) = rates
    model = SparseRegressor(k=1, loss="poisson").fit(X, y, exposure=exposure)
    found = model.evaluate(X_test, y_test, exposure=exposure_test)
    of_rates = d2_tweedie_score(y_test / exposure_test, model.predict(X_test), sample_weight=exposure_test, power=1)
    assert found.errors.d2 == pytest.approx(of_rates, rel=1e-9)
    assert model.at(0).evaluate(X, y, exposure=exposure).errors.d2 == pytest.approx(0.0, abs=1e-9)
    assert 0.3 < model.evaluate().errors.d2 < 1.0


@pytest.mark.parametrize(("loss", "power"), [("poisson", 1), ("gamma", 2), (Tweedie(1.7), 1.7)])
def test_the_deviance_explained_is_that_of_scikit_learn(counts, loss, power):
    X, whole, amounts = counts
    y = whole if power == 1 else amounts
    found = SparseRegressor(k=2, loss=loss).fit(X[:200], y[:200])
    expected = d2_tweedie_score(y[200:], found.predict(X[200:]), power=power)
    assert found.evaluate(X[200:], y[200:]).to_frame().loc["d2", "value"] == pytest.approx(expected, rel=1e-9)
    if loss == "gamma":  # a gamma has no deviance at zero
        assert "d2" not in found.evaluate(X[200:], whole[200:]).to_frame().index


def test_only_deviances_have_a_share_of_the_deviance(diabetes, counts, tmp_path):
    assert "d2" not in SparseRegressor(k=2).fit(*diabetes).evaluate().to_frame().index
    X, y, _ = counts
    model = SparseRegressor(k=2, loss="negative_binomial").fit(X, y)
    assert 0 < model.evaluate(X, y).errors.d2 < 1
    model.save(tmp_path / "model.json")  # without the dispersion
    assert pauca.load(tmp_path / "model.json").evaluate(X, y).errors.d2 is None
    pairs = SparseRegressor(k=2, loss="poisson").fit(X, np.column_stack([y, y]))
    alone = SparseRegressor(k=2, loss="poisson").fit(X, y)
    both = pairs.evaluate(X, np.column_stack([y, y])).errors.d2
    assert both == pytest.approx(alone.evaluate(X, y).errors.d2, rel=1e-6)


def test_classes_take_an_offset_and_no_exposure(tumours):
    X, y = tumours
    known = np.where(y == "malignant", 0.5, -0.5)
    model = SparseClassifier(k=1).fit(X, y, offset=known)
    assert model.evaluate(X, y, offset=known).accuracy.value == model.score(X, y, offset=known)
    with pytest.raises(ValueError, match="pass offset="):
        model.evaluate(X, y)
    with pytest.raises(ValueError, match="logarithm of the mean"):
        model.evaluate(X, y, exposure=np.ones(len(y)))
    with pytest.raises(ValueError, match="same number of rows"):
        model.evaluate(X, y[1:], offset=known)


def test_rows_without_weight_are_not_measured(tumours):
    X, y = tumours
    weights = np.r_[np.ones(400), np.zeros(169)]
    whole = SparseClassifier(k=range(6), ridge=0.01, selection_rule=3.0).fit(X, y, sample_weight=weights)
    part = SparseClassifier(k=range(6), ridge=0.01, selection_rule=3.0).fit(X[:400], y[:400])
    assert whole.k_ == part.k_
    assert whole.evaluate().n_rows == 400
    assert whole.path_.choice.held_out == pytest.approx(part.path_.choice.held_out, rel=1e-5)


def test_summaries_tell_what_rows_held_out_say(tumours):
    model = SparseClassifier(k=range(6), ridge=0.01, selection_rule=3.0).fit(*tumours)
    auc = model.path_.choice.held_out["auc"]
    assert f"AUC {auc:.3f}, accuracy" in model.summary()
    assert "optimistic" in model.summary()
    position = model.path_.choice.position(1)
    assert f"{100 * model.path_.choice.mean[position]:.2f} %" in model.at(1).summary()
    assert "explained on held-out rows" in model.at(1).summary()


def test_files_keep_the_figures(tumours, tmp_path):
    model = SparseClassifier(k=range(6), ridge=0.01, selection_rule=3.0).fit(*tumours)
    model.save(tmp_path / "model.json")
    again = pauca.load(tmp_path / "model.json")
    assert again.path_.statistics == model.path_.statistics
    assert again.path_.choice.held_out == model.path_.choice.held_out
    assert again.path_.explained(2) == model.path_.explained(2)
    assert again.summary() == model.summary()


def test_explained_does_not_count_the_ridge(diabetes):
    X, y = diabetes
    model = SparseRegressor(k=4, ridge=0.5).fit(X, y)
    assert model.path_.explained(4) == pytest.approx(model.score(X, y))
    assert model.path_[4].objective > model.path_[4].loss
    assert model.path_.explained(0) == 0.0


def test_a_constant_explains_exactly_nothing(tumours):
    model = SparseClassifier(k=range(6), ridge=[0.01, 0.1], selection_rule=3.0).fit(*tumours)
    assert model.path_.choice.mean[0] == 0.0
    assert (model.path_.choice.fold_scores[:, 0] == 0.0).all()


def test_nested_folds_of_a_size_set_by_hand_choose_its_ridge_again():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 30))
    y = X[:, :6] @ [1.0, 0.9, 0.8, 0.7, 0.6, 0.5] + rng.normal(size=60)
    model = SparseRegressor(cv=3).fit(X, y)
    chosen = model.at(4 if model.k_ != 4 else 3, ridge="best")
    size = chosen.k_
    found = chosen.evaluate(nested=True)
    assert {len(names) for names in found.fold_choices} == {size}
    assert "for every fold the features and the ridge were chosen again" in found.message
    assert "The size was set by hand" in found.message
    assert "the features, the size and the ridge were chosen again" in model.evaluate(nested=True).message
    alone = SparseRegressor(k=[size], cv=3).fit(X, y).evaluate(nested=True)
    assert found.errors.rmse == pytest.approx(alone.errors.rmse)


@pytest.mark.parametrize(
    ("loss", "ratio"),
    [
        ("poisson", "rate ratio"),
        ("negative_binomial", "rate ratio"),
        ("gamma", "ratio of means"),
        ("tweedie", "ratio of means"),
        ("squared_error", ""),
    ],
)
def test_ratios_are_named_by_the_loss(counts, loss, ratio):
    X, whole, amounts = counts
    y = whole if ratio == "rate ratio" else amounts
    assert SparseRegressor(k=1, loss=loss).fit(X, y).inference("bootstrap", n_resamples=3).ratio == ratio


def test_counts_that_vary_too_much_for_their_likelihood_are_told(counts):
    X, _, amounts = counts
    rng = np.random.default_rng(0)
    wild = rng.negative_binomial(1.0, 1 / (1 + 3 * np.exp(X[:, 0] / 2)))
    model = SparseRegressor(k=1, loss="poisson").fit(X, wild)
    found = model.inference()
    column = model.path_[1].support
    reference = sm.GLM(wild, sm.add_constant(X[:, column]), family=sm.families.Poisson()).fit()
    pearson = reference.pearson_chi2 / reference.df_resid
    assert found.overdispersion == pytest.approx(pearson, rel=1e-6)
    assert f"The counts vary {pearson:.3g} times as much" in found.caution
    assert f"are {np.sqrt(pearson):.2g} times too narrow" in found.caution
    for quiet in (
        model.inference("bootstrap", n_resamples=3),
        SparseRegressor(k=1, loss="negative_binomial").fit(X, wild).inference(),
        SparseRegressor(k=1, loss="poisson").fit(X, rng.poisson(np.exp(X[:, 0] / 2))).inference(),
        SparseRegressor(k=1, loss="gamma").fit(X, amounts).inference(),
    ):
        assert "The counts vary" not in quiet.caution


def test_ratios_next_to_one_have_digits_beyond_it(counts):
    X, whole, _ = counts
    printed = SparseRegressor(k=1, loss="poisson").fit(1e4 * X, whole).inference().summary()
    assert re.search(r"(1\.0{3,}\d\d|0\.9{3,}\d\d)  +(1\.0|0\.9)\d+ to (1\.0|0\.9)\d+", printed)


def test_a_page_of_test_rows_has_no_nested_folds(diabetes, tmp_path):
    X, y = diabetes
    with pytest.raises(ValueError, match="nested=True is for the rows of the fit"):
        SparseRegressor(k=1).fit(X, y).report(tmp_path / "page.html", X=X, y=y, nested=True)


def test_a_title_is_given_by_name(diabetes, tmp_path):
    with pytest.raises(TypeError, match="not the text 'Diabetes': a title is given by name, title="):
        SparseRegressor(k=1).fit(*diabetes).report(tmp_path / "page.html", "Diabetes")


def test_a_coefficient_at_its_bound_is_called_so_and_has_no_interval_beyond(diabetes, tmp_path):
    X, y = diabetes
    model = SparseRegressor(k=4, always=["s1"], bounds={"bmi": (0, 300), "s1": (0, None), "s5": (None, 700)}).fit(X, y)
    assert model.path_.names(4) == ["bmi", "bp", "s1", "s5"]
    found = model.inference().to_frame()
    assert found["at_bound"].to_dict() == {"bmi": True, "bp": False, "s1": True, "s5": False, "(intercept)": False}
    # statsmodels with the bounded ones held there
    judge = sm.OLS(y - 300 * X["bmi"], sm.add_constant(X[["bp", "s5"]])).fit()
    free = ["bp", "s5", "(intercept)"]
    errors = judge.bse.rename({"const": "(intercept)"})[free]
    assert found.loc[free, "standard_error"].tolist() == pytest.approx(errors.tolist())
    assert found.loc[["bmi", "s1"], ["standard_error", "lower", "upper"]].isna().all(axis=None)
    ends = judge.conf_int().loc["bp"].tolist()
    assert found.loc["bp", ["lower", "upper"]].tolist() == pytest.approx(ends, rel=1e-9)
    assert found.loc["s5", "lower"] == pytest.approx(judge.conf_int().loc["s5", 0], rel=1e-9)
    assert found.loc["s5", "upper"] == 700  # Wald's would end beyond the bound
    assert "'bmi', 's1' are at their bounds: they have no standard error" in model.inference().caution
    drawn = model.inference("bootstrap", n_resamples=5)
    assert "at its bound" in str(drawn)
    assert drawn.lower[2] >= 0
    model.save(tmp_path / "model.json")
    for one in (model, pauca.load(tmp_path / "model.json")):
        assert "'bmi', 's1' are at their bounds" in one.summary()
    model.report(tmp_path / "page.html", n_resamples=5)
    assert (tmp_path / "page.html").read_text().count("(at its bound)") == 2
    assert "at_bound" not in SparseRegressor(k=2).fit(X, y).inference().to_frame()


def test_criteria_of_counts_are_all_at_the_dispersion_of_the_model(counts):
    X, _, _ = counts
    rng = np.random.default_rng(1)
    y = rng.negative_binomial(2, 1 / (1 + np.exp(0.5 + 0.6 * X[:, 1] - 0.3 * X[:, 4]) / 2))
    model = SparseRegressor(loss="negative_binomial", criterion="bic").fit(X, y)
    given = SparseRegressor(loss=NegativeBinomial(model.dispersion_), criterion="bic").fit(X, y)
    frame, judge = model.path_.to_frame(), given.path_.to_frame()
    assert model.k_ == given.k_ == frame["bic"].idxmin()
    assert frame[["aic", "bic"]].to_numpy() == pytest.approx(judge[["aic", "bic"]].to_numpy(), rel=1e-6)
    difference = (frame["bic"] - frame["aic"]).to_numpy()
    assert difference == pytest.approx((np.log(300) - 2) * (frame.index + 1))


@pytest.mark.parametrize("scoring", [None, "average_precision"])
def test_scores_of_nested_folds_are_those_that_sizes_are_compared_by(tumours, scoring):
    X, y = tumours
    model = SparseClassifier(k=range(5), ridge=0.1, scoring=scoring).fit(X.iloc[:, :4], y)
    data, choice = model._training_data, model.path_.choice
    score = held_out_score(data, data.folds, data.held_out, scorer_for(model, scoring))
    assert score == pytest.approx(choice.mean[choice.position(model.k_)], rel=1e-5)
    assert ("average_precision is that of class 'malignant'." in model.summary()) == (scoring is not None)
    assert ("average_precision is that of class" in header(model_data_of(model), "a title")) == (scoring is not None)


@pytest.mark.filterwarnings("ignore:The largest size")
@pytest.mark.parametrize(
    ("labels", "positive"), [(["1", "2"], "2"), ([1, 2], "1"), ([-1.0, 1.0], "1.0"), ([False, True], "True")]
)
def test_scores_of_one_class_name_the_class_that_scikit_learn_scores(tumours, tmp_path, labels, positive):
    X, y = tumours
    X, y = X.iloc[:150, :3], np.array(labels)[(y[:150] == "malignant").astype(int)]
    model = SparseClassifier(k=range(1, 3), ridge=0.1, scoring="f1", cv=2).fit(X, y)
    scores = [
        f1_score(y[fold.test].astype(str), one.predict(X.iloc[fold.test]).astype(str), pos_label=positive)
        for fold in model._training_data.folds
        for one in [SparseClassifier(k=1, ridge=0.1).fit(X[fold.weights > 0], y[fold.weights > 0])]
    ]
    assert model.path_.choice.fold_scores[:, 0] == pytest.approx(scores)
    assert f"f1 is that of class {positive!r}." in model.summary()
    model.save(tmp_path / "model.json")
    assert f"f1 is that of class {positive!r}." in pauca.load(tmp_path / "model.json").summary()
    data = with_class_names(model_data_of(model), ["ill", "well"])
    name = "ill" if positive == str(labels[0]) else "well"
    assert f"f1 is that of class {name!r}." in html.unescape(header(data, "a title"))


@pytest.mark.filterwarnings("ignore:The largest size")
def test_a_score_of_ones_own_is_not_said_to_be_of_a_class(tumours):
    def f1(model, X, y):
        return model.score(X, y)

    model = SparseClassifier(k=range(1, 3), ridge=0.1, scoring=f1, cv=2).fit(tumours[0].iloc[:99, :3], tumours[1][:99])
    assert "is that of class" not in model.summary()
