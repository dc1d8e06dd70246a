"""The loss of ordered classes against its definition: best thresholds, derivatives, and held-out rows."""

import numpy as np
import pytest
from scipy.optimize import minimize

from pauca.compiled import kernels_used
from pauca.losses.classification import LEAST_PROBABILITY
from pauca.ordinal.cumulative_logit import CumulativeLogit
from pauca.ordinal.probabilities import class_probabilities, sigmoid


@pytest.fixture(params=["never", "always"], autouse=True)
def kernels(request):
    """Every law holds with and without compiled kernels."""
    if request.param == "always":
        pytest.importorskip("numba")
    with kernels_used(request.param):
        yield


def rows(n=40, classes=4, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, classes, n).astype(float)
    weights = rng.integers(0, 4, n).astype(float)
    return codes, weights / weights.sum(), rng.standard_normal((3, n)), rng.standard_normal((2, n))


def least(codes, v, a):
    """The least loss over thresholds, by scipy on log-distances."""

    def mean(x):
        thresholds = x[0] + np.concatenate([[0.0], np.cumsum(np.exp(x[1:]))])
        p = class_probabilities(a, thresholds)[np.arange(len(a)), codes.astype(int)]
        return -v @ np.log(np.maximum(p, 1e-300))

    return minimize(mean, np.zeros(int(codes.max())), tol=1e-12).fun


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_value_derivative_and_hessian(classes):
    codes, v, a, columns = rows(classes=classes)
    loss = CumulativeLogit().tuned(codes[None], v)
    found = loss.value(codes, a) @ v
    np.testing.assert_allclose(found, [least(codes, v, row) for row in a], rtol=1e-7)
    np.testing.assert_allclose(loss.value(codes, a + 50.0) @ v, found, rtol=1e-10)
    np.testing.assert_allclose(
        np.exp(-loss.value(codes, a[0])),
        class_probabilities(a[0], loss.thresholds(a[0]))[np.arange(40), codes.astype(int)],
        rtol=1e-10,
    )
    step, slopes = 1e-5, loss.slopes(codes, a)
    assert slopes.curvature.max() <= loss.smoothness
    for j, z in enumerate(columns):
        above, below = loss.value(codes, a + step * z) @ v, loss.value(codes, a - step * z) @ v
        np.testing.assert_allclose(slopes.derivative @ (v * z), (above - below) / (2 * step), rtol=1e-5, atol=1e-8)
        above, below = (loss.derivative(codes, a + s * step * z) @ (v * columns).T for s in (1, -1))
        for i, row in enumerate(a):
            shared = loss.row_coupling(row, columns)
            hessian = (columns * (v * slopes.curvature[i])) @ columns.T - shared @ shared.T
            np.testing.assert_allclose(hessian[j], (above[i] - below[i]) / (2 * step), rtol=1e-5, atol=1e-7)
            assert np.linalg.eigvalsh(hessian)[0] >= -1e-12
            image = loss.coupled_image(row, columns)
            np.testing.assert_allclose(columns @ image.T, shared @ shared.T, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3, 6])
@pytest.mark.parametrize("scale", [0.3, 3.0, 40.0, 500.0])
def test_one_model_has_the_loss_that_it_has_among_others(classes, scale):
    codes, v, a, columns = rows(n=60, classes=classes, seed=1)
    together = CumulativeLogit().tuned(codes[None], v)
    values, slopes = together.value(codes, scale * a) @ v, together.derivative(codes, scale * a) @ (v * columns).T
    for place, row in enumerate(scale * a):
        alone = CumulativeLogit().tuned(codes[None], v)
        assert alone.value(codes, row) @ v == pytest.approx(values[place], rel=1e-9)
        if scale < 100:  # beyond, rows in doubt are so few that thresholds have next to no curvature
            found = alone.derivative(codes, row) @ (v * columns).T
            np.testing.assert_allclose(found, slopes[place], rtol=1e-6, atol=1e-8)


def test_far_scores_and_perfect_orders():
    codes, v, a, _ = rows()
    loss = CumulativeLogit().tuned(codes[None], v)
    assert loss.value(codes, 30.0 * codes) @ v < 1e-4
    for scale in (1e-3, 30.0, 300.0):
        value = loss.value(codes, scale * a) @ v
        assert np.all(np.isfinite(value))
        assert np.all(np.diff(loss.thresholds(scale * a)) > 0)


def test_rows_held_out_take_the_thresholds_of_the_fit():
    codes, v, a, _ = rows()
    codes[5] = 9.0
    test = np.array([1, 5, 7, 30])
    fit = v.copy()
    fit[test] = 0.0
    loss = CumulativeLogit().tuned(codes[None], fit / fit.sum())
    found = loss.held_out_losses(codes[None], v, test)(a)
    for row, line in zip(a, found, strict=True):
        p = class_probabilities(row[test], loss.thresholds(row))
        np.testing.assert_allclose(
            line[[0, 2, 3]], -np.log(p[[0, 2, 3], codes[test][[0, 2, 3]].astype(int)]), rtol=1e-9
        )
        assert line[1] == pytest.approx(-np.log(LEAST_PROBABILITY))


def test_thresholds_of_classes_next_to_nothing_beside_another():
    codes, weights = np.array([0, 0, 1, 2, 1, 3]), np.array([1e-16, 1e-16, 1e-16, 1e-16, 1e-16, 1.0])
    loss = CumulativeLogit().tuned(codes[None].astype(float), weights)
    scores = np.linspace(-1.0, 1.0, 6)[None]
    best = loss.thresholds(scores)
    value = loss.losses(scores, best) @ weights
    for place in range(3):
        for move in (-0.01, 0.01):
            moved = best.copy()
            moved[..., place] += move
            assert loss.losses(scores, moved) @ weights > value


def test_small_probabilities_have_all_their_digits():
    np.testing.assert_allclose(sigmoid(np.array([-700.0, -50.0, 0.0])), [np.exp(-700), np.exp(-50), 0.5], rtol=1e-14)


def test_thresholds_do_not_depend_on_the_scores_before():
    codes, v, a, _ = rows(n=200)
    fresh = CumulativeLogit().tuned(codes[None], v).thresholds(a[0])
    for before in (3.0 * a[1], 500.0 * codes, 900.0 * a[2]):
        loss = CumulativeLogit().tuned(codes[None], v)
        loss.slopes(codes, before)  # steps start from these
        np.testing.assert_allclose(loss.thresholds(a[0]), fresh, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("light", [1.0, 1e-12])
@pytest.mark.parametrize("scale", [1e2, 1e4, 1e15])
def test_the_value_does_not_depend_on_scores_that_separate_classes_before(scale, light):
    """Thresholds between separated classes have next to no curvature: to first order they go anywhere."""
    codes, v = np.array([1.0, 2, 0, 0, 1, 1]), np.array([1.0, 1, light, light, 1, 1])
    loss = CumulativeLogit().tuned(codes[None], v / v.sum())
    loss.slopes(codes, scale * np.array([0.0, 1, -1, -1.1, 0.3, 0.2]))
    for a in (np.zeros(6), np.array([0.3, -0.2, 0.1, 0.4, 0.0, -0.5]), np.array([0.0, 200, -200, 90, -90, 0])):
        fresh = CumulativeLogit().tuned(codes[None], v / v.sum())
        np.testing.assert_allclose(loss.value(codes, a) @ v, fresh.value(codes, a) @ v, rtol=1e-9, atol=1e-12)


def test_the_best_thresholds_lie_between_those_of_the_lowest_and_the_highest_scores():
    codes, v, a, _ = rows(classes=5)
    loss = CumulativeLogit().tuned(codes[None], v)
    alike, known = loss.thresholds(np.zeros(len(v))), a[:, v > 0]
    for scores, own in zip(a, known, strict=True):
        assert np.all(loss.thresholds(scores) >= alike + own.min())
        assert np.all(loss.thresholds(scores) <= alike + own.max())


def test_steps_that_gain_little_do_not_swap_thresholds():
    """The distance of thresholds far apart has next to no curvature."""
    codes, v = np.array([1.0, 1, 2, 0, 2]), np.array([0.03, 1e-4, 0.05, 0.3, 5e-11])
    a = np.array([11.0, 36, 140, -116, 18])
    for scores in (a, np.stack([a, a])):
        loss = CumulativeLogit().tuned(codes[None], v / v.sum())
        assert np.all(np.diff(loss.thresholds(scores)) > 0)
        assert loss.value(codes, scores) @ v == pytest.approx(least(codes, v, a), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("spread", [1.0, 290.0, 310.0, 2000.0])
def test_losses_of_far_scores_are_those_of_the_definition(spread):
    codes, v, a, _ = rows()
    loss, scores = CumulativeLogit().tuned(codes[None], v), spread * a[0] / np.abs(a[0]).max()
    ends = np.concatenate([[-np.inf], loss.thresholds(scores), [np.inf]])
    upper, lower = ends[codes.astype(int) + 1] - scores, ends[codes.astype(int)] - scores
    expected = np.logaddexp(0, -upper) + np.logaddexp(0, lower) - np.log(-np.expm1(-np.diff(ends)))[codes.astype(int)]
    np.testing.assert_allclose(loss.value(codes, scores), expected, rtol=1e-9, atol=1e-12)


def test_where_no_constant_changes_the_loss_none_is_looked_for(monkeypatch):
    """Its slope is rounding: the search for a root took more than half of the time of a default Cox model."""
    codes, v, _, _ = rows()
    loss = CumulativeLogit().tuned(codes[None], v)
    monkeypatch.setattr(type(loss), "derivative", None)
    monkeypatch.setattr(type(loss), "slopes", None)
    assert loss.constants(codes[None], v, 1).tolist() == [0.0]
