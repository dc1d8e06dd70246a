"""SparseCox: judged by statsmodels, brute force and counting; folds, curves, files and bad input."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold
from statsmodels.duration.hazard_regression import PHReg

from pauca import PaucaWarning, SparseCox, load
from pauca.survival import concordance_index

Y = [("event", bool), ("time", float)]


def survival(n=150, d=6, seed=0, digits=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, 3] = (X[:, 3] > 1.0) * 3.0
    time = rng.exponential(np.exp(0.8 * X[:, 1] - 0.5 * X[:, 3] - 0.3 * X[:, 4]))
    end = rng.exponential(3.0, n)
    y = np.empty(n, dtype=Y)
    y["event"], y["time"] = time <= end, np.round(np.minimum(time, end), digits) + 0.1
    return X, y


@pytest.mark.parametrize("how", [{}, {"strata": True}, {"entry": True}, {"strata": True, "entry": True}])
@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_coefficients_and_likelihood_are_those_of_statsmodels(ties, how):
    X, y = survival()
    rng = np.random.default_rng(1)
    strata = rng.integers(0, 3, len(y)) if "strata" in how else None
    entry = y["time"] * rng.uniform(0, 0.7, len(y)) if "entry" in how else None
    model = SparseCox(k=3, ties=ties).fit(X, y, strata=strata, entry=entry)
    judge = PHReg(y["time"], X[:, model.support_], y["event"].astype(int), entry=entry, strata=strata, ties=ties)
    found = judge.fit(method="newton", disp=0)
    np.testing.assert_allclose(model.coef_[model.support_], found.params, rtol=1e-6)
    gained = len(y) * (model.path_[0].objective - model.objective_)
    assert gained == pytest.approx(found.llf - judge.loglike(np.zeros(3)), rel=1e-9)


@pytest.mark.parametrize("method", ["exchange", "forward", "stepwise", "foba", "backward", "replacement"])
def test_every_method_finds_the_best_of_few(method):
    X, y = survival(n=100, d=6)
    model = SparseCox(k=2, method=method).fit(X, y)
    best = min(
        SparseCox(k=2, always=list(pair), method="forward").fit(X, y).objective_
        for pair in itertools.combinations(range(6), 2)
    )
    assert model.objective_ == pytest.approx(best, rel=1e-9)


def test_the_objective_is_stationary_with_weights_ridge_and_bounds():
    X, y = survival()
    weights = np.random.default_rng(2).integers(0, 3, len(y)).astype(float)
    model = SparseCox(k=4, ridge=0.1, standardize=False, ties="breslow").fit(X, y, weights)
    judge = SparseCox(k=4, ridge=0.1, standardize=False, ties="breslow", always=model.support_.tolist())
    again = judge.fit(np.repeat(X, weights.astype(int), axis=0), np.repeat(y, weights.astype(int)))
    np.testing.assert_allclose(model.coef_, again.coef_, rtol=1e-6)
    bounded = SparseCox(k=3, bounds=(0, 0.4)).fit(X, y)
    used = bounded.coef_[bounded.support_]
    assert np.all((used >= 0) & (used <= 0.4))
    assert bounded.objective_ >= SparseCox(k=3).fit(X, y).objective_
    grouped = SparseCox(k=1, feature_groups=[0, 1, 2, 1, 2, 0]).fit(X, y)
    assert grouped.support_.tolist() == [1, 3]


def test_the_default_chooses_the_features_that_matter_alike_for_any_order_of_rows():
    X, y = survival(n=200, d=8)
    model = SparseCox().fit(X, y)
    assert {1, 3} <= set(model.support_.tolist())
    assert model.k_ <= 5
    assert model.summary().endswith("The concordance says how well the model orders the rows.")
    assert "Shares of the deviance" not in model.at(0).summary()
    cv = list(KFold(4, shuffle=True, random_state=1).split(X))
    one = SparseCox(k=range(5), cv=cv, ridge=0.0).fit(X, y)
    order = np.random.default_rng(0).permutation(len(y))
    place = np.argsort(order)
    two = SparseCox(k=range(5), cv=[(place[a], place[b]) for a, b in cv], ridge=0.0).fit(X[order], y[order])
    np.testing.assert_allclose(one.path_.choice.mean, two.path_.choice.mean, rtol=1e-8, atol=1e-12)
    assert SparseCox(criterion="bic").fit(X, y).k_ >= 2
    scored = SparseCox(k=range(9), scoring=lambda model, X, y: model.score(X, y)).fit(X, y)
    assert 0.6 < scored.path_.choice.mean.max() < 0.9


def test_folds_are_scored_by_the_cross_validated_partial_likelihood():
    X, y = survival(n=80, digits=6)
    X = X[:, [1, 3, 4]]
    cv = list(KFold(4, shuffle=True, random_state=0).split(X))
    model = SparseCox(k=[0, 3], cv=cv, ridge=0.0).fit(X, y)

    def likelihood(rows, coef):
        return PHReg(y["time"][rows], X[rows], y["event"][rows].astype(int), ties="efron").loglike(coef)

    everyone, added = np.arange(len(y)), np.zeros(2)
    for train, _ in cv:
        coefs = (
            np.zeros(3),
            PHReg(y["time"][train], X[train], y["event"][train].astype(int), ties="efron")
            .fit(method="newton", disp=0)
            .params,
        )
        added += [likelihood(everyone, coef) - likelihood(train, coef) for coef in coefs]
    assert model.path_.choice.mean[1] == pytest.approx(1 - added[1] / added[0], abs=1e-6)


def test_concordance_is_what_counting_finds():
    rng = np.random.default_rng(3)
    for n in (2, 5, 40, 120):
        event, time, score = rng.random(n) < 0.6, rng.integers(0, 9, n).astype(float), rng.integers(0, 6, n)
        event[np.argmin(time)], weight = True, rng.random(n)
        time[-1] = 9.0
        above = total = 0.0
        for i, j in itertools.permutations(range(n), 2):
            if event[i] and (time[j] > time[i] or (time[j] == time[i] and not event[j])):
                total += weight[i] * weight[j]
                above += weight[i] * weight[j] * ((score[i] > score[j]) + 0.5 * (score[i] == score[j]))
        assert concordance_index(event, time, score, weight) == pytest.approx(above / total, rel=1e-12)


def test_hazards_and_survival():
    X, y = survival()
    model = SparseCox(k=2).fit(X, y)
    hazard = model.predict_cumulative_hazard_function(X[:3])
    ratio, times = np.exp(X @ model.coef_), np.unique(y["time"][y["event"]])
    steps = [np.sum(y["event"] & (y["time"] == t)) / ratio[y["time"] >= t].sum() for t in times]
    np.testing.assert_allclose(hazard, ratio[:3, None] * np.cumsum(steps), rtol=1e-12)
    np.testing.assert_allclose(model.predict_survival_function(X[:3]), np.exp(-hazard))
    late = model.predict_survival_function(X[:1], times=[0.0, times[0], 1e9])
    np.testing.assert_allclose(late[0], [1.0, np.exp(-hazard[0, 0]), np.exp(-hazard[0, -1])])
    groups = model.risk_groups(3)
    assert groups.n_rows.sum() == len(y)
    assert groups.events.sum() == y["event"].sum()
    assert np.all(np.diff(groups.seen[:, -1]) < 0)
    assert np.all(np.diff(groups.predicted, axis=0) <= 1e-12)
    assert len(model.plot_survival(count=2).lines) == 4
    with pytest.raises(TypeError, match=r"got ndarray.*predict_survival_function"):
        model.plot_survival(X[:3])


def test_strata_have_their_own_hazards(tmp_path):
    X, y = survival()
    site = np.where(np.arange(len(y)) % 2, "a", "b")
    model = SparseCox(k=2).fit(X, y, strata=site)
    model.save(tmp_path / "cox.json")
    again = load(tmp_path / "cox.json")
    curves = model.predict_survival_function(X[:4], strata=site[:4])
    np.testing.assert_array_equal(again.predict_survival_function(X[:4], strata=site[:4]), curves)
    for wrong, words in ((None, "give strata"), (["a"], "every row"), (["a", "c", "a", "a"], "'c'")):
        with pytest.raises(ValueError, match=words):
            model.predict_survival_function(X[:4], strata=wrong)
    np.testing.assert_array_equal(model.at(1).predict(X), again.at(1).predict(X))
    assert np.all(np.isfinite(model.at(1).predict_survival_function(X[:4], strata=site[:4])))
    with pytest.raises(ValueError, match="data of the fit"):
        again.at(1).predict_survival_function(X[:4], strata=site[:4])


def test_y_may_be_two_named_columns_of_a_frame():
    X, y = survival()
    frame = pd.DataFrame({"days": y["time"], "died": y["event"].astype(int), "other": 1})
    model = SparseCox(k=2).fit(X, frame, event="died", time="days")
    np.testing.assert_array_equal(model.coef_, SparseCox(k=2).fit(X, y).coef_)
    assert model.score(X, frame, event="died", time="days") == model.score(X, y)
    assert clone(model).get_params() == model.get_params()


def test_features_and_target_may_be_in_one_frame(tmp_path):
    """As in lifelines: the columns of the target are named, and are no features."""
    X, y = survival()
    features = pd.DataFrame(X, columns=[f"lab{j}" for j in range(X.shape[1])])
    frame = features.assign(died=y["event"].astype(int), days=y["time"])
    named = {"event": "died", "time": "days"}
    model, parted = SparseCox(k=2).fit(frame, **named), SparseCox(k=2).fit(features, frame, **named)
    assert list(model.feature_names_in_) == list(features)
    np.testing.assert_allclose(model.coef_, parted.coef_, rtol=1e-12)
    assert model.score(frame, **named) == parted.score(features, y)
    assert model.evaluate(frame, **named).concordance == parted.evaluate(features, y).concordance
    model.report(tmp_path / "page.html", X=frame, n_resamples=0, **named)
    with pytest.raises(ValueError, match="'left' is not a column"):
        SparseCox(k=2).fit(frame, event="left", time="days")
    with pytest.raises(ValueError, match="requires y to be passed"):
        SparseCox(k=2).fit(frame)


def test_columns_of_the_target_are_no_features():
    X, y = survival()
    features = pd.DataFrame(X, columns=[f"lab{j}" for j in range(X.shape[1])])
    frame = features.assign(died=y["event"].astype(int), days=y["time"])
    named = {"event": "died", "time": "days"}
    model = SparseCox(k=2).fit(frame, frame, **named)
    assert list(model.feature_names_in_) == list(features)
    with pytest.warns(PaucaWarning, match="named as the target, and they were left out: 'days'"):
        model = SparseCox(k=2).fit(frame.drop(columns="died"), frame[["died", "days"]], **named)
    assert list(model.feature_names_in_) == list(features)


def with_times(values):
    X, y = survival()
    y["time"][: len(values)] = values
    return X, y


def without_events():
    X, y = survival()
    y["event"] = False
    return X, y


def events_only_at_the_end():
    X, y = survival()
    y["event"] = y["time"] == y["time"].max()
    return X, y


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (with_times([-1.0]), "must not be negative; that of row 0 is -1"),
        (with_times([1.0, np.nan]), "that of row 1 is nan"),
        (with_times([np.inf]), "must be finite"),
        (without_events(), "No row that has weight has an event"),
        (events_only_at_the_end(), "nobody else is at risk"),
        ((np.ones((3, 1)), np.array([1.0, 2.0, 3.0])), "structured array"),
        ((np.ones((3, 1)), None), "requires y to be passed"),
        ((np.ones((3, 1)), survival(n=4)[1]), "same number of rows"),
        ((np.ones((2, 1)), np.zeros(2, dtype=[("a", float), ("b", float)])), "its fields are 'a'"),
    ],
)
def test_invalid_data(data, words):
    with pytest.raises(ValueError, match=words):
        SparseCox(k=1).fit(*data)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"entry": np.full(150, 1e3)}, "must enter before its time; row 0"),
        ({"entry": [0.0]}, "for every row"),
        ({"strata": ["a"]}, "for every row"),
        ({"strata": [*[0.0] * 149, np.nan]}, "stratum of row 149 is missing"),
        ({"strata": [None, *["a"] * 149]}, "stratum of row 0 is missing"),
        ({"event": "died"}, "Name both"),
    ],
)
def test_invalid_arguments(how, words):
    with pytest.raises(ValueError, match=words):
        SparseCox(k=1).fit(*survival(), **how)


def test_invalid_columns_and_ties():
    X, y = survival()
    frame = pd.DataFrame({"days": y["time"], "died": 2})
    with pytest.raises(ValueError, match="event='dead' is not a column of the frame; did you mean 'died'"):
        SparseCox(k=1).fit(X, frame, event="dead", time="days")
    with pytest.raises(ValueError, match=r"the column 'died' holds 2\. .* frame\['died'\] = frame\['died'\] == 2"):
        SparseCox(k=1).fit(X, frame, event="died", time="days")
    with pytest.raises(ValueError, match="the column 'died' holds 'alive'"):
        SparseCox(k=1).fit(X, frame.assign(died="alive"), event="died", time="days")
    with pytest.raises(ValueError, match="'ties'"):
        SparseCox(k=1, ties="exact").fit(X, y)
    for dates in (pd.Timestamp("2024-01-01"), pd.Timedelta(days=3)):
        with pytest.raises(ValueError, match="dates or differences of dates: give numbers"):
            SparseCox(k=1).fit(X, frame.assign(died=y["event"], days=dates), event="died", time="days")
    model = SparseCox(k=1).fit(X, y)
    for times in ([1.0, np.nan], "soon"):
        with pytest.raises(ValueError, match="times must be"):
            model.predict_survival_function(X, times)


def test_a_monotone_likelihood_names_its_column():
    X, y = survival()
    table = pd.DataFrame(X, columns=list("abcdef"))
    table["c"] = -y["time"]
    with pytest.warns(PaucaWarning, match="likelihood is monotone: the column 'c'.*ridge=0.001, or"):
        SparseCox(k=1).fit(table, y)
    assert SparseCox(k=1, ridge=1e-3).fit(table, y).get_feature_names_out().tolist() == ["c"]
