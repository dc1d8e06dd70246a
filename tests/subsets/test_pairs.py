"""The two units that gain most together: their expected gain, and searches that find what single additions miss."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from pauca import SparseClassifier, SparseCox, SparseOrdinalClassifier, SparseRegressor
from pauca.constraints.limits import Limits
from pauca.design import make_design
from pauca.losses import LogLoss, SquaredError
from pauca.methods import Exchange
from pauca.objectives import SmoothObjective
from pauca.subsets import local_quadratic
from pauca.subsets.smooth import SmoothSubset

# One addition after the other, swaps of one, and pairs.
PLAIN = Exchange(scouts=(), detour=0)


def squared(X, Y, **options):
    design = make_design(X, np.full(len(X), 1 / len(X)), center=True)
    objective = SmoothObjective.of(design, Y, SquaredError(), n_outputs=len(Y), **options)
    return SmoothSubset.start(objective, Limits())


def masked(n=200, d=12, noise=0.05, seed=0):
    """Columns 3 and 8 are nearly the same, and only their difference matters: alone each gains next to nothing."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, 8] = X[:, 3] + noise * X[:, 8]
    return X, 3.0 * (X[:, 8] - X[:, 3]) / noise, rng


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_of_squared_loss_the_gains_of_pairs_are_exact(outputs, ridge):
    rng = np.random.default_rng(1)
    X, Y = rng.standard_normal((60, 8)) @ rng.standard_normal((8, 8)), rng.standard_normal((outputs, 60))
    subset = squared(X, Y, ridge=ridge)
    for chosen in ([], [2, 5]):
        subset = subset.moved_to(chosen)
        units = [unit for unit in range(8) if unit not in chosen]
        gains = subset.cache.quadratic(subset.fit).pair_gains(units)
        for i, j in itertools.product(range(len(units)), repeat=2):
            together = subset.value - subset.moved_to([*chosen, units[i], units[j]]).value
            np.testing.assert_allclose(gains[i, j], together if i != j else 0.0, rtol=1e-7, atol=1e-12)
        pair = subset.likely_pair()
        assert {units[place] for place in np.unravel_index(gains.argmax(), gains.shape)} == {pair.first, pair.second}
        assert pair.gain == pytest.approx(gains.max(), rel=1e-7)


@pytest.mark.parametrize("most", [1 << 20, 0])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_of_squared_loss_the_gains_beside_a_model_are_exact(ridge, most, monkeypatch):
    """Also those found from what models nearby explain."""
    monkeypatch.setattr(local_quadratic, "STACKED_NUMBERS", most)
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((60, 8)) @ rng.standard_normal((8, 8)), rng.standard_normal((1, 60))
    subset = squared(X, y, ridge=ridge)
    for chosen in ([2, 5], [2, 5, 7], [1, 5, 7]):
        subset = subset.moved_to(chosen)
        others = [unit for unit in range(8) if unit not in chosen]
        exact = [subset.value - subset.moved_to([*chosen, unit]).value for unit in others]
        gains = subset.cache.quadratic(subset.fit).refit_gains[others]
        np.testing.assert_allclose(gains, exact, rtol=1e-7, atol=1e-12)


def test_estimates_are_the_same_from_whole_columns_and_from_their_entries(monkeypatch):
    rng = np.random.default_rng(3)
    X = sparse.csc_matrix(np.where(rng.random((400, 12)) < 0.1, rng.integers(1, 3, (400, 12)), 0).astype(float))
    y = np.where(X[:, :3].sum(axis=1).A1 + rng.standard_normal(400) > 0.5, 1.0, -1.0)
    found = []
    for whole in (1 << 17, 0):
        monkeypatch.setattr(local_quadratic, "WHOLE_NUMBERS", whole)
        design = make_design(X, np.full(400, 1 / 400), center=True)
        subset = SmoothSubset.start(SmoothObjective.of(design, y[None], LogLoss(), ridge=0.01), Limits()).moved_to(
            [0, 4]
        )
        assert subset.cache.fits.on_rows(subset.fit)[0].merged
        units = [unit for unit in range(12) if unit not in (0, 4)]
        quadratic = subset.cache.quadratic(subset.fit)
        found.append(np.vstack([quadratic.refined_gains(units), quadratic.pair_gains(units)]))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-10, atol=1e-14)


def test_copies_and_combinations_are_no_pair():
    X, y, rng = masked()
    X = np.column_stack([X[:, 3], X[:, 3], 2 * X[:, 3]])
    y = X[:, :1].T + rng.standard_normal(200)
    assert squared(X, y).likely_pair() is None
    assert squared(X, y, ridge=0.1).likely_pair() is None
    assert squared(X, y).moved_to([0]).likely_pair() is None


def test_no_pair_is_known_where_limits_hold():
    X, score, _ = masked()
    subset = squared(X, score[None])
    assert {subset.likely_pair().first, subset.likely_pair().second} == {3, 8}
    limited = SmoothSubset.start(subset.objective, Limits(never=(1,)))
    assert limited.likely_pair() is None


@pytest.mark.parametrize("kind", ["classes", "counts", "ordered", "times"])
def test_two_features_that_help_only_together_are_found(kind):
    X, score, rng = masked()
    if kind == "classes":
        model = SparseClassifier(k=2, ridge=1e-3, method=PLAIN, standardize=True)
        y = (score + rng.logistic(size=200) > 0).astype(int)
    elif kind == "counts":
        model, y = SparseRegressor(k=2, loss="poisson", method=PLAIN), rng.poisson(np.exp(0.3 * score))
    elif kind == "ordered":
        model, y = SparseOrdinalClassifier(k=2, method=PLAIN), np.digitize(score + rng.logistic(size=200), [-2, 2])
    else:
        y = np.empty(200, dtype=[("event", bool), ("time", float)])
        y["event"], y["time"] = rng.random(200) < 0.8, rng.exponential(np.exp(-0.5 * score)) + 1e-3
        model = SparseCox(k=2, method=PLAIN)
    assert model.fit(X, y).support_.tolist() == [3, 8]


def test_models_do_not_depend_on_the_size_that_was_asked_for():
    X, score, rng = masked(d=20)
    y = rng.poisson(np.exp(0.3 * score + 0.5 * X[:, 0] - 0.4 * X[:, 5]))
    whole = SparseRegressor(k=6, loss="poisson").fit(X, y)
    parts = SparseRegressor(k=3, loss="poisson").fit(X, y)
    assert [parts.path_[size].support.tolist() for size in range(4)] == [
        whole.path_[size].support.tolist() for size in range(4)
    ]
