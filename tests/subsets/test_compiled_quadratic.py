"""Compiled sums of the quadratic around a model are those of NumPy."""

import numpy as np
import pytest

from pauca.compiled import kernels_used
from pauca.design import DenseDesign
from pauca.losses import Gamma, LogLoss, NegativeBinomial
from pauca.objectives import SmoothObjective
from pauca.ordinal.cumulative_logit import CumulativeLogit
from pauca.subsets.compiled_gains import BESIDE, BY_MEAN
from pauca.subsets.smooth import SmoothSubset

pytest.importorskip("numba")

N, D = 120, 700
LOSSES = {"log_loss": LogLoss(), "gamma": Gamma(), "negative binomial": NegativeBinomial(0.5), "ordinal": None}


def quadratic(name):
    """That around a model of three of many columns, one of which has a copy."""
    rng = np.random.default_rng(5)
    X, weights = rng.standard_normal((N, D)), rng.random(N)
    X[:, 9] = X[:, 3]
    mean = np.exp(0.5 * X[:, 3] - 0.5 * X[:, 7])
    y = {
        "log_loss": np.where(rng.random(N) < mean / (1 + mean), 1.0, -1.0),
        "gamma": rng.gamma(2.0, mean / 2),
        "negative binomial": rng.poisson(mean).astype(float),
        "ordinal": np.digitize(np.log(mean) + rng.logistic(size=N), [-0.5, 0.5]).astype(float),
    }[name]
    design = DenseDesign(X, weights / weights.sum(), center=True)
    objective = SmoothObjective.of(design, y[None], LOSSES[name] or CumulativeLogit(), ridge=1e-3)
    subset = SmoothSubset.start(objective).moved_to([3, 7, 20])
    return subset.cache.quadratic(subset.fit)


@pytest.mark.parametrize("name", LOSSES)
def test_gains_are_the_same(name):
    units, answers = [1, 5, 9, 300, 699], []
    for mode in ("never", "always"):
        with kernels_used(mode):
            around = quadratic(name)
            answers.append((around.refit_gains, around.refined_gains(units), around.pair_gains(units[:3])))
            if mode == "always":
                used = (BY_MEAN, BESIDE.coupled if name == "ordinal" else BESIDE.single)
                assert all(kernels.module is not None for kernels in used)
                # The gains of single units come with those of pairs.
                np.testing.assert_allclose(quadratic(name).refined_gains(units), around.refined_gains(units), rtol=1e-9)
    for expected, found in zip(*answers, strict=True):
        # The models themselves differ within the tolerance of refits.
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-9)
    assert answers[0][0].max() > 1e-4
