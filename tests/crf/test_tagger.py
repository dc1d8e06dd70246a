"""SparseTagger: sensors compared with brute force, forms of input with each other, and invalid input."""

import itertools
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from chains import bounds_of, make_chains, point_of
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import LeaveOneOut
from tagger_problems import LENGTHS, dicts, frames, problem

import pauca
from pauca import PaucaWarning, SparseRegressor, SparseTagger, Stop
from pauca.crf import fit
from pauca.crf.chain_inference import compile_kernels, load_kernels
from pauca.crf.objective import ChainCRF
from pauca.crf.observations import Observations
from pauca.methods import Exchange, FoBa, Forward


def least(X_list, y_list, columns, ridge, ridge_transitions=None):
    """The least objective on some columns, by another library."""
    X, y = np.vstack(X_list)[:, columns], np.concatenate(y_list)
    data = Observations.from_rows(X.astype(float), bounds_of(X_list))
    ridges = {"ridge": ridge, "ridge_transitions": ridge if ridge_transitions is None else ridge_transitions}
    field = ChainCRF(data, y, int(y.max()) + 1, **ridges)
    return minimize(field.value_and_gradient, field.start, jac=True, method="L-BFGS-B", tol=1e-12).fun


@cache
def least_of_pairs():
    X, y = problem(n_columns=5)
    return {pair: least(X, y, list(pair), 0.01) for pair in itertools.combinations(range(5), 2)}


@pytest.mark.parametrize("method", ["foba", "forward", "exchange", "backward"])
def test_sensors_against_all_sets_of_sensors(method):
    X, y = problem(n_columns=5)
    model = SparseTagger(k=2, method=method, ridge=0.01, ridge_transitions=0.01).fit(X, y)
    values = least_of_pairs()
    best = min(values, key=values.get)
    assert tuple(model.sensors_) == best
    assert model.objective_ == pytest.approx(values[best], rel=1e-5)
    # The model of the requested size is fitted closely, the others less so.
    alone = least(X, y, model.path_[1].support.tolist(), 0.01)
    assert alone - 1e-9 <= model.path_[1].objective <= 1.001 * alone


def test_weights_against_all_pairs_of_weights():
    X, y = problem(n_columns=2, n_labels=2, informative=2)
    model = SparseTagger(k=2, unit="weight", method="exchange", ridge=0.01, ridge_transitions=0.01).fit(X, y)
    data = Observations.from_rows(np.vstack(X).astype(float), bounds_of(X))
    field = ChainCRF(data, np.concatenate(y), 2, ridge=0.01, ridge_transitions=0.01)

    def least_on(pair):
        coords = [*pair, *field.free]

        def value(part):
            w = np.zeros(field.n_coords)
            w[coords] = part
            value, gradient = field.value_and_gradient(w)
            return value, gradient[coords]

        return minimize(value, field.start[coords], jac=True, method="L-BFGS-B", tol=1e-12).fun

    assert model.objective_ == pytest.approx(min(map(least_on, itertools.combinations(range(4), 2))), rel=1e-5)
    assert np.count_nonzero(model.coef_) == 2
    assert model.path_.counted == "weight"


def test_fitted_attributes_are_consistent():
    X, y = problem()
    model = SparseTagger(k=3).fit(X, y)
    assert model.k_ == 3
    assert model.stop_ is Stop.SIZE
    assert list(model.sensors_) == list(model.support_) == list(np.flatnonzero(model.coef_.any(axis=0)))
    assert model.transitions_.shape == (3, 3)
    marginals = model.predict_marginals(X)
    for table, found, labels in zip(X, marginals, model.predict(X), strict=True):
        assert found.shape == (len(table), 3)
        np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
        assert labels.shape == (len(table),)
    n = sum(map(len, y))
    right = sum(int(np.sum(a == b)) for a, b in zip(model.predict(X), y, strict=True))
    assert model.score(X, y) == pytest.approx(right / n)
    assert model.score(X, y) > model.at(0).score(X, y)
    # The reported objective is that of the reported weights.
    field = ChainCRF(
        Observations.from_distinct_rows(np.vstack(X), bounds_of(X)),
        np.concatenate(y),
        3,
        ridge=1 / n,
        ridge_transitions=1 / n,
    )
    w = point_of(field, model.coef_.T, model.transitions_, model.intercept_)
    assert field.value(w) == pytest.approx(model.objective_, rel=1e-12)
    objectives = [one.objective for one in model.path_]
    assert objectives == sorted(objectives, reverse=True)


KINDS = {
    "floats": lambda X: [one.astype(float) for one in X],
    "float32": lambda X: [one.astype(np.float32) for one in X],
    "integers": lambda X: [one.astype(np.int16) for one in X],
    "lists": lambda X: [one.tolist() for one in X],
    "CSR": lambda X: [sparse.csr_matrix(one.astype(float)) for one in X],
    "CSC": lambda X: [sparse.csc_array(one) for one in X],
    "frames": frames,
    "polars": lambda X: [pl.from_pandas(one) for one in frames(X)],
    "dicts": dicts,
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_input_agree(kind):
    X, y = problem()
    wanted, model = SparseTagger(k=2).fit(X, y), SparseTagger(k=2).fit(KINDS[kind](X), y)
    assert model.objective_ == pytest.approx(wanted.objective_, rel=1e-9)
    named = [str(one).removeprefix("sensor ") for one in model.sensors_]
    assert named == [str(one) for one in wanted.sensors_]
    for one, two in zip(model.predict_marginals(KINDS[kind](X)), wanted.predict_marginals(X), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-9)


@pytest.mark.parametrize(
    "kind", [np.vstack, lambda X: sparse.csr_matrix(np.vstack(X)), lambda X: list(itertools.chain(*dicts(X)))]
)
def test_one_table_with_lengths(kind):
    X, y = problem()
    lengths = [len(one) for one in X]
    wanted, model = SparseTagger(k=2).fit(X, y), SparseTagger(k=2).fit(kind(X), np.concatenate(y), lengths=lengths)
    np.testing.assert_allclose(model.coef_, wanted.coef_, atol=1e-9)
    np.testing.assert_array_equal(model.predict(kind(X), lengths), np.concatenate(wanted.predict(X)))
    assert model.predict_marginals(kind(X), lengths=lengths).shape == (sum(lengths), 3)
    assert model.score(kind(X), np.concatenate(y), lengths) == wanted.score(X, y)


def test_continuous_columns_in_any_units():
    X, y = make_chains(LENGTHS, 3, 5, informative=2)
    rng = np.random.default_rng(1)
    X = [one + 0.2 * rng.normal(size=one.shape) for one in X]
    scale, shift = np.array([1e-5, 1e3, 1.0, 1e6, 1.0]), np.array([0.0, 1e5, 10.0, 0.0, -3.0])
    model, other = (SparseTagger(k=2).fit(one, y) for one in (X, [x * scale + shift for x in X]))
    assert list(model.sensors_) == list(other.sensors_) == [0, 1]
    assert other.objective_ == pytest.approx(model.objective_, rel=1e-5)


def test_attributes_of_crfsuite():
    sentences = [
        [("the", "DET"), ("dog", "NOUN"), ("runs", "VERB")],
        [("a", "DET"), ("cat", "NOUN")],
        [("runs", "VERB")],
        [("the", "DET"), ("cat", "NOUN"), ("runs", "VERB"), ("far", "ADV")],
    ] * 3
    X = [
        [{"word": word, "length": len(word), "suffixes": [word[-1:], word[-2:]], "first": t == 0, "in": {"case": "l"}}]
        for sentence in sentences
        for t, (word, _) in enumerate(sentence)
    ]
    y = [[tag] for sentence in sentences for _, tag in sentence]
    with pytest.warns(PaucaWarning, match="Constant sensors were left out: 'in:case=l'"):
        model = SparseTagger(k=4).fit(X, y)
    assert {"word=the", "length", "suffixes=s", "suffixes=ns", "first", "in:case=l"} <= set(model.names_)
    assert list(model.classes_) == ["ADV", "DET", "NOUN", "VERB"]
    unseen = model.predict([[{"word": "platypus", "colour": "brown"}]])
    assert unseen[0].shape == (1,)
    words = SparseTagger(k=1).fit([[["wet", "cold"], []], [["dry"], ["cold"]]], [["rain", "sun"], ["sun", "sun"]])
    assert list(words.sensors_) == ["wet"]


@pytest.mark.parametrize(
    "rename",
    [
        lambda c: f"label {c}",
        lambda c: c == 0,
        lambda c: (c, "x"),
        lambda c: c - 0.5,
        lambda c: ("a", 7, None.__class__)[c],
    ],
    ids=["words", "truth values", "tuples", "floats", "mixed"],
)
def test_any_hashable_labels(rename):
    X, y = problem()
    labels = [[rename(int(c)) for c in one] for one in y]
    model = SparseTagger(k=2).fit(X, labels)
    assert set(model.classes_.tolist()) == {label for one in labels for label in one}
    assert set(model.predict(X)[0].tolist()) <= set(model.classes_.tolist())
    right = [
        a == b
        for one, two in zip(model.predict(X), labels, strict=True)
        for a, b in zip(one.tolist(), two, strict=True)
    ]
    assert model.score(X, labels) == pytest.approx(np.mean(right))


def test_groups_of_columns_are_sensors():
    X, y = problem(n_columns=6)
    model = SparseTagger(k=1, feature_groups=list("abcabc")).fit(X, y)
    (sensor,) = model.sensors_
    assert model.support_.tolist() == [j for j, owner in enumerate("abcabc") if owner == sensor]
    assert model.path_.groups(1) == [sensor]


def test_constraints():
    X, y = problem()
    model = SparseTagger(k=2, always=[5], never=[0]).fit(X, y)
    assert 5 in model.sensors_
    assert 0 not in model.sensors_
    cheap = SparseTagger(k=3, costs=[9.0, 1, 9, 1, 1, 1, 1], budget=4).fit(X, y)
    assert cheap.path_.cost(cheap.k_) <= 4
    assert SparseTagger(k=None, tol=0.05).fit(X, y).k_ < 7


def test_choice_of_size_on_sequences_held_out():
    X, y = problem(lengths=(40,) * 12, n_columns=8)
    model = SparseTagger(k=range(6), cv=4).fit(X, y)
    choice = model.path_.choice
    assert choice.scoring == "accuracy"
    assert choice.fold_scores.shape == (4, 6)
    assert 1 <= model.k_ <= 4
    frame = model.path_.to_frame()
    np.testing.assert_array_equal(frame["score"][:6], choice.mean)
    np.testing.assert_array_equal(frame["error"][:6], 1.0 - choice.mean)
    np.testing.assert_array_equal(frame["standard_error"][:6], choice.standard_error)
    assert "error" not in model.at(2).fit(X, y).path_.to_frame()
    # Each score is that of a tagger fitted on the other sequences.
    split = LeaveOneOut()
    one = SparseTagger(k=[2], cv=split).fit(X[:3], y[:3])
    wanted = [
        SparseTagger(k=2, ridge=1 / 120, ridge_transitions=1 / 120)
        .fit([X[i] for i in train], [y[i] for i in train])
        .score([X[i] for i in test], [y[i] for i in test])
        for train, test in split.split(range(3))
    ]
    np.testing.assert_allclose(one.path_.choice.fold_scores[:, 0], wanted, atol=0.03)
    best = SparseTagger(selection_rule="best", cv=3, n_jobs=2).fit(X, y)
    assert best.k_ == best.path_.choice.best


@pytest.mark.parametrize("binary", [True, False])
def test_a_sequence_named_several_times_by_a_split_is_repeated(binary):
    X, y = make_chains((30, 9, 45, 20, 38, 27), 3, 5, informative=3)
    if not binary:
        X = [one + 0.2 * np.random.default_rng(len(one)).normal(size=one.shape) for one in X]
    ridges = dict.fromkeys(("ridge", "ridge_transitions"), 0.01)

    def by_fold(splits):
        choice = SparseTagger(k=[0, 1, 2, 3], cv=splits, **ridges).fit(X, y).path_.choice
        return choice.fold_scores[:, choice.sizes == 2].ravel()

    def by_hand(train, test):
        model = SparseTagger(k=2, **ridges).fit([X[i] for i in train], [y[i] for i in train])
        return model.score([X[i] for i in test], [y[i] for i in test])

    splits = [([0, 0, 0, 2, 3], [4, 5]), ([1, 1, 2, 2, 2, 5, 5], [0, 3]), ([5, 1, 1, 1, 1, 1], [0, 2])]
    found, once = by_fold(splits), by_fold([(np.unique(train), test) for train, test in splits])
    np.testing.assert_allclose(found, [by_hand(*split) for split in splits], atol=0.02)
    assert np.abs(found - once).max() > 0.04


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (([0, 1, 99], [2]), "cv makes a split with the index 99, and there are 6 to choose from"),
        (([0, 1], [-1, 2]), "cv makes a split with the index -1"),
        (([True, True, False], [2, 3]), "cv must make splits of indices; got an array of dtype bool"),
    ],
)
@pytest.mark.parametrize("kind", [SparseTagger, SparseRegressor])
def test_invalid_splits(kind, split, message):
    X, y = problem()
    if kind is SparseRegressor:
        X, y = X[2][:6], y[2][:6]
    with pytest.raises((ValueError, TypeError), match=message):
        kind(k=[1, 2], cv=[split]).fit(X, y)


def test_more_labels_than_memory_holds(monkeypatch):
    monkeypatch.setattr("os.sysconf", lambda name: 1000)
    X, y = problem()
    assert SparseTagger(k=1).fit(X, y).k_ == 1
    many = [np.arange(len(one)) % 12 for one in y]
    monkeypatch.setattr(Observations, "from_distinct_rows", None)  # before any work
    with pytest.raises(MemoryError, match=r"A model of 12 labels, .* 144 transitions, takes about .* Merge rare"):
        SparseTagger(k=1).fit(X, many)


def test_fold_without_a_label():
    X, y = problem(lengths=(30,) * 4)
    y[0][3] = 7  # occurs once, in one fold
    model = SparseTagger(k=[1, 2, 3], cv=4).fit(X, y)
    assert 7 in model.classes_
    assert np.all(np.isfinite(model.path_.choice.mean))


def test_threads_change_nothing(monkeypatch):
    pools = []
    monkeypatch.setattr(
        "pauca.crf.chain_inference.ThreadPoolExecutor",
        lambda workers: pools.append(workers) or ThreadPoolExecutor(workers),
    )
    X, y = make_chains((700,) * 16, 14, 6)
    one = SparseTagger(k=2, n_jobs=1).fit(X, y)
    assert not pools
    two = SparseTagger(k=2, n_jobs=2).fit(X, y)
    assert set(pools) == {2}
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.transitions_, two.transitions_)


def test_callback_and_time_limit():
    X, y = problem()
    sizes = []
    model = SparseTagger(k=5, callback=lambda progress: sizes.append(progress.size) or progress.size == 2)
    assert model.fit(X, y).stop_ is Stop.CALLBACK
    assert sizes == [1, 2]
    with pytest.warns(
        PaucaWarning, match="k=7 sensors were requested, but the time limit was reached at 1. Allow more time"
    ):
        hurried = SparseTagger(k=7, time_limit=1e-9).fit(X, y)
    assert (hurried.k_, hurried.stop_) == (1, Stop.TIME)


def test_compiling_is_done_before_the_clock_starts(monkeypatch):
    X, y = problem()
    events, after = [], fit.deadline_after
    monkeypatch.setattr(fit, "compile_kernels", lambda: events.append("compiled"))
    monkeypatch.setattr(fit, "deadline_after", lambda seconds: events.append("clock") or after(seconds))
    SparseTagger(k=1, time_limit=60.0).fit(X, y)
    assert events == ["compiled", "clock"]
    # One type of arguments, which is the one compiled beforehand.
    compile_kernels()
    kernels = load_kernels()
    assert {len(one.signatures) for one in (kernels.forward_backward, kernels.viterbi)} == {1}


def test_report_by_label():
    X, y = problem()
    model = SparseTagger(k=3).fit(X, y)
    truth, found = np.concatenate(y), np.concatenate(model.predict(X))
    table = model.label_table(X, y)
    for label, record in enumerate(table):
        hits = np.sum((truth == label) & (found == label))
        assert record == {
            "label": label,
            "precision": pytest.approx(hits / np.sum(found == label)),
            "recall": pytest.approx(hits / np.sum(truth == label)),
            "f1": pytest.approx(2 * hits / (np.sum(found == label) + np.sum(truth == label))),
            "support": int(np.sum(truth == label)),
        }
    unknown = [["new"] * len(one) for one in y]
    assert model.score(X, unknown) == 0.0
    assert model.label_table(X, unknown)[-1]["label"] == "new"
    text = model.label_report(X, y).splitlines()
    assert text[0].split() == ["label", "precision", "recall", "f1", "support"]
    assert text[-1].split() == ["(all)", f"{model.score(X, y):.3f}", str(len(truth))]


@pytest.mark.parametrize(
    "options",
    [
        {"k": 2},
        {"k": 3, "unit": "weight", "method": FoBa(nu=0.3, rule="gradient")},
        {"k": [1, 2], "cv": 2, "method": Forward(rule="gradient")},
        {"k": 1, "feature_groups": list("aabbccd"), "costs": [1.0] * 7},
    ],
    ids=str,
)
@pytest.mark.parametrize("make", [list, frames], ids=["arrays", "frames"])
def test_save_and_load(tmp_path, options, make):
    X, y = problem()
    X, labels = make(X), [[f"label {c}" for c in one] for one in y]
    model = SparseTagger(**options).fit(X, labels)
    model.save(tmp_path / "model.json")
    again = pauca.load(tmp_path / "model.json")
    assert again.get_params().keys() == model.get_params().keys()
    assert again.summary() == model.summary()
    for name in ("coef_", "transitions_", "intercept_", "classes_", "sensors_", "support_", "names_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    assert again.n_features_in_ == 7
    for one, two in zip(again.predict(X), model.predict(X), strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(again.at(0).transitions_, model.at(0).transitions_)


def test_labels_in_files(tmp_path):
    X, y = problem()
    names = [("night", 1), ("day", (2.5, None)), ("day", float("inf"))]
    model = SparseTagger(k=1).fit(X, [[names[label] for label in one] for one in y])
    model.save(tmp_path / "model.json")
    again = pauca.load(tmp_path / "model.json")
    assert again.classes_.tolist() == model.classes_.tolist()
    assert again.predict(X)[0].tolist() == model.predict(X)[0].tolist()
    for label, message in [
        (frozenset("ab"), r"arrays\.classes_\.array\[.\]: keys and labels must be strings, .* or tuples of these"),
        (("a", frozenset("b")), "keys and labels must be strings"),
        (pd.Timestamp(2026, 1, 1), "classes_ holds a Timestamp, which cannot be saved"),
    ]:
        other = SparseTagger(k=1).fit(X, [[label if one == 1 else int(one) for one in labels] for labels in y])
        with pytest.raises(pauca.ModelFileError, match=message):
            other.save(tmp_path / "other.json")
        assert not (tmp_path / "other.json").exists()


def test_a_large_ridge_makes_positions_independent():
    X, y = problem()
    model = SparseTagger(k=2, ridge=0.01, ridge_transitions=10).fit(X, y)
    assert model.objective_ == pytest.approx(least(X, y, model.support_, 0.01, 10.0), rel=1e-4)
    apart = SparseTagger(k=2, ridge=0.01).fit(np.vstack(X), np.concatenate(y), [1] * sum(map(len, X)))
    assert 0.99 * apart.objective_ < model.objective_ < apart.objective_


def test_frames_need_only_the_chosen_columns():
    X, y = problem()
    model = SparseTagger(k=2).fit(frames(X), y)
    few = [one[list(reversed(model.sensors_))].assign(other=np.nan) for one in frames(X)]
    for one, two in zip(model.predict(few), model.predict(frames(X)), strict=True):
        np.testing.assert_array_equal(one, two)


def test_settings_are_those_of_scikit_learn():
    model = SparseTagger(k=3, unit="weight", method=Exchange())
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        model.predict([np.zeros((2, 2))])


def test_sequences_of_one_position():
    """Without neighbours this is a classifier of positions, and transitions stay at zero."""
    X, y = make_chains((1,) * 80, 3, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SparseTagger(k=2).fit(X, y)
    assert model.score(X, y) > 0.5
    np.testing.assert_allclose(model.transitions_, 0.0, atol=1e-3)
