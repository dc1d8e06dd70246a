"""The settings that a stream finds for itself, and its second stage: truncation and refit."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from streams import KINDS, kind, make_rows

from pauca import StreamClassifier, StreamRegressor
from pauca.losses import SquaredError
from pauca.sgd.epoch_sgd import OneVsRestSGD, SGDSettings
from pauca.sgd.reservoir import Reservoir, Samples
from pauca.sgd.tuning import GivenSettings, SettingsSearch, choose_settings


def test_the_reservoir_is_a_uniform_sample():
    n, most, runs = 60, 12, 500
    rows = Samples(np.arange(1.0, n + 1)[:, None], np.arange(n, dtype=float), np.ones(n))
    counts = np.zeros(n)
    for seed in range(runs):
        reservoir = Reservoir(most, 1, seed)
        for start in range(0, n, 7):
            reservoir.add(rows, np.arange(start, min(start + 7, n)))
        held = reservoir.samples()
        np.testing.assert_array_equal(held.X.toarray()[:, 0], held.y + 1)
        counts[held.y.astype(int)] += 1
    share = most / n
    assert np.all(np.abs(counts / runs - share) < 4.5 * np.sqrt(share * (1 - share) / runs))


def test_chosen_settings_are_the_best_that_were_tried():
    X, y = make_rows()
    rows = Samples(sparse.csr_matrix(X), y, np.ones(len(y)))

    def make(settings):
        zero = np.zeros(1)
        options = {"average": True, "fit_intercept": True, "intercept_scale": 1.0}
        return OneVsRestSGD(40, SquaredError(), settings, lambda t: t[None], zero, **options)

    search = SettingsSearch(rows, make, SquaredError(), 2)
    found = choose_settings(search, GivenSettings(), 0.01)
    assert found.radius < 1e6
    scores = {settings: search.loss(settings) for settings in search._first_stage}
    assert len(scores) > 6
    within = {s: v for s, v in scores.items() if s.radius < 1e6}
    assert scores[found] == min(within.values())
    given = GivenSettings(radius=4.0, learning_rate=0.05)
    first_epoch = choose_settings(search, given, 0.01).first_epoch
    assert choose_settings(search, given, 0.01) == SGDSettings(4.0, 0.05, first_epoch)


@pytest.mark.parametrize("name", KINDS)
def test_units_of_the_table_do_not_matter(name):
    estimator, X, y = kind(name)
    coef, intercept = clone(estimator).fit(X, y).average_iterate_
    for factor in (2.0**-12, 2.0**10):
        model = clone(estimator).fit(factor * X, y)
        np.testing.assert_allclose(factor * model.average_iterate_[0], coef, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(model.average_iterate_[1], intercept, rtol=1e-7, atol=1e-9)


def test_given_settings_are_used_and_the_ball_holds():
    X, y = make_rows()
    model = StreamRegressor(k=3, radius=2.5, learning_rate=0.05, first_epoch=64).fit(X, y)
    assert (model.radius_, model.learning_rate_, model.first_epoch_) == (2.5, 0.05, 64)
    for coef, _ in (model.average_iterate_, model.last_iterate_):
        assert np.abs(coef).sum() <= 2.5 * (1 + 1e-9)
    assert np.abs(model.last_iterate_[0]).sum() == pytest.approx(2.5)


@pytest.mark.parametrize("truncation", ["truncate", "systematic", "moments", "magnitude"])
def test_the_second_stage_refits_what_it_has_chosen(truncation):
    X, y = make_rows()
    model = StreamRegressor(k=6, truncation=truncation).fit(X, y)
    assert 3 <= model.k_ <= 6
    columns = X[:, model.support_]
    ideal = LinearRegression().fit(columns, y)
    np.testing.assert_allclose(model.coef_[model.support_], ideal.coef_, rtol=1e-8)
    assert model.intercept_ == pytest.approx(ideal.intercept_, rel=1e-6)
    assert model.objective_ == pytest.approx(0.5 * np.mean((y - ideal.predict(columns)) ** 2))


def test_the_second_stage_of_classes_is_a_likelihood_over_all_of_them():
    estimator, X, y = kind("three classes", ridge=1e-3)
    model = estimator.fit(X, y)
    ideal = LogisticRegression(C=1 / (1e-3 * len(y)), tol=1e-10, max_iter=5000).fit(X[:, model.support_], y)
    np.testing.assert_allclose(model.predict_proba(X), ideal.predict_proba(X[:, model.support_]), atol=1e-4)


def test_without_a_refit_the_coefficients_are_those_that_were_learned():
    X, y = make_rows()
    model = StreamRegressor(k=5, refit=False).fit(X, y)
    coef, intercept = model.average_iterate_
    np.testing.assert_array_equal(model.coef_[model.support_], coef[model.support_])
    assert model.intercept_ == intercept
    strength = np.abs(coef) * np.sqrt(np.mean(X**2, axis=0))
    assert set(model.support_) == set(np.argsort(-strength)[:5])
    assert model.objective_ == pytest.approx(0.5 * np.mean((y - model.predict(X)) ** 2))
    huber = StreamRegressor(k=5, refit=False, loss="huber").fit(X, y)
    np.testing.assert_array_equal(huber.coef_[huber.support_], huber.average_iterate_[0][huber.support_])
    everything = StreamRegressor(k=None).fit(X, y)
    np.testing.assert_array_equal(everything.coef_, everything.average_iterate_[0])
    last = StreamRegressor(k=None, average=False).fit(X, y)
    np.testing.assert_array_equal(last.coef_, last.last_iterate_[0])


def test_draws_depend_on_the_seed_alone():
    X, y = make_rows(n=200)
    settings = {"radius": 20.0, "learning_rate": 0.05, "first_epoch": 50, "shuffle": False, "truncation": "systematic"}
    models = [StreamRegressor(k=4, random_state=seed % 10, **settings).fit(X, y) for seed in range(20)]
    assert [model.support_.tolist() for model in models[:10]] == [model.support_.tolist() for model in models[10:]]
    assert len({tuple(model.support_) for model in models}) > 1


def test_rows_without_weight_might_as_well_not_be_there():
    X, y = make_rows()
    weights = np.where(np.arange(len(y)) % 3 == 0, 0.0, 2.0)
    some = weights > 0
    model = StreamRegressor(k=3).fit(np.where(some[:, None], X, 1e6), np.where(some, y, -1e3), sample_weight=weights)
    np.testing.assert_allclose(model.coef_, StreamRegressor(k=3).fit(X[some], y[some]).coef_, rtol=1e-9)
    with pytest.raises(ValueError, match="at least one row must count"):
        StreamRegressor().fit(X, y, sample_weight=np.zeros(len(y)))


def test_weights_of_classes_move_the_border():
    X, y = make_rows()
    labels = np.where(y > 1.5, "rare", "common")
    shares = [
        np.mean(StreamClassifier(k=3, class_weight=weight).fit(X, labels).predict(X) == "rare")
        for weight in (None, "balanced", {"rare": 50.0})
    ]
    assert shares[0] < shares[1] < shares[2]
