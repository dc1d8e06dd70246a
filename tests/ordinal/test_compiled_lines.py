"""Compiled kernels of ordered classes have the answers of NumPy."""

import numpy as np
import pytest

from pauca.compiled import kernels_used
from pauca.ordinal.cumulative_logit import CumulativeLogit


def answers(codes, v, scores, columns):
    """What the loss of some scores after the other is, where rows have weight, and what its thresholds leave."""
    loss, rows = CumulativeLogit().tuned(codes[None], v), v > 0
    for a in scores:
        slopes = loss.slopes(codes, a)
        yield from (part[..., rows] for part in (loss.value(codes, a), slopes.derivative, slopes.curvature))
        yield loss.thresholds(a)
        yield loss.row_coupling(a, columns)
        yield loss.coupled_image(a, columns)[..., rows]
        yield loss.coupled_image(a, columns.reshape(-1, len(v))[0])[..., rows]
        yield loss.row_coupling(a.reshape(-1, len(v))[0], np.zeros((0, len(v))))


@pytest.mark.parametrize("scale", [1e-3, 0.5, 5.0, 250.0, 2000.0])
@pytest.mark.parametrize("shape", [(), (4,), (2, 2)])
@pytest.mark.parametrize("classes", [2, 3, 6])
def test_both_kinds_of_code_have_the_same_answers(classes, shape, scale):
    pytest.importorskip("numba")
    rng = np.random.default_rng(classes)
    codes, v = rng.integers(0, classes, 80).astype(float), rng.integers(0, 3, 80).astype(float)
    scores = scale * (codes / classes + rng.standard_normal((3, *shape, 80)))
    columns, found = rng.standard_normal((*(shape or (3,)), 80)), []
    for mode in ("never", "always"):
        with kernels_used(mode):
            found.append(list(answers(codes, v / v.sum(), scores, columns)))
    for numpy, compiled in zip(*found, strict=True):
        assert numpy.shape == compiled.shape
        # Of scores far apart few rows are in doubt, and thresholds have next to no curvature.
        np.testing.assert_allclose(compiled, numpy, rtol=1e-9 if scale < 100 else 1e-3, atol=1e-9)


def test_rows_without_weight_may_have_any_scores():
    pytest.importorskip("numba")
    codes, v = np.array([0.0, 1, 2, 0, 1, 2, 2]), np.array([1.0, 1, 1, 1, 1, 1, 0]) / 6
    a = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.0])
    with kernels_used("never"):
        expected = CumulativeLogit().tuned(codes[None], v).slopes(codes, a).derivative[:6]
    for any_score in (250.0, 1e4, np.inf):
        a = np.append(a[:6], any_score)
        with np.errstate(invalid="ignore"), kernels_used("always"):
            found = CumulativeLogit().tuned(codes[None], v).slopes(codes, a).derivative[:6]
        np.testing.assert_allclose(found, expected, rtol=1e-9)
