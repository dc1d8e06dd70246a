"""What a single column gains if it alone moves, against grids that close in on the minimum along it."""

import numpy as np
import pytest
from loss_rows import LOSSES, PIECEWISE, least
from scipy import sparse

from pauca.compiled import kernels_used
from pauca.design import make_design
from pauca.objectives import SmoothObjective
from pauca.subsets.smooth import SmoothSubset

N, CHOSEN = 90, 2


def columns(rng):
    """Bell-shaped, skewed, rare, binary, and mostly of one value that is not zero; the first are in the model."""
    rare = rng.random((N, 3)) < [0.05, 0.15, 0.4]
    bell, skewed = rng.standard_normal((N, CHOSEN + 2)), np.exp(1.5 * rng.standard_normal((N, 2)))
    return np.hstack([bell, skewed, np.where(rare, skewed[:, :1], 0.0), rare, 7.0 - rare])


DESIGNS = {"dense": np.asarray, "sparse": sparse.csc_array}


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("name", [name for name, row in LOSSES.items() if name in PIECEWISE or " at " not in name])
def test_gains_of_every_kind_of_column_are_those_of_a_search_along_it(name, design):
    row, rng = LOSSES[name], np.random.default_rng(4)
    X = columns(rng)
    signal = X[:, 0] + X[:, 5] + 2.0 * X[:, 6] + rng.logistic(0, 1.0, N)
    place = np.searchsorted(np.quantile(signal, np.linspace(0, 1, len(row.targets) + 1)[1:-1]), signal)
    y, weights = np.array(sorted(row.targets))[place], np.arange(N) % 4 / (N * 1.5)
    # Rows without weight may hold anything.
    X[weights == 0] *= 9.0
    made = make_design(DESIGNS[design](X), weights / weights.sum(), center=True)
    subset = SmoothSubset.start(SmoothObjective.of(made, y[None], row.loss, ridge=1e-4))
    subset.exchange((), range(CHOSEN))
    quadratic, loss, v = subset.cache.quadratic(subset.fit), subset.objective.smooth, made.weights
    features = np.arange(CHOSEN, made.n_features)
    slope, curvature = quadratic.slope[0, features], quadratic.exact_own()[0, features]
    with kernels_used("never"):
        gains = subset.cache.coordinate_search(subset.fit).gains(features, slope, curvature)
    used, penalties = v > 0, subset.objective.penalty[features]
    scores, y, v = quadratic.scores[0, used], y[used], v[used]
    for gain, z, penalty in zip(gains, made.columns(features)[:, used], penalties, strict=True):

        def values(steps, z=z, penalty=penalty):
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                losses = loss.value(np.broadcast_to(y, (len(steps), len(y))), scores + np.outer(steps, z)) @ v
            return np.nan_to_num(losses + 0.5 * penalty * steps**2, nan=np.inf)

        reach = 1.0
        while reach < 1e6 and values(np.array([-reach, reach])).min() < values(np.zeros(1))[0]:
            reach *= 2.0
        assert gain == pytest.approx(values(np.zeros(1))[0] - least(values, -reach, reach), rel=1e-6, abs=1e-11)
