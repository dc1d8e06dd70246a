"""Compiled losses have the values and derivatives of the losses they stand for."""

import math

import numpy as np
import pytest
from loss_rows import LOSSES

from pauca.losses import LogLoss, NegativeBinomial
from pauca.losses.compiled_curves import FORMS, compiled_curve
from pauca.losses.offset import WithOffset

pytest.importorskip("numba")

COMPILED = {name: row for name, row in LOSSES.items() if compiled_curve(row.loss)}


def cases(row, scores):
    """Targets and scores, every pair of them."""
    y, a = (np.ravel(part) for part in np.meshgrid(row.targets, scores))
    return y.astype(float), a.astype(float)


def scores_of(row):
    few = np.array([-30.0, -3.1, -0.7, -1e-9, 0.0, 1e-9, 0.3, 2.2, 30.0])
    return np.abs(few[few != 0]) if row.positive else few


def test_every_form_is_compared():
    assert {type(row.loss) for row in COMPILED.values()} == set(FORMS)


@pytest.mark.parametrize("name", COMPILED)
def test_values_and_derivatives_are_those_of_the_loss(name):
    from pauca.losses.kernels import find_slopes, total_loss

    row, curve = COMPILED[name], compiled_curve(COMPILED[name].loss)
    y, a = cases(row, scores_of(row))
    derivative, curvature = np.empty(len(a)), np.empty(len(a))
    find_slopes(*curve, y, a, derivative, curvature)
    expected = row.loss.slopes(y, a)
    np.testing.assert_allclose(derivative, expected.derivative, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(curvature, expected.curvature, rtol=1e-14, atol=1e-15)
    for each, value in enumerate(row.loss.value(y, a)):
        found = total_loss(*curve, y[each : each + 1], np.array([0.5]), a[each : each + 1])
        assert found == pytest.approx(0.5 * value, rel=1e-13, abs=1e-15)


@pytest.mark.parametrize("name", COMPILED)
def test_extreme_scores_are_as_extreme_as_those_of_the_loss(name):
    from pauca.losses.kernels import find_slopes

    row, curve = COMPILED[name], compiled_curve(COMPILED[name].loss)
    y, a = cases(row, [1e-300, 1e3, 1e200, np.inf] if row.positive else [-np.inf, -1e200, -1e3, 1e3, 1e200, np.inf])
    derivative, curvature = np.empty(len(a)), np.empty(len(a))
    find_slopes(*curve, y, a, derivative, curvature)
    with np.errstate(all="ignore"):
        expected = row.loss.slopes(y, a)
    for found, judge in ((derivative, expected.derivative), (curvature, expected.curvature)):
        np.testing.assert_array_equal(np.isfinite(found), np.isfinite(judge))
        np.testing.assert_allclose(found, judge, rtol=1e-12, atol=1e-200)


def test_the_exponential_and_the_logarithm_are_right_to_the_last_bits():
    from pauca.losses.kernels import exponential, log_of_one_more

    for x in np.linspace(-700, 709, 4001):
        assert exponential(x) == pytest.approx(np.exp(x), rel=4e-16)
    assert [exponential(x) for x in (710.0, np.inf)] == [np.inf, np.inf]
    assert 0 <= exponential(-np.inf) < 1e-300
    assert np.isnan(exponential(np.nan))
    for e in [0.0, 1e-300, 1e-9, *np.linspace(0, 1, 501)]:
        assert log_of_one_more(e) == pytest.approx(np.log1p(e), rel=8e-16)


def test_losses_that_may_differ_have_no_form():
    class Mine(LogLoss):
        def value(self, y, a):
            return 2 * super().value(y, a)

    assert compiled_curve(Mine()) is None
    assert compiled_curve(WithOffset(LogLoss())) is None
    assert compiled_curve(NegativeBinomial()) is None
    assert compiled_curve(NegativeBinomial(0.5)).number == 0.5


def test_logarithms_of_one_more_are_right_to_the_last_bits():
    from pauca.losses.kernels import log_of_one_more_than

    for x in [0.0, 5e-324, 1e-300, 1e-17, 3e-8, 0.1, 0.5, 1.0, 1.5, 2.0, 7.3, 1e5, 1e16, 3e200, 1e299]:
        assert log_of_one_more_than(x) == pytest.approx(math.log1p(x), rel=4e-16, abs=0.0)
