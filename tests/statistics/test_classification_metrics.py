"""Metrics of two classes, judged by scikit-learn, statsmodels and brute force."""

import numpy as np
import pytest
import statsmodels.api as sm
from sklearn import metrics
from sklearn.calibration import calibration_curve
from statsmodels.stats.proportion import proportion_confint

from pauca.statistics.classification_metrics import Share, brier_score, calibration, confusion, log_loss, ranking
from pauca.statistics.logistic_calibration import calibration_intercept, calibration_slope


def problem(seed, n=200, ties=False):
    rng = np.random.default_rng(seed)
    probability = rng.uniform(size=n).round(1 if ties else 12)
    return rng.uniform(size=n) < probability, probability


@pytest.mark.parametrize("ties", [False, True])
def test_auc_and_brier_are_those_of_scikit_learn(ties):
    positive, probability = problem(0, ties=ties)
    assert ranking(positive, probability).auc == pytest.approx(metrics.roc_auc_score(positive, probability))
    assert brier_score(positive, probability) == pytest.approx(metrics.brier_score_loss(positive, probability))


def test_the_error_of_the_auc_is_that_of_the_definition():
    positive, score = problem(1, n=60, ties=True)
    ups, downs = score[positive], score[~positive]
    wins = (ups[:, None] > downs) + 0.5 * (ups[:, None] == downs)
    variance = wins.mean(axis=1).var(ddof=1) / len(ups) + wins.mean(axis=0).var(ddof=1) / len(downs)
    assert ranking(positive, score).standard_error == pytest.approx(np.sqrt(variance))


def test_the_interval_of_the_auc_covers():
    """Over many samples of a known problem, about 95 of 100 intervals hold the true area."""
    rng, held = np.random.default_rng(2), []
    for _ in range(300):
        ups, downs = rng.standard_normal(60) + 1.0, rng.standard_normal(60)
        found = ranking(np.repeat([True, False], 60), np.concatenate([ups, downs]))
        lower, upper = found.interval()
        held.append(lower <= 0.76024994 <= upper)  # the normal distribution at 1 / sqrt(2)
    assert 0.91 <= np.mean(held) <= 0.98


def test_one_class_has_no_ranking():
    assert np.isnan(ranking(np.ones(4, dtype=bool), np.arange(4.0)).auc)
    assert np.isnan(confusion(np.ones(4, dtype=bool), np.ones(4, dtype=bool)).specificity.value)


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.9])
def test_shares_at_a_threshold_are_those_of_scikit_learn(threshold):
    positive, probability = problem(3)
    flagged = probability >= threshold
    found = confusion(positive, flagged)
    assert found.accuracy.value == pytest.approx(metrics.accuracy_score(positive, flagged))
    assert found.sensitivity.value == pytest.approx(metrics.recall_score(positive, flagged))
    assert found.specificity.value == pytest.approx(metrics.recall_score(~positive, ~flagged))
    assert found.predictive_value.value == pytest.approx(metrics.precision_score(positive, flagged))
    assert found.negative_predictive_value.value == pytest.approx(metrics.precision_score(~positive, ~flagged))


@pytest.mark.parametrize(("count", "of"), [(0, 10), (3, 10), (10, 10), (480, 500)])
def test_intervals_of_shares_are_wilsons(count, of):
    assert Share(count, of).interval(0.9) == pytest.approx(proportion_confint(count, of, 0.1, method="wilson"))


@pytest.mark.parametrize("ties", [False, True])
def test_calibration_is_that_of_scikit_learn(ties):
    positive, probability = problem(4, n=500, ties=ties)
    found = calibration(positive, probability)
    assert found.n_rows.sum() == 500
    assert found.n_events.sum() == positive.sum()
    if not ties:  # scikit-learn has bins of its own for those
        observed, predicted = calibration_curve(positive, probability, n_bins=10, strategy="quantile")
        np.testing.assert_allclose(found.predicted, predicted)
        np.testing.assert_allclose(found.observed, observed)
    for share, (lower, upper) in zip(found.observed, found.intervals(), strict=True):
        assert lower <= share <= upper


def test_calibration_of_constant_probabilities_is_one_bin():
    found = calibration(np.array([True, False, False, False]), np.full(4, 0.25))
    assert (found.n_rows.tolist(), found.observed.tolist(), found.predicted.tolist()) == ([4], [0.25], [0.25])


def test_log_loss_is_that_of_scikit_learn_also_where_a_probability_is_nothing():
    rng = np.random.default_rng(5)
    probabilities = rng.dirichlet(np.ones(3), size=40)
    codes = rng.integers(0, 3, size=40)
    assert log_loss(codes, probabilities) == pytest.approx(metrics.log_loss(codes, probabilities, labels=[0, 1, 2]))
    sure = np.eye(3)[(codes + 1) % 3]
    assert log_loss(codes, sure) == pytest.approx(metrics.log_loss(codes, sure, labels=[0, 1, 2]))


def test_calibration_is_that_of_statsmodels():
    rng = np.random.default_rng(0)
    score = rng.normal(size=400)
    positive = rng.random(400) < 1 / (1 + np.exp(0.3 - 0.7 * score))
    share = 1 / (1 + np.exp(-score))
    both = sm.Logit(positive, sm.add_constant(score)).fit(disp=0)
    moved = sm.GLM(positive, np.ones(400), family=sm.families.Binomial(), offset=score).fit()
    assert calibration_slope(positive, share) == pytest.approx(both.params[1], rel=1e-8)
    assert calibration_intercept(positive, share) == pytest.approx(moved.params[0], rel=1e-8)


def test_calibration_that_has_no_finite_value_is_none():
    share = np.array([0.1, 0.2, 0.6, 1.0])
    assert calibration_slope(share > 0.5, share) is None  # the classes are separated
    assert calibration_slope(np.array([True, False, True, False]), np.full(4, 0.5)) is None
    assert calibration_intercept(np.ones(4, dtype=bool), share) is None
    assert calibration_slope(np.array([True, False, False, True]), share) > 0  # though one is certain
