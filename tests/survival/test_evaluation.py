"""evaluate, inference and report of SparseCox: judged by statsmodels, counting and fits by hand."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GroupKFold, LeaveOneOut, RepeatedKFold
from statsmodels.duration.hazard_regression import PHReg
from statsmodels.duration.survfunc import SurvfuncRight

from pauca import SparseCox, load
from pauca.cli import main
from pauca.clock import OutOfTime, limited_until
from pauca.statistics.classification_metrics import Share
from pauca.statistics.concordance import concordance
from pauca.statistics.event_calibration import EventCalibration
from pauca.survival import concordance_index
from pauca.survival.evaluation import _share_with_event
from pauca.survival.risk_sets import SURVIVAL

Y = [("event", bool), ("time", float)]


def survival(n=200, seed=0, digits=1):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((n, 5)), columns=list("abcde"))
    time = rng.exponential(np.exp(0.9 * X["b"] - 0.6 * X["d"]))
    end = rng.exponential(3.0, n)
    y = np.empty(n, dtype=Y)
    y["event"], y["time"] = time <= end, np.round(np.minimum(time, end), digits) + 0.1
    return X, y


@pytest.mark.parametrize("how", [{}, {"strata": True}, {"entry": True}])
@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_standard_errors_are_those_of_statsmodels(ties, how):
    X, y = survival()
    rng = np.random.default_rng(1)
    strata = rng.integers(0, 3, len(y)) if "strata" in how else None
    entry = y["time"] * rng.uniform(0, 0.7, len(y)) if "entry" in how else None
    X = X + 1e4  # far from zero: nothing may be lost to cancellation
    model = SparseCox(k=3, ties=ties).fit(X, y, strata=strata, entry=entry)
    columns = X.iloc[:, model.support_] - 1e4
    judge = PHReg(y["time"], columns, y["event"].astype(int), entry=entry, strata=strata, ties=ties)
    expected = judge.fit(method="newton", disp=0)
    found = model.inference().to_frame()
    np.testing.assert_allclose(found["standard_error"], expected.bse, rtol=1e-5)
    np.testing.assert_allclose(found[["lower", "upper"]], expected.conf_int(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["ratio"], np.exp(found["coefficient"]))
    assert "hazard ratio" in model.inference().summary()
    assert "These intervals take the chosen features as given" in model.inference().summary()


def test_a_bootstrap_agrees_with_the_likelihood():
    X, y = survival(n=400, digits=3)
    model = SparseCox(k=2).fit(X, y)
    by_rows, by_curvature = (
        model.inference(method).to_frame()["standard_error"] for method in ("bootstrap", "likelihood")
    )
    np.testing.assert_allclose(by_rows, by_curvature, rtol=0.25)
    assert list(by_rows.index) == ["b", "d"]  # there is no intercept


@pytest.mark.parametrize("late", [False, True])
def test_concordance_is_that_of_counting(late):
    _, y = survival(n=60)
    rng = np.random.default_rng(0)
    score, weight = np.round(rng.standard_normal(60), 1), rng.integers(0, 3, 60).astype(float)
    entry = np.where(rng.random(60) < 0.5, 0.5 * y["time"], -np.inf) if late else None
    stratum = rng.integers(0, 2, 60)
    right = total = 0.0
    for i, j in itertools.permutations(range(60), 2):
        at_risk = entry is None or entry[j] < y["time"][i]
        follows = y["time"][j] > y["time"][i] or (y["time"][j] == y["time"][i] and not y["event"][j])
        if y["event"][i] and follows and at_risk and stratum[i] == stratum[j]:
            total += weight[i] * weight[j]
            right += weight[i] * weight[j] * ((score[i] > score[j]) + 0.5 * (score[i] == score[j]))
    found = concordance(y["event"], y["time"], score, weight, entry=entry, stratum=stratum)
    assert found.value == pytest.approx(right / total, rel=1e-12)


def test_the_error_of_concordance_is_what_samples_vary_by():
    values = []
    for seed in range(60):
        X, y = survival(n=150, seed=seed)
        found = concordance(y["event"], y["time"], -X["b"].to_numpy(), np.ones(150))
        values.append((found.value, found.standard_error))
    value, error = np.array(values).T
    assert np.mean(error) == pytest.approx(np.std(value, ddof=1), rel=0.25)


def test_test_rows_are_measured_as_by_hand():
    X, y = survival(n=600)
    model = SparseCox(k=2).fit(X[:300], y[:300])
    found = model.evaluate(X[300:], y[300:], horizon=1.0)
    assert found.concordance.value == pytest.approx(model.score(X[300:], y[300:]))
    assert (found.rows, found.n_rows, found.n_events) == ("test", 300, int(y["event"][300:].sum()))
    scores = model.predict(X[300:])
    judge = PHReg(y["time"][300:], scores[:, None], y["event"][300:].astype(int), ties="efron").fit(disp=0)
    assert found.calibration_slope == pytest.approx(judge.params[0], rel=1e-6)
    risk = 1 - model.predict_survival_function(X[300:], times=[1.0])[:, 0]
    lowest = risk <= np.quantile(risk, 0.2)
    curve = found.calibration
    assert curve.predicted[0] == pytest.approx(risk[lowest].mean())
    seen = SurvfuncRight(y["time"][300:][lowest], y["event"][300:][lowest])
    place = np.searchsorted(seen.surv_times, 1.0, side="right") - 1
    assert curve.observed[0] == pytest.approx(1 - seen.surv_prob[place])
    variance = (seen.surv_prob_se[place] / seen.surv_prob[place]) ** 2
    assert curve.variance[0] == pytest.approx(variance, rel=1e-6)
    low, high = curve.intervals()[0]
    assert 0 <= low < curve.observed[0] < high <= 1
    said = str(found).split("risk of an event by time 1, in groups of rows from low to high risk:\n")
    names, first, *_ = said[1].split("\n")
    assert names.split() == ["predicted", "observed", "95", "%", "interval", "rows"]
    shown = f"{100 * curve.predicted[0]:.1f} % {100 * curve.observed[0]:.1f} % {100 * low:.0f} % to {100 * high:.0f} %"
    assert " ".join(first.split()) == f"{shown} 60"
    early = model.evaluate(X[300:], y[300:], horizon=0.01)
    assert "by time 0.01: not compared, since too few events were seen by then\n" in str(early)
    frame = pd.DataFrame({"died": y["event"], "years": y["time"]})
    same = model.evaluate(X[300:], frame[300:], event="died", time="years")
    assert same.concordance.value == found.concordance.value


def test_rows_of_the_fit_are_predicted_by_models_without_them():
    X, y = survival()
    model = SparseCox(k=2).fit(X, y)
    found = model.evaluate()
    assert found.rows == "folds"
    assert len(found.fold_choices) == 5
    folds = model._training_data.folds or model._make_folds(model._training_data)
    sums = np.zeros(2)
    for fold in folds:
        train = np.setdiff1d(np.arange(len(y)), fold.test)
        scores = SparseCox(k=2).fit(X.iloc[train], y[train]).predict(X.iloc[fold.test])
        rows = y[fold.test]
        pairs = sum(
            rows["event"][i]
            and (rows["time"][j] > rows["time"][i] or (rows["time"][j] == rows["time"][i] and not rows["event"][j]))
            for i, j in itertools.permutations(range(len(rows)), 2)
        )
        sums += pairs * concordance(rows["event"], rows["time"], scores, np.ones(len(rows))).value, pairs
    assert found.concordance.value == pytest.approx(sums[0] / sums[1], rel=1e-9)
    assert "Measured by 5-fold cross-validation" in found.summary()


def test_chosen_sizes_are_called_optimistic_and_nested_folds_are_not(tmp_path):
    X, y = survival()
    model = SparseCox().fit(X, y)
    found = model.evaluate()
    assert found.optimistic
    assert f"Concordance {found.concordance.value:.3f} on the held-out rows, optimistic since" in model.summary()
    nested = model.evaluate(nested=True)
    assert not nested.optimistic
    assert 0 < nested.score < model.path_.explained(model.k_)
    assert "The concordance says" in model.summary()
    assert "The concordance, which evaluate() measures, says" in SparseCox(k=1).fit(X, y).summary()
    with pytest.raises(AttributeError, match=r"SparseCox has no to_points: .* a SparseClassifier of two classes"):
        model.to_points()
    assert not hasattr(model, "to_points")
    model.save(tmp_path / "cox.json")
    again = load(tmp_path / "cox.json")
    assert again.path_.choice.held_out == model.path_.choice.held_out
    assert again.evaluate(X, y).concordance.value == pytest.approx(model.score(X, y))


def test_what_cannot_be_measured_is_said():
    X, y = survival()
    model = SparseCox(k=1).fit(X, y)
    for given, words in (
        ({"X": X}, "takes X and y together"),
        ({"event": "died"}, "give X and y too"),
        ({"X": X, "y": y, "nested": True}, "nested=True is for the rows of the fit"),
        ({"X": X[:5], "y": y}, "the same number of rows"),
        ({"horizon": -1.0}, "horizon"),
    ):
        with pytest.raises(ValueError, match=words):
            model.evaluate(**given)
    constant = SparseCox(k=1).fit(X, y).at(0).evaluate()
    assert constant.concordance.value == 0.5
    assert constant.calibration_slope is None


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize(
    "given", [{"event": "died"}, {"time": "years"}, {"entry": np.zeros(200)}, {"strata": "a"}, {"y": "test"}]
)
def test_pages_refuse_what_is_of_test_rows_without_them(given, kept, tmp_path):
    X, y = survival()
    model = SparseCox(k=1).fit(X, y)
    if not kept:
        model.save(tmp_path / "cox.json")
        model = load(tmp_path / "cox.json")
    with pytest.raises(ValueError, match=r"give X and y too|takes X and y together"):
        model.report(tmp_path / "page.html", n_resamples=0, **given)
    assert not (tmp_path / "page.html").exists()
    with pytest.raises(ValueError, match="nested=True is for the rows of the fit"):
        model.report(tmp_path / "page.html", X=X, y=y, nested=True, n_resamples=0)


def test_pages_have_the_figures_and_so_has_the_shell(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, y = survival()
    model = SparseCox(k=2).fit(X, y)
    model.report("page.html", n_resamples=2)
    page = (tmp_path / "page.html").read_text()
    assert f"{model.evaluate().concordance.value:.3f}" in page
    for words in ("Concordance", "Calibration slope", "the event by time", "hazard"):
        assert words in page
    labels = re.findall(">((?:predicted )?probability of the event by time [^<]*)<", page)
    assert labels
    assert max(map(len, labels)) <= 46  # longer ones leave the chart at its right
    X.assign(died=y["event"].astype(int), years=y["time"]).to_csv("t.csv", index=False)
    command = "fit t.csv --time years --event died --k 1-2 --report shell.html --nested --stability 0"
    assert main(command.split()) == 0
    assert "Concordance" in capsys.readouterr().out
    assert "nested 5-fold cross-validation" in (tmp_path / "shell.html").read_text()


def test_a_stratum_that_no_fold_has_seen_has_no_risk(tmp_path):
    X, y = survival(n=400)
    site = np.arange(400) % 5
    model = SparseCox(k=1, cv=GroupKFold(5)).fit(X, y, strata=site, groups=site)
    found = model.evaluate()
    assert found.calibration is None
    assert found.concordance is not None
    assert "400 rows are left out, since no event of their stratum was seen" in str(found)
    rare = np.where(np.arange(400) < 8, 9, 0)  # two strata, of which one is within a single fold
    late = SparseCox(k=1, cv=GroupKFold(5)).fit(X, y, strata=rare, groups=rare + np.arange(400) // 8).evaluate()
    assert late.calibration.n_rows.sum() == 392
    assert late.calibration.predicted.min() > 0
    assert "8 rows are left out" in str(late)
    model.report(tmp_path / "page.html", n_resamples=0)
    assert "400 rows are left out" in (tmp_path / "page.html").read_text()


def test_the_event_has_a_name_on_the_page(tmp_path):
    SparseCox(k=1).fit(*survival(n=150)).report(tmp_path / "page.html", n_resamples=0, event_name="a relapse")
    page = (tmp_path / "page.html").read_text()
    assert "<title>Time until a relapse with 1 of" in page
    assert "probability of a relapse by time" in page
    assert "free of a relapse" in page
    assert "until the event" not in page


def test_repeated_folds_count_every_row_once():
    X, y = survival(n=300)
    once, often = (
        SparseCox(k=[2], cv=RepeatedKFold(n_splits=5, n_repeats=repeats, random_state=0)).fit(X, y).evaluate(horizon=1)
        for repeats in (1, 3)
    )
    assert once.calibration.n_rows.sum() == often.calibration.n_rows.sum() == 300
    assert once.calibration.n_events.sum() == often.calibration.n_events.sum()
    assert often.n_rows == 300
    np.testing.assert_allclose(often.calibration.variance, once.calibration.variance, rtol=0.5)


@pytest.mark.parametrize(
    ("times", "events", "expected"),
    [
        ([0.01] * 100, 0, (np.nan, np.nan)),  # nobody was seen so long
        ([2.0] * 50 + [0.01] * 50, 0, Share(0, 50).interval()),
        ([0.5] + [0.01] * 99, 1, Share(1, 1).interval()),
        ([0.1 + 0.001 * row for row in range(100)], 100, Share(100, 100).interval()),
        ([0.1] * 50 + [0.3] + [0.2] * 49, 51, Share(2, 2).interval()),
    ],
)
def test_all_or_none_with_an_event_say_as_much_as_the_rows_that_were_seen(times, events, expected):
    y = np.zeros(len(times), dtype=SURVIVAL)
    y["time"], y["event"], y["entry"] = times, np.arange(len(times)) < events, -np.inf
    share, variance, rows = _share_with_event(y, np.full(len(times), 0.3), 1.0)
    assert share == (events > 0)
    ones = np.ones(1)
    curve = EventCalibration(ones, share * ones, ones, ones, variance * ones, rows * ones)
    np.testing.assert_allclose(curve.intervals()[0], expected, rtol=1e-9, atol=1e-12)


def test_unequal_weights_make_the_share_less_certain():
    rng, found = np.random.default_rng(0), []
    weights = rng.choice([0.1, 3.0], 120)
    for _ in range(300):
        y = np.zeros(120, dtype=SURVIVAL)
        time, end = rng.exponential(1.0, 120), rng.exponential(2.0, 120)
        y["event"], y["time"], y["entry"] = time <= end, np.minimum(time, end), -np.inf
        found.append(_share_with_event(y, weights, 1.0)[:2])
    share, variance = np.array(found).T
    assert np.mean(variance) == pytest.approx(np.var(np.log(1 - share)), rel=0.2)


@pytest.mark.filterwarnings("ignore:The largest size")
def test_rows_that_cannot_be_compared_have_no_concordance(tmp_path):
    X, y = survival(n=30)
    alone = SparseCox(k=[1, 2], cv=LeaveOneOut()).fit(X, y)
    found = alone.evaluate()
    assert found.concordance is None
    assert found.n_rows == 30
    assert "concordance: not measured, since no event was seen while" in str(found)
    alone.report(tmp_path / "alone.html", n_resamples=0)
    assert "Concordance: not measured" in (tmp_path / "alone.html").read_text()
    nobody = y.copy()
    nobody["event"] = False
    assert alone.evaluate(X, nobody).concordance is None
    alone.report(tmp_path / "nobody.html", X=X, y=nobody, n_resamples=0)
    assert "Concordance: not measured" in (tmp_path / "nobody.html").read_text()


def test_concordance_is_counted_within_a_time_limit():
    rng = np.random.default_rng(0)
    time = rng.exponential(size=50)
    with limited_until(0.0), pytest.raises(OutOfTime):
        concordance(time < 1, time, -time, np.ones(50), entry=0.5 * time)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"score": [0.1, np.nan, 0.3]}, "score must be finite numbers, but row 1 is not"),
        ({"time": [1.0, 2.0, np.inf]}, "time must be finite"),
        ({"sample_weight": [1.0, -1.0, 1.0]}, "sample_weight must not be negative"),
        ({"score": [0.1, 0.2]}, "event 3, time 3, score 2"),
        ({"sample_weight": [1.0]}, "same number of rows"),
        ({"event": [2, 0, 1]}, "event must be True or False"),
        ({"score": [[0.1], [0.2], [0.3]]}, "score must have one dimension"),
    ],
)
def test_columns_that_cannot_be_compared_are_refused(change, words):
    given = {"event": [True, False, True], "time": [1.0, 2.0, 3.0], "score": [0.9, 0.5, 0.1]}
    with pytest.raises(ValueError, match=words):
        concordance_index(**{**given, **change})
