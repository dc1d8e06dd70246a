"""Sparse models drawn from dense ones: chances, means and exact expectations, held against brute force."""

import numpy as np
import pytest

from pauca.sampling import METHODS, draw, lay_out


def uneven(seed, d=12, outputs=None):
    """Coefficients and moments over several orders of magnitude, with a zero and a constant column among them."""
    rng = np.random.default_rng(seed)
    coef = rng.normal(size=d if outputs is None else (outputs, d)) * np.exp(rng.normal(size=d))
    moments = np.exp(rng.normal(size=d))
    coef[..., 3] = 0.0
    moments[5] = 0.0
    return coef, moments


@pytest.mark.parametrize("outputs", [None, 3])
@pytest.mark.parametrize("method", METHODS)
def test_draws_are_sparse_vectors(method, outputs):
    coef, moments = uneven(0, outputs=outputs)
    drawn = draw(coef, moments, 4, method, np.random.default_rng(0))
    assert drawn.values.shape == (*coef.shape[:-1], len(drawn.support))
    assert np.all(np.diff(drawn.support) > 0)
    assert not {3, 5} & set(drawn.support.tolist())
    assert len(drawn.support) == 4 if method in {"systematic", "truncate"} else 1 <= len(drawn.support) <= 4


@pytest.mark.parametrize("k", [1, 2, 5, 9])
@pytest.mark.parametrize("method", ["magnitude", "moments", "systematic"])
def test_chances_and_means(method, k):
    coef, moments = uneven(k)
    sampling = lay_out(coef, moments, k, method)
    rng = np.random.default_rng(k)
    counts, total, square = np.zeros((3, len(sampling.features)))
    times = 4000
    for _ in range(times):
        places, factors = sampling.draw(rng)
        counts[places] += 1
        total[places] += factors
        square[places] += factors**2
    spread = np.sqrt(np.maximum(sampling.chances * (1 - sampling.chances), 1e-12) / times)
    assert np.all(np.abs(counts / times - sampling.chances) <= 4 * spread)
    mean = total / times
    error = np.sqrt(np.maximum(square / times - mean**2, 1e-18) / times)
    assert np.all(np.abs(mean - 1) <= 4.5 * np.maximum(error, 1e-9))
