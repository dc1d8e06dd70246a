"""Sequences, tables and options that SparseTagger refuses."""

import numpy as np
import pytest
from tagger_problems import dicts, frames, problem

from pauca import SparseTagger


def corrupted(change):
    X, y = problem()
    X, y = [one.astype(float) for one in X], [one.tolist() for one in y]
    change(X, y)
    return X, y


BAD = {
    "empty sequence": (lambda X, y: (X.insert(2, X[0][:0]), y.insert(2, [])), "Sequence 2 has no positions"),
    "no sequences": (lambda X, y: (X.clear(), y.clear()), "X holds no sequences"),
    "widths": (lambda X, y: X.__setitem__(3, X[3][:, :5]), "Sequence 3 has 5 columns, and sequence 0 has 7"),
    "NaN": (
        lambda X, y: X[2].__setitem__((4, 6), np.nan),
        "Sequence 2 holds NaN or infinity in column 'x6', position 4",
    ),
    "infinity": (lambda X, y: X[1].__setitem__((0, 0), np.inf), "Sequence 1 holds NaN or infinity in column 'x0'"),
    "labels": (lambda X, y: y[4].pop(), "Sequence 4 has 38 positions and 37 labels"),
    "fewer labels": (lambda X, y: y.pop(), "X has 6 sequences and y has 5"),
    "missing label": (lambda X, y: y[2].__setitem__(7, None), "Position 7 of sequence 2 has no label"),
    "label that is not a number": (lambda X, y: y[0].__setitem__(1, np.nan), "Position 1 of sequence 0 has no label"),
    "text": (lambda X, y: X.__setitem__(1, [["on"] * 7]), "words|attributes|numbers"),
    "one dimension": (lambda X, y: X.__setitem__(0, X[0][:, 0]), "Sequence 0 must be a table"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_sequences(case):
    change, message = BAD[case]
    with pytest.raises((ValueError, TypeError), match=message):
        SparseTagger(k=2).fit(*corrupted(change))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "'k' parameter"),
        ({"unit": "label"}, "'unit' parameter"),
        ({"method": "magic"}, "method must be one of"),
        ({"ridge": -1.0}, "'ridge' parameter"),
        ({"ridge_transitions": "much"}, "'ridge_transitions' parameter"),
        ({"ridge_transitions": 11}, r"'ridge_transitions' parameter .* range \[0, 10\] or None.* every position"),
        ({"selection_rule": "worst"}, "'selection_rule' parameter"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"cv": 1}, "at least 2 folds"),
        ({"k": 1, "always": [9]}, "names column 9"),
        ({"k": 1, "always": [1, 2]}, "'always' holds 2 sensors, more than k=1"),
        ({"k": range(2), "always": [1, 2]}, "'always' holds 2 sensors, more than k=1"),
        ({"k": 1, "unit": "weight", "always": [1]}, "'always': only for sensors"),
        ({"time_limit": 0}, "'time_limit' parameter"),
        ({"callback": 3}, "'callback' parameter"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        SparseTagger(**options).fit(*problem())


def test_bad_tables():
    X, y = problem()
    table, labels, lengths = np.vstack(X), np.concatenate(y), [len(one) for one in X]
    with pytest.raises(ValueError, match="X is one table"):
        SparseTagger(k=1).fit(table, labels)
    with pytest.raises(ValueError, match="lengths add up to 162, and X has 161 positions"):
        SparseTagger(k=1).fit(table, labels, lengths=[*lengths, 1])
    with pytest.raises(ValueError, match="lengths must be whole numbers"):
        SparseTagger(k=1).fit(table, labels, lengths=[160.5, 0.5])
    with pytest.raises(ValueError, match="X has 161 positions and y 160 labels"):
        SparseTagger(k=1).fit(table, labels[1:], lengths=lengths)
    with pytest.raises(ValueError, match="one label only, 'a'"):
        SparseTagger(k=1).fit(X, [["a"] * len(one) for one in y])
    with pytest.raises(TypeError, match=r"hashable.*sequence 0"):
        SparseTagger(k=1).fit(X, [[[c] for c in one] for one in y])
    with pytest.raises(ValueError, match="at least two sequences"):
        SparseTagger().fit(X[:1], y[:1])
    bad = table.astype(float)
    bad[40, 2] = np.nan
    with pytest.raises(ValueError, match="Sequence 2 holds NaN or infinity in column 'x2', position 9"):
        SparseTagger(k=1).fit(bad, labels, lengths=lengths)
    model = SparseTagger(k=1).fit(X, y)
    with pytest.raises(ValueError, match="Sequence 0 has 6 columns; the model was fitted with 7"):
        model.predict([X[0][:, :6]])
    with pytest.raises(ValueError, match="attributes by name cannot be looked up"):
        model.predict(dicts(X))
    named = SparseTagger(k=1).fit(frames(X), y)
    with pytest.raises(ValueError, match="Sequence 1 has no column 'sensor"):
        named.predict([frames(X)[0], frames(X)[1].drop(columns=named.sensors_)])
    with pytest.raises(ValueError, match="Sequence 1 has a column 'more' that sequence 0 does not have"):
        SparseTagger(k=1).fit([frames(X)[0], frames(X)[1].assign(more=1)], y[:2])
    with pytest.raises(ValueError, match=r"attribute 'level' of position 1 in sequence 0 is nan"):
        SparseTagger(k=1).fit([[{"level": 1.0}, {"level": np.nan}]], [["a", "b"]])
