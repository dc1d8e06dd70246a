"""Every bound of the calculator holds in real runs."""

import math
from itertools import combinations, islice, pairwise

import numpy as np
import pytest
from scipy.optimize import linprog

from pauca import SparseClassifier, SparseRegressor, theory
from pauca.methods import FoBa, Forward, Replacement
from pauca.projections import onto_l1_ball

# Theorems in real runs.


def regression(seed, n=80, d=12, correlation=0.4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + correlation * rng.standard_normal((n, 1))
    X *= rng.uniform(0.3, 2, d)
    return X, X @ (rng.standard_normal(d) * (rng.random(d) < 0.5)) + rng.standard_normal(n), rng


def half_squares(X, y, w):
    return 0.5 * np.mean((y - X @ w) ** 2)


def references(X, y, rng):
    """Models to compare with: the best there is, its shrunken copies, and the best on a few columns."""
    d = X.shape[1]
    best = np.linalg.lstsq(X, y)[0]
    yield from (best, 0.5 * best, onto_l1_ball(best, 0.3 * np.abs(best).sum()))
    for size in (1, 2, 4):
        columns = rng.permutation(d)[:size]
        w = np.zeros(d)
        w[columns] = np.linalg.lstsq(X[:, columns], y)[0]
        yield w


@pytest.mark.parametrize("rule", ["objective", "gradient"])
@pytest.mark.parametrize("seed", range(5))
def test_forward_selection_keeps_its_bounds(seed, rule):
    X, y, rng = regression(seed)
    path = SparseRegressor(k=10, method=Forward(rule), fit_intercept=False).fit(X, y).path_
    moments, least = np.mean(X**2, axis=0), np.linalg.eigvalsh(X.T @ X / len(y))[0]
    for w in references(X, y, rng):
        value, size = half_squares(X, y, w), np.count_nonzero(w)
        norms = {"norm": np.abs(w).sum(), "scale": moments.max()}
        curved = {"n_reference": int(size), "curvature": least, "decrease": path[0].objective - value}
        for k in range(1, 11):
            excess = path[k].objective - value
            assert excess <= theory.forward_accuracy("squared_error", k=k, **norms) + 1e-12
            if rule == "objective":
                norm = theory.moment_norm(w, moments)
                assert excess <= theory.forward_accuracy("squared_error", k=k, norm=norm) + 1e-12
            if curved["decrease"] > 0:
                bound = theory.forward_accuracy_if_curved("squared_error", k=k, scale=moments.max(), **curved)
                assert excess <= bound + 1e-12


def test_forward_bounds_are_not_empty():
    """The bound by norm is met within a small factor on data made for it, so that it could not be halved many times."""
    X, y = theory.tight_distribution(4000, 60, 3.0, random_state=0)
    path = SparseRegressor(k=40, method="forward", fit_intercept=False).fit(X, y).path_
    dense = half_squares(X, y, np.full(60, 3.0 / 60))
    ratios = [
        (path[k].objective - dense) / theory.forward_accuracy("squared_error", norm=3.0, k=k) for k in (10, 20, 40)
    ]
    assert 0.05 < max(ratios) <= 1


def test_forward_selection_of_classes_keeps_its_bound():
    X, y, rng = regression(1, n=150)
    y = np.where(y + rng.logistic(size=150) > 0, 1.0, -1.0)
    path = SparseClassifier(k=8, method="forward", fit_intercept=False, ridge=0.05).fit(X, y).path_
    scale = np.mean(X**2, axis=0).max()
    for w in references(X, y, rng):
        value = np.mean(np.logaddexp(0, -y * (X @ w))) + 0.025 * w @ w
        for k in range(1, 9):
            bound = theory.forward_accuracy("log_loss", norm=np.abs(w).sum(), k=k, scale=scale, ridge=0.05)
            assert path[k].objective - value <= bound


@pytest.mark.parametrize("seed", range(5))
def test_norm_bound(seed):
    """Lemma 2.2 on the best model of every few columns; it is reached by one column."""
    X, y, _ = regression(seed, d=6)
    empty = half_squares(X, y, np.zeros(6))
    for size in (1, 2, 3):
        for columns in map(list, combinations(range(6), size)):
            w = np.linalg.lstsq(X[:, columns], y)[0]
            least = np.linalg.eigvalsh(X[:, columns].T @ X[:, columns] / len(y))[0]
            decrease = empty - half_squares(X[:, columns], y, w)
            bound = theory.norm_bound(n_reference=size, curvature=least, decrease=decrease)
            assert np.abs(w).sum() <= bound * (1 + 1e-9)
            assert size > 1 or np.isclose(np.abs(w).sum(), bound)


@pytest.mark.parametrize("k", [1, 5, 40])
def test_sampling_keeps_its_bounds(k):
    """The best of all models is also the best in the ball of its own norm."""
    X, y, rng = regression(2)
    X /= np.abs(X).max()
    w = np.linalg.lstsq(X, y)[0]
    value, norm, moments = half_squares(X, y, w), np.abs(w).sum(), np.mean(X**2, axis=0)
    for p, bound in (
        (np.abs(w) / norm, theory.sampling_accuracy("squared_error", norm=norm, k=k, scale=moments.max())),
        (
            np.abs(w) * np.sqrt(moments) / theory.moment_norm(w, moments),
            theory.sampling_accuracy("squared_error", norm=theory.moment_norm(w, moments), k=k),
        ),
    ):
        drawn = rng.multinomial(k, p, size=2000) * w / (k * p)
        excess = 0.5 * np.mean((y[:, None] - X @ drawn.T) ** 2, axis=0) - value
        assert np.mean(excess <= bound) >= 0.5
        assert np.mean(excess) <= 0.5 * bound
        tries = theory.repeats(0.99)
        best = excess[: 2000 // tries * tries].reshape(-1, tries).min(axis=1)
        assert np.mean(best <= bound) >= 0.99
    slopes = np.mean(np.abs(y[:, None] - X @ drawn.T), axis=0) - np.mean(np.abs(y - X @ w))
    assert np.mean(slopes) <= 0.5 * theory.sampling_accuracy("absolute_error", norm=theory.moment_norm(w, moments), k=k)


def test_repeats():
    for confidence in (0.3, 0.5, 0.9, 0.99, 1 - 2**-10):
        tries = theory.repeats(confidence)
        assert 1 - 0.5**tries >= confidence * (1 - 1e-12)
        assert tries == 1 or 1 - 0.5 ** (tries - 1) < confidence


def greedy_in_ball(gradient, curvature, radius, d):
    """Shalev-Shwartz, Srebro and Zhang (2010), Algorithm 2: models and gaps, one after another."""
    w = np.zeros(d)
    while True:
        g = gradient(w)
        j = np.argmax(np.abs(g))
        gap = g @ w + radius * abs(g[j])
        yield w, gap
        share = min(1.0, gap / (4 * radius**2 * curvature))
        w = (1 - share) * w
        w[j] -= share * radius * np.sign(g[j])


def best_in_ball(gradient, curvature, radius, d):
    """The least in an l1 ball, by projected gradient steps."""
    w = np.zeros(d)
    for _ in range(2000):
        w = onto_l1_ball(w - gradient(w) / curvature, radius)
    return w


@pytest.mark.parametrize("seed", range(3))
def test_greedy_in_a_ball_keeps_its_bounds(seed):
    X, y, _ = regression(seed, d=8)
    H, c = X.T @ X / len(y), X.T @ y / len(y)
    radius, scale = 0.6 * np.abs(np.linalg.solve(H, c)).sum(), np.diag(H).max()
    best = half_squares(X, y, best_in_ball(lambda w: H @ w - c, np.linalg.eigvalsh(H)[-1], radius, 8))
    smallest = np.inf
    for step, (w, gap) in enumerate(greedy_in_ball(lambda w: H @ w - c, scale, radius, 8)):
        excess, smallest = half_squares(X, y, w) - best, min(smallest, gap)
        assert gap >= excess - 1e-9
        if step:
            about = {"radius": radius, "steps": step, "scale": scale}
            assert excess <= theory.ball_accuracy("squared_error", **about) + 1e-9
            assert smallest <= theory.ball_accuracy("squared_error", stop="gap", **about) + 1e-9
        if step == 500:
            break


def test_greedy_in_a_ball_through_smoothing():
    """Absolute loss through its envelope of curvature 1 / accuracy is within the accuracy after the steps promised."""
    X, y, _ = regression(0, d=5)
    radius, accuracy, scale = 1.0, 0.4, np.mean(X**2, axis=0).max()
    steps = theory.ball_steps("absolute_error", radius=radius, accuracy=accuracy, scale=scale)

    def gradient(w):
        return X.T @ np.clip((X @ w - y) / accuracy, -1, 1) / len(y)

    models = greedy_in_ball(gradient, scale / accuracy, radius, 5)
    w, _ = next(islice(models, steps, None))
    # The least by linear programming, in w = u - v and |y - X w| <= e.
    n = len(y)
    rows = np.block([[X, -X, -np.eye(n)], [-X, X, -np.eye(n)], [np.ones((1, 10)), np.zeros((1, n))]])
    best = linprog(np.r_[np.zeros(10), np.full(n, 1 / n)], A_ub=rows, b_ub=np.r_[y, -y, radius]).fun
    excess = np.mean(np.abs(y - X @ w)) - best
    assert 0 <= excess <= accuracy
    # With the paper's 8 in place of 16 the smoothed loss is at its accuracy, and the loss itself need not be.
    assert steps == math.ceil(16 * scale * radius**2 / accuracy**2)


@pytest.mark.parametrize("nu", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("seed", range(3))
def test_foba_keeps_its_bounds(seed, nu):
    X, y, _ = regression(seed, n=60, d=30, correlation=2.0)
    for tol in (0.3, 0.03, 0.003):
        model = SparseRegressor(k=None, tol=tol, method=FoBa(nu=nu), fit_intercept=False).fit(X, y)
        adds = sum(event[0] == "add" for event in model.path_.moves)
        assert adds <= theory.foba_additions(decrease=model.path_[0].objective, tol=tol, nu=nu)
        assert len(model.path_.moves) - adds <= adds
        # Every model on the path is one to compare with: so many steps, and FoBa is no worse.
        for size in model.path_.sizes[1:]:
            goal, steps, inside = model.path_[size].objective, 0, set()
            for what, *which in model.path_.moves:
                inside ^= set(which)
                steps += what == "add"
                columns = X[:, sorted(inside)]
                residual = y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]
                if np.mean(residual**2) / 2 <= goal * (1 + 1e-9):
                    break
            assert steps <= theory.foba_additions(decrease=model.path_[0].objective - goal, tol=tol, nu=nu)


@pytest.mark.parametrize("seed", range(5))
def test_replacements_compete_with_fewer_features(seed):
    """Theorem 2.9 with nearly orthogonal columns: exchanged models are as good as the best of one or two features."""
    rng = np.random.default_rng(seed)
    X = np.linalg.qr(rng.standard_normal((60, 20)))[0] @ (np.eye(20) + 0.05 * rng.uniform(-1, 1, (20, 20)))
    X /= np.sqrt(np.mean(X**2, axis=0))
    y = X[:, :2] @ [1.0, -0.8] + rng.standard_normal(60)
    least = np.linalg.eigvalsh(X.T @ X / 60)[0]
    path = SparseRegressor(k=20, fit_intercept=False).fit(X, y).path_
    for size in (1, 2):
        k = theory.replacement_features("squared_error", n_reference=size, curvature=least)
        assert k < 20
        best = min(
            half_squares(X[:, s], y, np.linalg.lstsq(X[:, s], y)[0]) for s in map(list, combinations(range(20), size))
        )
        assert path[k].objective <= best + 1e-12
        replaced = SparseRegressor(k=k, method=Replacement(), fit_intercept=False).fit(X, y)
        assert replaced.objective_ <= best + 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_foba_finds_what_it_promises(seed):
    """Orthogonal columns, where all curvatures are one: sizes, errors and exact selection as proved."""
    rng = np.random.default_rng(seed)
    n, d = 120, 40
    X = np.linalg.qr(rng.standard_normal((n, d)))[0] * np.sqrt(n)
    truth = np.zeros(d)
    truth[:6] = [3.0, -2.0, 1.5, 1.0, 0.4, 0.1]
    y = X @ truth + 0.5 * rng.standard_normal(n)
    gradient = np.abs(X.T @ (y - X @ truth) / n).max()
    flat = {"curvature": 1.0, "single": 1.0}
    tol = theory.foba_tolerance(gradient=gradient, **flat) * (1 + 1e-9)
    model = SparseRegressor(k=None, tol=tol, method="foba", fit_intercept=False).fit(X, y)
    assert model.k_ <= theory.foba_features(n_reference=6, curvature=1.0, smoothness=1.0)
    missed = set(range(6)) - set(model.support_)
    weak = sum(abs(truth[j]) < theory.foba_visible(tol=tol, **flat) for j in missed)
    errors = theory.foba_errors(tol=tol, n_weak=weak, **flat)
    assert np.linalg.norm(model.coef_ - truth) ** 2 <= errors.distance**2 + model.k_ * gradient**2
    assert half_squares(X, y, model.coef_) - half_squares(X, y, truth) <= errors.excess
    assert len(missed) <= errors.missed
    assert len(set(model.support_) - set(range(6))) <= errors.extra
    if np.abs(truth[:6]).min() > theory.foba_exact(gradient=gradient, **flat):
        assert set(model.support_) == set(range(6))


def test_foba_finds_the_truth_in_noise():
    """Zhang's Theorem 3.3 and Corollary 3.2 in thirty runs at nine in ten: strong features and no others."""
    rng = np.random.default_rng(0)
    n, d = 4000, 25
    X = np.linalg.qr(rng.standard_normal((n, d)))[0] * np.sqrt(n)
    about = {"noise": 1.0, "n_samples": n, "n_features": d, "curvature": 1.0}
    tol = theory.noise_tolerance_to_select(confidence=0.9, **about) * (1 + 1e-9)
    truth = np.zeros(d)
    truth[:3] = 1.01 * theory.noise_visible(tol=tol, curvature=1.0)
    assert theory.noise_selection(n_weak=0, curvature=1.0) == (0, 0)
    larger = theory.noise_tolerance(**about) * (1 + 1e-9)
    stops = theory.noise_tolerance_to_stop(n_reference=3, confidence=0.9, **about) * (1 + 1e-9)
    right = 0
    for _ in range(30):
        y = X @ truth + rng.standard_normal(n)
        model = SparseRegressor(k=None, tol=tol, method="foba", fit_intercept=False).fit(X, y)
        right += list(model.support_) == [0, 1, 2]
        model = SparseRegressor(k=None, tol=stops, method="foba", fit_intercept=False).fit(X, y)
        assert model.k_ < theory.noise_sparsity(n_reference=3, curvature=1.0) - 3
        model = SparseRegressor(k=None, tol=larger, method="foba", fit_intercept=False).fit(X, y)
        weak = int(np.sum(truth[:3] < theory.noise_visible(tol=larger, curvature=1.0)))
        excess = 0.5 * np.mean((X @ (model.coef_ - truth)) ** 2)
        assert excess <= theory.noise_excess(
            noise=1.0, n_samples=n, n_reference=3, n_weak=weak, tol=larger, curvature=1.0, confidence=0.9
        )
    assert right >= 27


def test_isotropic_curvatures():
    """Gaussian rows, many more than the sparsity: the curvature of every few columns lies between the two."""
    X = np.random.default_rng(0).standard_normal((2000, 12))
    low, high = theory.isotropic_curvatures(least=1.0, largest=1.0, ridge=0.2)
    for columns in map(list, combinations(range(12), 3)):
        values = np.linalg.eigvalsh(X[:, columns].T @ X[:, columns] / 2000) + 0.2
        assert low <= values[0]
        assert values[-1] <= high


def test_streams_keep_their_bound():
    """One column, where projections are a clip: the whole of Li et al.'s first algorithm in a few lines."""
    about = {"radius": 1.0, "row_norm": 1.0, "confidence": 0.9, "error_bound": 3.0}
    plan = theory.stream_plan(accuracy=0.4, **about)
    assert plan.epochs == 2
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, plan.samples)
    y = np.clip(0.7 * x + rng.uniform(-0.3, 0.3, plan.samples), -1, 1)
    w, step, room, used = 0.0, plan.step, 1.0, 0
    for epoch in range(plan.epochs):
        center, total = w, 0.0
        for t in range(used, used + plan.first * 2**epoch):
            total += w
            w = min(max(w - step * (w * x[t] - y[t]) * x[t], center - room, -1.0), center + room, 1.0)
        w = total / (plan.first * 2**epoch)
        used, step, room = used + plan.first * 2**epoch, step / 2, room / math.sqrt(2)
    assert used == plan.samples
    excess = 0.5 * (w - 0.7) ** 2 / 3
    assert excess <= theory.stream_accuracy(samples=used, **about) <= 0.4


@pytest.mark.parametrize("radius", [1.5, 3.0, 8.0])
def test_tight_errors_are_those_of_the_distribution(radius):
    """From the covariances of the distribution itself, and from a sample of it."""
    a, n = 1 / radius, 100_000
    X, y = theory.tight_distribution(n, 6, radius, random_state=1)
    assert set(np.unique(X)) == set(np.unique(y)) == {-1.0, 1.0}
    path = SparseRegressor(k=6, fit_intercept=False).fit(X, y).path_
    for k in range(1, 7):
        H = (1 - a**2) * np.eye(k) + a**2
        exact = 1 - a**2 * np.linalg.inv(H).sum()
        assert np.isclose(theory.tight_error(k, radius), exact, rtol=1e-12, atol=0)
        model = path[k]
        squares = (y - X[:, model.support] @ model.coef) ** 2
        # The fit to the sample is better there than on the distribution by about 2 k / n, a small part of this.
        assert abs(squares.mean() - exact) <= 4 * squares.std() / math.sqrt(n) + 2 * k / n
    dense = 0.5 * np.mean((y - X.mean(axis=1) * radius) ** 2)
    assert np.isclose(dense, 0.5 * (radius**2 - 1) / 6, rtol=0.05)


def test_tight_features_are_the_fewest():
    for radius in (1.5, 3.0, 8.0):
        for error in (0.9, 0.5, 0.1, 0.02):
            k = theory.tight_features(error, radius)
            assert theory.tight_error(k, radius) <= error * (1 + 1e-9)
            assert k == 1 or theory.tight_error(k - 1, radius) > error
            if radius > 2 and error <= 0.1:
                # The theorem's own lower bound, whose accuracy is half of a mean squared error.
                assert k >= theory.least_features_squared(radius=radius, accuracy=error / 2)
        errors = [theory.tight_error(k, radius) for k in range(1, 50)]
        assert all(later < earlier for earlier, later in pairwise(errors))


def test_tight_distribution_is_drawn_from_its_state():
    first, again = (theory.tight_distribution(50, 4, 2.0, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    other = theory.tight_distribution(50, 4, 2.0, random_state=np.random.default_rng(4))
    assert not np.array_equal(first[0], other[0])
