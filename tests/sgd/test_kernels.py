"""The compiled epoch SGD against the one that works on whole vectors, and what streams may be cut and stored like."""

import pickle
import re
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from eager_sgd import EagerSGD, onto_both_balls
from scipy import sparse
from scipy.optimize import minimize

from pauca.losses import AbsoluteError, Hinge, Huber, LogLoss, Poisson, Quantile, SquaredError, SquaredHinge
from pauca.losses.compiled_slopes import compiled_slope
from pauca.sgd.epoch_sgd import EpochSGD

LOSSES = (SquaredError(), Huber(0.5), AbsoluteError(), Quantile(0.3), LogLoss(), Hinge())
N_ROWS, N_FEATURES = 2000, 40


@dataclass(frozen=True)
class Stream:
    X: np.ndarray
    y: np.ndarray
    signs: np.ndarray
    weights: np.ndarray

    def target(self, loss):
        return self.signs if loss.classifies else self.y


@pytest.fixture(scope="module")
def stream():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_FEATURES)) * (rng.random((N_ROWS, N_FEATURES)) < 0.12)
    X[[5, 6, 700]] = 0.0
    y = X @ (rng.normal(size=N_FEATURES) * (rng.random(N_FEATURES) < 0.2)) + 0.3 + 0.2 * rng.normal(size=N_ROWS)
    weights = rng.exponential(size=N_ROWS) * (rng.random(N_ROWS) < 0.9)
    return Stream(X, y, np.where(y > 0, 1.0, -1.0), weights)


def options(**changes):
    return {"radius": 1.0, "learning_rate": 0.3, "first_epoch": 37, "intercept": 0.2} | changes


def assert_equal(learner, other, tolerance):
    for ours, theirs in ((learner.last, other.last), (learner.average, other.average)):
        np.testing.assert_allclose(ours[0], theirs[0], rtol=0, atol=tolerance)
        assert ours[1] == pytest.approx(theirs[1], rel=0, abs=tolerance)
    assert learner.n_epochs == other.n_epochs
    assert learner.n_samples_seen == other.n_samples_seen


# Radii of the two balls, and the least share of all steps in which each of them is active.
BALLS = {
    "l1 often": ({"radius": 2.0, "center_radius": 50.0}, 0.3, 0.0),
    "l1 always": ({"radius": 0.1, "center_radius": 50.0, "learning_rate": 1.0}, 0.5, 0.0),
    "neither": ({"radius": 1e3}, 0.0, 0.0),
    "l2": ({"radius": 1e3, "center_radius": 0.1}, 0.0, 0.3),
    "both": ({"radius": 0.4, "center_radius": 0.3, "learning_rate": 1.0}, 0.3, 0.1),
}


@pytest.mark.parametrize("balls", BALLS)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_equal_to_whole_vectors(loss, balls, stream):
    changes, l1_share, l2_share = BALLS[balls]
    # Bisection on whole vectors takes its time: more than a few hundred steps of it are for one loss.
    n_rows = N_ROWS if not l2_share else 900 if loss.quadratic else 350
    # All ways to have weights, an intercept and zeros that are stored come up in turn.
    turn = 5 * LOSSES.index(loss) + [*BALLS].index(balls)
    weighted, fit_intercept, dense = turn % 2, turn // 2 % 2, turn // 4 % 2
    settings = options(fit_intercept=bool(fit_intercept), intercept_scale=1.0 + 0.5 * (turn % 3), **changes)
    eager = EagerSGD(N_FEATURES, loss, **settings)
    learner = EpochSGD(N_FEATURES, loss, **settings)
    X = stream.X if dense else sparse.csr_array(stream.X)
    # Compared at the start, at the very end of an epoch, in its first half and in its second.
    for first, last in pairwise((0, 1, 11, 37 * 7, 300, n_rows)):
        some = slice(first, last)
        weights = stream.weights[some] if weighted else None
        learner.learn(X[some], stream.target(loss)[some], weights)
        eager.learn(stream.X[some], stream.target(loss)[some], weights)
        assert_equal(learner, eager, 1e-10)
    assert eager.l1_active >= l1_share * n_rows
    assert eager.l2_active >= l2_share * n_rows
    assert eager.n_epochs == int(np.log2(eager.n_samples_seen / 37 + 1))
    if not fit_intercept:
        assert learner.last[1] == learner.average[1] == 0.2


@pytest.mark.parametrize("balls", BALLS)
def test_iterates_lie_in_both_balls(balls, stream):
    settings = options(**BALLS[balls][0])
    learner = EpochSGD(N_FEATURES, SquaredError(), **settings)
    center_radius = settings.get("center_radius", settings["radius"])
    center = np.zeros(N_FEATURES)
    for i in range(1200):
        epochs = learner.n_epochs
        learner.learn(stream.X[i : i + 1], stream.y[i : i + 1])
        w, average = learner.last[0], learner.average[0]
        if learner.n_epochs > epochs:
            center_radius /= np.sqrt(2)
            center = w
            np.testing.assert_array_equal(average, w)
        assert np.abs(w).sum() <= settings["radius"] * (1 + 1e-11)
        assert np.abs(average).sum() <= settings["radius"] * (1 + 1e-11)
        assert np.linalg.norm(w - center) <= center_radius * (1 + 1e-12)


def test_the_judge_projects():
    """The plain projection is itself compared with a general solver: both balls active."""
    rng = np.random.default_rng(1)
    for _ in range(5):
        z, center = 2 * rng.normal(size=6), rng.normal(size=6)
        center /= 1.25 * np.abs(center).sum()
        w, outside = onto_both_balls(z, center, 1.0, 0.3)
        assert outside
        # Positive and negative parts, so that the l1 ball has a smooth face.
        constraints = (
            {"type": "ineq", "fun": lambda p: 1.0 - p.sum()},
            {"type": "ineq", "fun": lambda p, c=center: 0.09 - np.sum((p[:6] - p[6:] - c) ** 2)},
        )
        start = np.concatenate([np.maximum(center, 0), np.maximum(-center, 0)])
        found = minimize(
            lambda p, z=z: np.sum((p[:6] - p[6:] - z) ** 2), start, method="SLSQP", bounds=[(0, None)] * 12,
            constraints=constraints, options={"ftol": 1e-14, "maxiter": 500},
        )  # fmt: skip
        np.testing.assert_allclose(w, found.x[:6] - found.x[6:], atol=1e-5)


def learned(X, y, weights=None, ends=(), **changes):
    """A learner that was handed X in chunks with the given ends."""
    learner = EpochSGD(N_FEATURES, SquaredError(), **options(**changes))
    for first, last in pairwise((0, *ends, len(y))):
        learner.learn(X[first:last], y[first:last], None if weights is None else weights[first:last])
    return learner


def assert_identical(learner, other):
    assert_equal(learner, other, 0.0)
    np.testing.assert_array_equal(learner.moments, other.moments)


@pytest.mark.parametrize("balls", BALLS)
def test_chunks_of_any_size_are_one_stream(balls, stream):
    changes, X = BALLS[balls][0], sparse.csr_array(stream.X)
    whole = learned(X, stream.y, stream.weights, **changes)
    for ends in ((1, 2, 3, 37, 38, 500), range(100, N_ROWS, 100), (0, 0, 1234, 1234)):
        assert_identical(learned(X, stream.y, stream.weights, ends, **changes), whole)


@pytest.mark.parametrize("balls", BALLS)
def test_stored_in_mid_stream(balls, stream):
    changes, X = BALLS[balls][0], sparse.csr_array(stream.X)
    learner = learned(X[:1500], stream.y[:1500], **changes)
    stored = pickle.dumps(learner)
    for continued in (deepcopy(learner), pickle.loads(stored)):
        assert_identical(continued, learned(X[:1500], stream.y[:1500], **changes))
        continued.learn(X[1500:], stream.y[1500:])
        assert_identical(continued, learned(X, stream.y, **changes))
    # Neither has touched the one they were made from.
    assert learner.n_samples_seen == 1500
    assert_identical(learner, pickle.loads(stored))


def frozen(array):
    array.setflags(write=False)
    return array


def with_indices(X, kind):
    X.indices, X.indptr = X.indices.astype(kind), X.indptr.astype(kind)
    return X


def with_zeros(X):
    stored = sparse.csr_array(np.where(X == 0, 1.0, X))
    stored.data[stored.data == 1.0] = 0.0
    return stored


def with_duplicates(X):
    """Every entry stored as two halves, the second halves after all first ones, in no order."""
    halves = sparse.csr_array(X / 2)
    rows = [np.tile(np.arange(first, last), 2) for first, last in pairwise(halves.indptr)]
    places = np.concatenate([np.random.default_rng(0).permutation(row) for row in rows])
    return sparse.csr_array((halves.data[places], halves.indices[places], 2 * halves.indptr), shape=X.shape)


FORMS = {
    "csr_array": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
    "csc_array": sparse.csc_array,
    "rows of Fortran": np.asfortranarray,
    "read-only": lambda X: frozen(X.copy()),
    "64-bit indices": lambda X: with_indices(sparse.csr_array(X), np.int64),
    "explicit zeros": with_zeros,
    "unsorted": lambda X: sparse.csr_array(X)[:, ::-1][:, ::-1],
    "duplicates": with_duplicates,
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_X(form, stream):
    X = FORMS[form](stream.X)
    before = X.copy()
    learner = learned(X, stream.y, stream.weights)
    assert_equal(learner, learned(stream.X, stream.y, stream.weights), 1e-13)
    np.testing.assert_allclose(learner.moments, learned(stream.X, stream.y, stream.weights).moments, rtol=1e-13)
    # X is as it was.
    if sparse.issparse(X):
        np.testing.assert_array_equal(X.data, before.data)
        np.testing.assert_array_equal(X.indices, before.indices)
    else:
        np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("kind", [np.float32, np.int8, bool])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_other_numbers(kind, make, stream):
    X = np.round(2 * stream.X).astype(kind)
    assert_identical(learned(make(X), stream.y), learned(make(X.astype(float)), stream.y))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, lambda X: sparse.csr_array(X.astype(np.float32))])
def test_order(make, stream):
    order = np.random.default_rng(2).integers(0, N_ROWS, 3000)
    X = stream.X.astype(np.float32).astype(float)
    learner = EpochSGD(N_FEATURES, SquaredError(), **options())
    learner.learn(make(X), stream.y, stream.weights, order=order)
    assert_identical(learner, learned(make(X[order]), stream.y[order], stream.weights[order]))


def test_moments(stream):
    learner = learned(stream.X, stream.y, stream.weights)
    np.testing.assert_allclose(learner.moments, stream.weights @ stream.X**2 / stream.weights.sum(), rtol=1e-12)
    assert learner.n_samples_seen == np.sum(stream.weights > 0)
    np.testing.assert_array_equal(EpochSGD(3, SquaredError(), **options()).moments, 0.0)


def test_nothing_learned():
    learner = EpochSGD(3, SquaredError(), **options())
    learner.learn(np.empty((0, 3)), np.empty(0))
    learner.learn(sparse.csr_array((0, 3)), np.empty(0), np.empty(0))
    learner.learn(np.ones((2, 3)), np.ones(2), np.zeros(2))
    for coef, intercept in (learner.last, learner.average):
        np.testing.assert_array_equal(coef, np.zeros(3))
        assert intercept == 0.2
    assert learner.n_samples_seen == learner.n_epochs == 0


def test_rows_without_entries_move_the_intercept():
    learner, eager = EpochSGD(3, SquaredError(), **options()), EagerSGD(3, SquaredError(), **options())
    learner.learn(sparse.csr_array((100, 3)), np.ones(100))
    eager.learn(np.zeros((100, 3)), np.ones(100))
    assert_equal(learner, eager, 1e-14)
    assert learner.last[1] == pytest.approx(1.0, abs=1e-4)


def test_many_features_that_leave_and_return():
    """More features than a row has, so that the queue is spread, refilled and thrown away many times over."""
    rng = np.random.default_rng(3)
    X = sparse.random_array((3000, 400), density=0.05, rng=rng, format="csr")
    X.data *= rng.choice([-1.0, 1.0], X.nnz) * 10.0 ** rng.uniform(-3, 0, X.nnz)
    y = rng.normal(size=3000)
    settings = {"radius": 3.0, "learning_rate": 0.5, "first_epoch": 1500, "center_radius": 100.0}
    learner, eager = EpochSGD(400, SquaredError(), **settings), EagerSGD(400, SquaredError(), **settings)
    for first in range(0, 3000, 600):
        learner.learn(X[first : first + 600], y[first : first + 600])
        eager.learn(X[first : first + 600].toarray(), y[first : first + 600])
        assert_equal(learner, eager, 1e-10)
    assert eager.l1_active > 2000


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_loss_is_that_of_the_library(loss):
    """One row, one step, no projection: the step is the derivative, kinks included."""
    targets = (-1.0, 1.0) if loss.classifies else (-0.4, 0.0, 2.5)
    for y in targets:
        for score in (-800.0, -1.0, -0.4, 0.0, 0.3, 1.0, 2.5, 800.0):
            learner = EpochSGD(1, loss, radius=1.0, learning_rate=1.0, first_epoch=5, intercept=score)
            learner.learn(np.zeros((1, 1)), np.array([y]))
            slope = loss.derivative(np.array([y]), np.array([score]))[0]
            assert score - learner.last[1] == pytest.approx(slope, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("loss", [SquaredHinge(), Poisson(), type("Own", (SquaredError,), {})()], ids=repr)
def test_losses_that_are_not_compiled(loss):
    with pytest.raises(ValueError, match=f"no compiled form of {re.escape(repr(loss))}; use SquaredError, Huber"):
        compiled_slope(loss)


def test_a_loss_needs_its_threshold_to_be_compiled():
    with pytest.raises(ValueError, match="no threshold yet"):
        compiled_slope(Huber())


def test_the_number_of_features_has_a_limit():
    with pytest.raises(ValueError, match="at most 2147483647 features"):
        EpochSGD(2**31, SquaredError(), **options())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": np.ones((4, 2))}, r"3 columns; got the shape \(4, 2\)"),
        ({"X": np.ones(3)}, "two dimensions"),
        ({"X": np.full((4, 3), "a")}, "must hold numbers"),
        ({"y": np.ones(3)}, "y must have one number for each of the 4 rows"),
        ({"y": np.array([1, np.nan, 1, 1])}, "y must be finite"),
        ({"y": np.array([1, 2, 1, 1])}, "coded as -1 and 1"),
        ({"weights": np.ones(5)}, "weights must have one number"),
        ({"weights": np.array([1, -1, 1, 1])}, "weights must not be negative; the least is -1"),
        ({"order": np.array([4])}, "row numbers from 0 to 3"),
        ({"order": np.array([-1])}, "row numbers from 0 to 3"),
        ({"order": np.array([0.5])}, "row numbers from 0 to 3"),
    ],
)
def test_invalid_chunks_change_nothing(changes, message):
    learner = EpochSGD(3, LogLoss(), **options())
    good = {"X": np.eye(4)[:, :3], "y": np.array([1, -1, 1, 1.0])}
    learner.learn(**good)
    before = pickle.dumps(learner)
    with pytest.raises(ValueError, match=message):
        learner.learn(**(good | changes))
    assert pickle.dumps(learner) == before
