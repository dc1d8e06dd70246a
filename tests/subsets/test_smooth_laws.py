"""Laws of the search that hold for every loss with every method."""

import itertools
from functools import cache

import numpy as np
import pytest
from judges import (
    LOSSES,
    PIECEWISE,
    SMOOTH,
    Kind,
    correlated,
    shares,
    target,
)
from smooth_problems import LAWFUL, as_judged, problem

from pauca import SparseClassifier, SparseRegressor, Stop
from pauca.methods import Backward, Exchange, FoBa, Forward
from problems import DESIGNS, METHODS, integers

VARIANTS = [
    Forward(rule="gradient"),
    Forward(rule="refit"),
    FoBa(rule="gradient", removal="zero"),
    FoBa(rule="refit", compare="cumulative"),
    Backward(removal="zero"),
    Exchange(scouts=(), detour=0),
]


PAIRS = [(name, method) for name in LAWFUL for method in METHODS]


def size_for(name, method):
    """As large a model as takes next to no time."""
    return 3 if name in PIECEWISE and method == "exchange" else 4


@cache
def path_of(name, method, k):
    """The path on the loss's own problem; several laws look at the same one."""
    return LOSSES[name].estimator(k=k, method=method).fit(*problem(name)).path_


def same_models(a, b, rtol=1e-7):
    """The same features, and the same objective at every size."""
    assert a.sizes == b.sizes
    for one, other in zip(a, b, strict=True):
        np.testing.assert_array_equal(one.support, other.support)
        assert one.objective == pytest.approx(other.objective, rel=rtol)


# Laws of every loss with every method.


@pytest.mark.parametrize(
    ("name", "method"),
    [
        *PAIRS,
        *((name, method) for name in ("log_loss", "multinomial", "poisson", "huber") for method in VARIANTS),
        ("absolute_error", VARIANTS[0]),
    ],
    ids=repr,
)
def test_the_objective_never_rises_with_size_and_is_that_of_a_refit(name, method):
    kind, (X, y) = LOSSES[name], problem(name)
    path = path_of(name, method, size_for(name, method))
    assert path.sizes == list(range(size_for(name, method) + 1))
    values = np.array([model.objective for model in path])
    # Removals before refitting need not nest: only the sets that follow each other on the way do.
    if name in SMOOTH or not isinstance(method, FoBa | Backward):
        assert np.all(np.diff(values) <= kind.accuracy * values[0])
    for model in path:
        assert model.size == len(model.support)
        assert np.all(np.diff(model.support) > 0)
        if name in SMOOTH and model.size in (1, 3):
            assert model.objective == pytest.approx(as_judged(name, X, y, model.support), rel=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", LAWFUL)
def test_weights_are_repetitions(name, method):
    kind, (X, y) = LOSSES[name], problem(name)
    repeats = np.arange(60) % 3
    model = kind.estimator(k=3 if name in SMOOTH else 2, method=method)
    weighted = model.fit(X, y, sample_weight=repeats).path_
    repeated = model.fit(np.repeat(X, repeats, axis=0), np.repeat(y, repeats, axis=0)).path_
    same_models(weighted, repeated)
    assert weighted.moves == repeated.moves
    if name in SMOOTH and method == "foba":
        # Scale does not matter, and rows without weight may hold anything.
        X = np.where(repeats[:, None] == 0, 1e9, X)
        same_models(model.fit(X, y, sample_weight=repeats * 1e-9).path_, weighted)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", LAWFUL)
def test_renaming_columns_renames_the_answer(name, method):
    kind, (X, y) = LOSSES[name], problem(name)
    k = size_for(name, method)
    order = np.random.default_rng(0).permutation(7)
    renamed = kind.estimator(k=k, method=method).fit(X[:, order], y).path_
    for model in path_of(name, method, k):
        assert set(order[renamed[model.size].support]) == set(model.support)
        assert renamed[model.size].objective == pytest.approx(model.objective, rel=1e-7)


@pytest.mark.parametrize("method", ["forward", "exchange", "backward", Forward(rule="gradient")], ids=repr)
@pytest.mark.parametrize("name", LAWFUL)
def test_the_model_of_a_size_does_not_depend_on_how_many_were_asked(name, method):
    k = size_for(name, method)
    long, short = path_of(name, method, k), path_of(name, method, k - 2)
    if method != "backward":
        assert long.moves[: len(short.moves)] == short.moves
    for model in short:
        np.testing.assert_array_equal(model.support, long[model.size].support)
        np.testing.assert_allclose(model.coef, long[model.size].coef, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "method"),
    [
        *(pair for pair in PAIRS if pair[0] in SMOOTH or pair[1] == "foba"),
        ("log_loss", VARIANTS[2]),
        ("poisson", VARIANTS[3]),
    ],
    ids=repr,
)
def test_a_run_taken_up_again_equals_one_that_was_not_stopped(name, method):
    kind, (X, y) = LOSSES[name], problem(name)
    whole = path_of(name, method, size_for(name, method))
    for cut in {1, len(whole.moves) - 1} if name == "log_loss" else {len(whole.moves) // 2}:
        seen = []
        model = kind.estimator(
            k=whole.sizes[-1],
            method=method,
            warm_start=True,
            callback=lambda progress, seen=seen, cut=cut: seen.append(progress) or len(seen) >= cut,
        ).fit(X, y)
        assert model.stop_ is Stop.CALLBACK
        assert len(model.path_.moves) == cut
        assert [progress.move for progress in seen] == whole.moves[:cut]
        model.set_params(callback=None).fit(X, y)
        assert model.path_.moves == whole.moves
        same_models(model.path_, whole)


@pytest.mark.parametrize("name", LAWFUL)
def test_a_further_goal_goes_on_and_other_data_start_afresh(name):
    kind, (X, y) = LOSSES[name], problem(name)
    model = kind.estimator(k=2, method="foba", warm_start=True).fit(X, y)
    before, seen = len(model.path_.moves), []
    model.set_params(k=4, callback=lambda progress: seen.append(progress.move)).fit(X, y)
    whole = path_of(name, "foba", 4)
    same_models(model.path_, whole)
    assert seen == whole.moves[before:]
    other_y = np.roll(y, 7, axis=0)  # the same empty model
    model.fit(X, other_y)
    assert model.path_.moves == kind.estimator(k=4, method="foba").fit(X, other_y).path_.moves


def test_other_targets_of_the_same_signs_start_afresh():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((41, 6))
    y = X @ [1, 1, 0.5, 0, 0, 0] + rng.standard_t(1.5, 41)
    other = y.copy()
    for side in (y < np.median(y), y > np.median(y)):
        other[side] = rng.permutation(y[side])
    model = SparseRegressor(k=3, loss="absolute_error", method="forward", warm_start=True).fit(X, y)
    expected = SparseRegressor(k=3, loss="absolute_error", method="forward").fit(X, other)
    assert model.path_.moves != expected.path_.moves
    assert model.fit(X, other).path_.moves == expected.path_.moves


@pytest.mark.parametrize("form", ["float32-F", "csr", "chunks"])
@pytest.mark.parametrize("method", ["foba", "exchange"])
@pytest.mark.parametrize("name", ["log_loss", "multinomial", "poisson", "squared, 2 outputs"])
def test_the_form_of_the_data_does_not_matter(name, method, form):
    X, signal = integers(n=50, d=8, seed=3)
    y = target(SMOOTH[name], signal / signal.std(), np.random.default_rng(0))
    weights = np.arange(50) % 4
    model = SMOOTH[name].estimator(k=3, method=method, ridge=0.01)
    expected = model.fit(X, y, weights).path_
    found = model.fit(DESIGNS[form](X), y, weights).path_
    assert found.moves == expected.moves
    same_models(found, expected)


@pytest.mark.parametrize("name", LAWFUL)
def test_exchange_is_never_above_its_scouts(name):
    kind, (X, y) = LOSSES[name], problem(name, 1, rho=0.95)
    k = size_for(name, "exchange")
    path = kind.estimator(k=k).fit(X, y).path_
    smooth = Kind(kind.tuned(y)[1], kind.target)
    for method in ("forward", "foba", FoBa(rule="refit")) if name in SMOOTH else ("foba",):
        rival = kind.estimator(k=k, method=method).fit(X, y).path_
        for size in range(1, k + 1):
            # What is minimised is the envelope of a piecewise loss, and values within 1e-6 are taken for equal.
            assert (
                minimised(smooth, X, y, path[size]) <= minimised(smooth, X, y, rival[size]) + 2e-6 * path[0].objective
            )


def minimised(kind, X, y, model):
    a = np.atleast_2d(model.coef) @ X[:, model.support].T + np.reshape(model.intercept, (-1, 1))
    return float(np.sum(kind.loss.value(kind.coded(y), a) @ shares(None, len(X))))


@pytest.mark.parametrize("seed", range(4))
def test_exchange_ends_where_no_swap_helps(seed):
    """By enumeration, with refits from scratch; other starts end no lower than the best of all sets either."""
    X, y = correlated(SMOOTH["log_loss"], 60, 8, 0.9, seed)
    values = {S: as_judged("log_loss", X, y, S) for S in itertools.combinations(range(8), 3)}
    for method in ("exchange", VARIANTS[-1]):
        support = tuple(SparseClassifier(k=3, method=method).fit(X, y).support_)
        swaps = [values[S] for S in values if len(set(S) & set(support)) == 2]
        assert min(values.values()) - 1e-9 <= values[support] <= min(swaps) + 2e-6 * np.log(2)


@pytest.mark.parametrize("name", ["log_loss", "poisson"])
def test_exchange_finds_the_best_pair_of_all_in_nearly_all_problems(name):
    found = 0
    for seed in range(10):
        X, y = correlated(SMOOTH[name], 40, 6, 0.9, seed)
        values = {S: as_judged(name, X, y, S) for S in itertools.combinations(range(6), 2)}
        support = tuple(LOSSES[name].estimator(k=2).fit(X, y).support_)
        found += values[support] <= min(values.values()) * (1 + 1e-6)
    assert found == 10
