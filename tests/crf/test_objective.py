"""The conditional random field on chains, compared with enumeration, differences, log space and another library."""

import sys
from itertools import pairwise, product

import numpy as np
import pytest
from chains import bounds_of, enumerated, in_log_space, make_chains, path_score, point_of
from scipy import sparse

from pauca.crf.chain_inference import ChainInference
from pauca.crf.objective import ChainCRF
from pauca.crf.observations import Observations

SHAPES = [((1,), 2, 1), ((1, 1, 1), 3, 2), ((2, 5, 1), 3, 2), ((4, 6), 4, 3), ((3,), 5, 2)]


def make_field(lengths, n_labels, n_columns, *, seed=0, kind=np.asarray, distinct=True, **options):
    X_list, y_list = make_chains(lengths, n_labels, n_columns, seed)
    X, bounds = kind(np.vstack(X_list)), bounds_of(X_list)
    observations = Observations.from_distinct_rows(X, bounds) if distinct else Observations.from_rows(X, bounds)
    return ChainCRF(observations, np.concatenate(y_list), n_labels, **options)


def random_point(field, seed=0, size=1.0):
    return size * np.random.default_rng(seed).normal(size=field.n_coords)


def chains_of(field):
    """Scores at a point, one array for every chain, from the rows of all positions."""
    data = field.observations
    rows = data.matrix.toarray() if sparse.issparse(data.matrix) else np.asarray(data.matrix, dtype=float)

    def scores(w):
        weights, transitions, biases = field.parameters(w)
        every = rows[data.rows] @ weights + biases
        return [every[a:b] for a, b in pairwise(data.bounds)], transitions

    return scores


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_value_is_that_of_all_label_sequences(shape):
    lengths = shape[0]
    field = make_field(*shape, ridge=0.1, ridge_transitions=0.3)
    labels = np.split(np.concatenate(make_chains(*shape)[1]), np.cumsum(lengths)[:-1])
    w = random_point(field)
    chains, transitions = chains_of(field)(w)
    weights = field.parameters(w)[0]
    losses = [
        enumerated(scores, transitions)[0] - path_score(scores, transitions, y)
        for scores, y in zip(chains, labels, strict=True)
    ]
    ridges = 0.05 * np.sum(weights**2) + 0.15 * np.sum(transitions**2)  # of the weights of unscaled columns
    assert field.value(w) == pytest.approx(sum(losses) / sum(lengths) + ridges, abs=1e-12)
    assert field.value_and_gradient(w)[0] == pytest.approx(field.value(w), abs=1e-13)


@pytest.mark.parametrize("size", [0.5, 100.0])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_marginals_and_labels_are_those_of_all_label_sequences(shape, size):
    field = make_field(*shape)
    w = random_point(field, 1, size)  # the larger points are beyond what can be scaled
    chains, transitions = chains_of(field)(w)
    inference, weights = ChainInference(field.observations, shape[1]), field.parameters(w)
    scores = field.observations.scores(weights[0]) + weights[2]
    expected = inference.expectations(scores, transitions, by_position=True)
    found = [enumerated(scores, transitions) for scores in chains]
    np.testing.assert_allclose(expected.log_partitions, [one[0] for one in found], rtol=1e-12)
    np.testing.assert_allclose(expected.marginals, np.vstack([one[1] for one in found]), atol=1e-11)
    np.testing.assert_allclose(expected.transitions, sum(one[2] for one in found), atol=1e-11)
    labels = inference.viterbi(scores, transitions)
    best = [path_score(*one) for one in zip(chains, [transitions] * len(chains), _cut(labels, chains), strict=True)]
    assert best == pytest.approx([path_score(s, transitions, one[3]) for s, one in zip(chains, found, strict=True)])


@pytest.mark.parametrize("seed", range(20))
def test_ties_go_to_the_lowest_label(seed):
    """Small whole numbers tie: of the best paths the last label is the lowest there is, then the one before it."""
    rng = np.random.default_rng(seed)
    scores, transitions = (rng.integers(0, 2, shape).astype(float) for shape in [(5, 3), (3, 3)])
    if seed == 0:
        scores[:], transitions[:] = 0.0, 0.0
    paths = list(product(range(3), repeat=5))
    values = [path_score(scores, transitions, np.array(path)) for path in paths]
    best = [path for path, value in zip(paths, values, strict=True) if value == max(values)]
    found = ChainInference(Observations.from_rows(np.zeros((5, 1)), np.array([0, 5])), 3).viterbi(scores, transitions)
    assert tuple(found) == min(best, key=lambda path: path[::-1])


def _cut(values, chains):
    return np.split(values, np.cumsum([len(scores) for scores in chains])[:-1])


@pytest.mark.parametrize("seed", range(3))
def test_gradient_by_differences(seed):
    field = make_field((5, 1, 9), 3, 4, seed=seed, ridge=0.01, ridge_transitions=0.02)
    w, step = random_point(field, seed), 1e-6
    differences = [
        (field.value(w + step * unit) - field.value(w - step * unit)) / (2 * step) for unit in np.eye(field.n_coords)
    ]
    np.testing.assert_allclose(field.gradient(w), differences, atol=1e-8)


@pytest.mark.parametrize("length", [1, 2])
def test_curvature_is_exact_where_positions_are_independent(length):
    """Of single positions all of it; of pairs that of transitions, of which there is one in each sequence."""
    field = make_field((length,) * 12, 3, 4, ridge=0.01, ridge_transitions=0.02)
    w, step = random_point(field), 1e-6
    hessian = [
        (field.gradient(w + step * unit) - field.gradient(w - step * unit))[j] / (2 * step)
        for j, unit in enumerate(np.eye(field.n_coords))
    ]
    exact = slice(None) if length == 1 else slice(field.n_weights, field.n_weights + 9)
    np.testing.assert_allclose(field.curvature(w)[exact], np.array(hessian)[exact], atol=1e-8)


def test_curvature_is_a_sum_of_variances():
    field = make_field((7, 30, 2), 5, 3, ridge=0.25)
    w = random_point(field)
    chains, transitions = chains_of(field)(w)
    p = np.vstack([in_log_space(scores, transitions)[1] for scores in chains])
    x = field.observations.matrix[field.observations.rows].astype(float)
    wanted = ((x - x.mean(axis=0)) ** 2).T @ (p * (1 - p)) / 39 + 0.25
    np.testing.assert_allclose(field.curvature(w)[: field.n_weights], wanted.ravel(), atol=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_curvature_of_columns_far_from_zero(kind):
    """Some far off, one at zero half of the time, one nearly always: to as many digits as the numbers have."""
    shape, shift = ((40, 1, 60), 3, 4), np.array([0.0, 1e8, -1e8, 0.0])
    rare = np.array([1.0, 1.0, 1.0, 0.0])
    near = make_field(*shape, kind=lambda X: X * rare + 0.25 * (np.arange(len(X)) == 7)[:, None])
    far = make_field(*shape, kind=lambda X: kind(X * rare + 0.25 * (np.arange(len(X)) == 7)[:, None] + shift))
    w = random_point(near)
    np.testing.assert_allclose(far.curvature(w), near.curvature(w), rtol=1e-6)


@pytest.mark.parametrize(
    ("spread", "apart"), [(1.0, 0.0), (1.0, 1.0), (300.0, 3.0), (800.0, 40.0), (30.0, 200.0), (2000.0, 900.0)]
)
def test_scaled_equals_logarithms_on_long_chains(spread, apart):
    """Scores and transitions up to far beyond what exponentials can hold; the last two are not scaled at all."""
    rng = np.random.default_rng(0)
    lengths, n_labels = (1000, 1, 129, 200, 200, 200, 128, 200, 64), 5  # two teams and one that is left over
    n, bounds = sum(lengths), np.concatenate([[0], np.cumsum(lengths)])
    scores = spread * rng.uniform(-1, 1, (n, n_labels))
    transitions = apart * rng.uniform(-0.5, 0.5, (n_labels, n_labels))
    inference = ChainInference(Observations.from_rows(np.zeros((n, 1)), bounds), n_labels)
    expected = inference.expectations(scores, transitions, by_position=True)
    wanted = [in_log_space(scores[a:b], transitions) for a, b in pairwise(bounds)]
    np.testing.assert_allclose(expected.log_partitions, [one[0] for one in wanted], rtol=1e-13)
    np.testing.assert_allclose(expected.marginals, np.vstack([one[1] for one in wanted]), atol=1e-9)
    np.testing.assert_allclose(expected.transitions, sum(one[2] for one in wanted), rtol=1e-9, atol=1e-9)
    squares = inference.expectations(scores, transitions, by_position=True, squared=True)
    np.testing.assert_allclose(squares.marginals, expected.marginals**2, atol=1e-14)
    alone = [
        ChainInference(Observations.from_rows(np.zeros((b - a, 1)), np.array([0, b - a])), n_labels)
        .expectations(scores[a:b], transitions, squared=True)
        .transitions
        for a, b in pairwise(bounds)
    ]
    np.testing.assert_allclose(squares.transitions, sum(alone), rtol=1e-12, atol=1e-12)


KINDS = {
    "bool": lambda X: X,
    "int8": lambda X: X.astype(np.int8),
    "float32": lambda X: X.astype(np.float32),
    "float64": lambda X: X.astype(float),
    "Fortran": lambda X: np.asfortranarray(X.astype(float)),
    "CSR": lambda X: sparse.csr_array(X.astype(float)),
    "CSR of bool": sparse.csr_matrix,
}


@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_data_agree(kind, distinct):
    shape = (40, 1, 200), 4, 5
    wanted = make_field(*shape, distinct=False, kind=KINDS["float64"])
    field = make_field(*shape, distinct=distinct, kind=KINDS[kind])
    assert field.observations.rows_repeat == distinct
    w = random_point(wanted)
    w[wanted.n_coords // 2 : wanted.n_weights] = 0.0  # columns without weight
    np.testing.assert_allclose(field.value(w), wanted.value(w), rtol=1e-13)
    np.testing.assert_allclose(field.gradient(w), wanted.gradient(w), atol=1e-13)
    np.testing.assert_allclose(field.curvature(w), wanted.curvature(w), atol=1e-13)
    np.testing.assert_array_equal(field.start, wanted.start)


def test_equal_rows_are_stored_once_only_where_that_pays():
    rng = np.random.default_rng(0)
    few, many = rng.random((500, 3)) < 0.5, rng.normal(size=(500, 3))
    bounds = np.array([0, 500])
    repeated = Observations.from_distinct_rows(few, bounds)
    assert repeated.matrix.shape == (8, 3)
    np.testing.assert_array_equal(repeated.matrix[repeated.rows], few)
    plain = Observations.from_distinct_rows(many, bounds)
    assert plain.matrix is many
    assert not plain.rows_repeat


@pytest.mark.parametrize("distinct", [True, False])
def test_threads_change_nothing(distinct):
    field, other = (
        make_field((700,) * 9 + (3000, 5), 14, 6, distinct=distinct, threads=threads, ridge=0.01) for threads in (1, 3)
    )
    w = random_point(field)
    assert field.value(w) == other.value(w)
    for one, two in zip(field.value_and_gradient(w), other.value_and_gradient(w), strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(field.curvature(w), other.curvature(w))


def test_coordinates_do_not_depend_on_units_of_columns():
    X_list, y_list = make_chains((50, 20), 3, 4)
    X, y, bounds = np.vstack(X_list).astype(float), np.concatenate(y_list), bounds_of(X_list)
    scale, shift = np.array([1e-6, 1.0, 300.0, 1e6]), np.array([0.0, -5.0, 1e3, 1e6])
    field, other = (ChainCRF(Observations.from_rows(x, bounds), y, 3, ridge=0.1) for x in (X, X * scale + shift))
    w = random_point(field)
    assert other.value(w) == pytest.approx(field.value(w), rel=1e-12)
    np.testing.assert_allclose(other.gradient(w), field.gradient(w), atol=1e-11)
    np.testing.assert_allclose(other.parameters(w)[0] * scale[:, None], field.parameters(w)[0], rtol=1e-11)
    assert other.value(point_of(other, *other.parameters(w))) == pytest.approx(other.value(w), rel=1e-9)


def test_scores_of_first_and_last_labels_matter_at_the_ends_only():
    field = make_field((4, 1, 6), 3, 2)
    w = random_point(field)
    first, last = w[-6:-3].copy(), w[-3:].copy()
    chains, transitions = chains_of(field)(w)
    w[-6:] = 0.0
    others, steps = chains_of(field)(w)
    labels = np.split(np.random.default_rng(0).integers(0, 3, 11), [4, 5])
    for scores, without, y in zip(chains, others, labels, strict=True):
        difference = path_score(scores, transitions, y) - path_score(without, steps, y)
        assert difference == pytest.approx(first[y[0]] + last[y[-1]])


@pytest.mark.parametrize("make", [Observations.from_distinct_rows, Observations.from_rows])
@pytest.mark.parametrize("chosen", [[3, 0], [0, 0, 3, 2, 3, 3], [1] * 9])
def test_some_of_the_sequences(chosen, make):
    X_list, y_list = make_chains((5, 30, 1, 40), 3, 4)
    whole = make(np.vstack(X_list), bounds_of(X_list))
    some = [X_list[i] for i in chosen], [y_list[i] for i in chosen]
    taken = ChainCRF(whole.take(np.array(chosen)), np.concatenate(some[1]), 3)
    apart = ChainCRF(Observations.from_rows(np.vstack(some[0]), bounds_of(some[0])), np.concatenate(some[1]), 3)
    w = random_point(taken)
    assert taken.value(w) == pytest.approx(apart.value(w), rel=1e-13)
    np.testing.assert_allclose(taken.gradient(w), apart.gradient(w), atol=1e-13)


def test_units_are_sensors_columns_or_weights():
    owner = np.array([0, 0, 1])
    field = make_field((9,), 2, 3, owner=owner)
    np.testing.assert_array_equal(field.groups, [0] * 4 + [1] * 2 + [-1] * 10)
    np.testing.assert_array_equal(field.free, range(6, 16))
    assert make_field((9,), 2, 3, by_weight=True).groups is None


def test_start_is_near_the_best_model_without_sensors():
    """Without a ridge and with counts that need no smoothing, frequencies of transitions all but fit a long chain."""
    field = make_field((5000,), 3, 2)
    at_start = np.abs(field.gradient(field.start)[field.free]).max()
    assert at_start < 2e-3 < np.abs(field.gradient(np.zeros(field.n_coords))[field.free]).max()


def test_objective_of_crfsuite_at_its_weights(tmp_path):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    X_list, y_list = make_chains((60, 90, 30, 1), 4, 5)
    trainer = pycrfsuite.Trainer(
        verbose=False,
        params={"c2": 0.5, "feature.possible_states": True, "feature.possible_transitions": True, "epsilon": 1e-9},
    )
    for X, y in zip(X_list, y_list, strict=True):
        rows = [["bias", *(f"s{j}" for j in np.flatnonzero(row))] for row in X]
        trainer.append(pycrfsuite.ItemSequence(rows), [str(label) for label in y])
    trainer.train(str(tmp_path / "model"))
    loss = trainer.logparser.last_iteration["loss"]
    tagger = pycrfsuite.Tagger()
    with tagger.open(str(tmp_path / "model")):
        state, steps = tagger.info().state_features, tagger.info().transitions
    weights = np.array([[state.get((f"s{j}", str(c)), 0.0) for c in range(4)] for j in range(5)])
    transitions = np.array([[steps.get((str(a), str(b)), 0.0) for b in range(4)] for a in range(4)])
    biases = np.array([state.get(("bias", str(c)), 0.0) for c in range(4)])
    field = ChainCRF(Observations.from_distinct_rows(np.vstack(X_list), bounds_of(X_list)), np.concatenate(y_list), 4)
    ridge = 0.5 * (np.sum(weights**2) + np.sum(transitions**2) + np.sum(biases**2))
    assert 181 * field.value(point_of(field, weights, transitions, biases)) + ridge == pytest.approx(loss, rel=1e-6)


def test_without_numba(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "pauca.crf.kernels", raising=False)
    monkeypatch.delattr("pauca.crf.kernels", raising=False)
    field = make_field((4,), 2, 2)
    with pytest.raises(ImportError, match="pip install numba"):
        field.value(field.start)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("distinct", [True, False])
def test_columns_move_by_departures_from_rest_or_twice_their_deviation(kind, distinct):
    rng = np.random.default_rng(0)
    rare, usual, half = (share > rng.random((1, 400)).T for share in (0.05, 0.95, 0.5))
    counts = rng.poisson(0.2, (400, 1)) * 3.0
    normal = rng.normal(7.0, 2.0, (400, 1))
    X = np.hstack([rare, 5.0 * usual - 2.0, half, counts, np.round(normal), np.full((400, 1), 4.0)])
    make = Observations.from_distinct_rows if distinct else Observations.from_rows
    found = make(kind(X), np.array([0, 100, 400])).scales()
    assert found[0] == 1.0
    assert found[1] == pytest.approx(5.0, rel=1e-14)
    assert found[2] == pytest.approx(1.0, abs=0.01)
    assert found[3] == pytest.approx(np.sqrt(np.mean(counts[counts > 0] ** 2)), rel=1e-12)
    assert found[4] == pytest.approx(2 * np.std(np.round(normal)), rel=1e-12)
    assert found[5] == 1.0
