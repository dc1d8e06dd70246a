"""Input of a tagger: the forms of sequences that are read, names of columns, and messages about invalid input."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from chains import make_chains
from scipy import sparse

from pauca import SparseTagger
from problems import in_chunks

LENGTHS = (12, 1, 20, 9)
NAMES = ["bed", "door", "lamp", "stove"]


@pytest.fixture(scope="module")
def chains():
    X, y = make_chains(LENGTHS, 3, 4, informative=2)
    return X, y


def frames(X):
    return [pd.DataFrame(one, columns=NAMES) for one in X]


def dicts(X):
    return [[dict(zip(NAMES, row, strict=True)) for row in one.tolist()] for one in X]


@pytest.fixture(scope="module")
def fitted(chains):
    """A model of arrays, of frames and of dicts."""
    X, y = chains
    return {
        "arrays": SparseTagger(k=2).fit(X, y),
        **{f.__name__: SparseTagger(k=2).fit(f(X), y) for f in (frames, dicts)},
    }


WITHOUT = "^X does not have valid feature names, but SparseTagger was fitted with feature names$"
WITH = "^X has feature names, but SparseTagger was fitted without feature names$"


@pytest.mark.parametrize(
    ("of", "make", "words"), [("frames", list, WITHOUT), ("dicts", list, WITHOUT), ("arrays", frames, WITH)]
)
@pytest.mark.parametrize("call", ["predict", "predict_marginals", "score", "label_table"])
def test_names_on_one_side_alone(chains, fitted, of, make, words, call):
    X, y = chains
    data = (make(X), y) if call in {"score", "label_table"} else (make(X),)
    with pytest.warns(UserWarning, match=words):
        found = getattr(fitted[of], call)(*data)
    same = getattr(fitted["arrays"], call)(X, *data[1:])
    np.testing.assert_array_equal(str(found), str(same))


def test_names_that_match(chains, fitted):
    X, _ = chains
    # Sparse matrices cannot have names, and numbers are none.
    numbered = [pd.DataFrame(one) for one in X]
    pairs = [
        ("frames", dicts(X)),
        ("dicts", frames(X)),
        ("frames", list(map(sparse.csr_matrix, X))),
        ("arrays", numbered),
    ]
    for of, data in pairs:
        for one, two in zip(fitted[of].predict(data), fitted["arrays"].predict(X), strict=True):
            np.testing.assert_array_equal(one, two)
    assert SparseTagger(k=1).fit(numbered, chains[1]).sensors_.dtype.kind == "i"


@pytest.mark.parametrize(
    "make",
    [
        lambda X: ((position for position in one) for one in dicts(X)),
        lambda X: [pd.Series(one) for one in dicts(X)],
        lambda X: [np.array(one, dtype=object) for one in dicts(X)],
        lambda X: tuple(tuple(one) for one in dicts(X)),
        lambda X: [[[name for name, on in row.items() if on] for row in one] for one in dicts(X)],
        lambda X: [[{"in": position} for position in one] for one in dicts(X)],
    ],
    ids=["generators", "series", "object arrays", "tuples", "words", "dicts in dicts"],
)
def test_forms_of_attributes(chains, fitted, make):
    X, y = chains
    model = SparseTagger(k=2).fit(make(X), y)
    assert {name.removeprefix("in:") for name in model.sensors_} == set(fitted["frames"].sensors_)
    assert model.objective_ == pytest.approx(fitted["frames"].objective_)


def with_text(table, row, column, value="on"):
    changed = table.astype(object)
    changed[row, column] = value
    return changed


TEXT = {
    "array": (lambda X: [*X[:2], with_text(X[2], 5, 3)], None, "Sequence 2 holds 'on' in column 'x3', position 5"),
    "frame": (
        lambda X: [*frames(X[:2]), frames(X)[2].assign(door="shut")],
        None,
        "Sequence 2 holds 'shut' in column 'door', position 0",
    ),
    "polars": (
        lambda X: [pl.DataFrame({"bed": one[:, 0], "door": ["shut"] * len(one)}) for one in X[:3]],
        None,
        "Sequence 0 holds 'shut' in column 'door', position 0",
    ),
    "one table": (
        lambda X: with_text(np.vstack(X[:3]), 15, 1),
        LENGTHS[:3],
        "Sequence 2 holds 'on' in column 'x1', position 2",
    ),
    "date": (
        lambda X: [one.assign(when=pd.Timestamp(2026, 1, 1)) for one in frames(X[:3])],
        None,
        "Sequence 0 holds '2026-01-01 00:00:00' in column 'when'",
    ),
    "only dates": (
        lambda X: [pd.DataFrame({"when": pd.date_range("2026", periods=len(one))}) for one in X[:3]],
        None,
        "Sequence 0 holds '2026-01-01.*' in column 'when'",
    ),
    "missing": (
        lambda X: [with_text(X[0], 3, 1, pd.NA), *X[1:3]],
        None,
        "Sequence 0 holds '<NA>' in column 'x1', position 3",
    ),
    "None": (
        lambda X: [with_text(X[0], 3, 1, None), *X[1:3]],
        None,
        "Sequence 0 holds NaN or infinity in column 'x1', position 3",
    ),
    "complex": (lambda X: [one + 1j for one in X[:3]], None, "Sequence 0 holds .* in column 'x0'"),
}


@pytest.mark.parametrize("case", TEXT)
def test_messages_name_the_sequence_and_column_of_a_value_that_is_no_number(chains, case):
    make, lengths, message = TEXT[case]
    y = chains[1][:3]
    with pytest.raises(ValueError, match=message):
        SparseTagger(k=1).fit(make(chains[0]), np.concatenate(y) if lengths else y, lengths)


ONE = r"a list of sequences is required. A single sequence goes in a list: predict\(\[X\]\), or fit\(\[X\], \[y\]\)"
SINGLE = r"A single sequence goes in a list: predict\(\[X\]\)"


@pytest.mark.parametrize(
    ("of", "take", "message"),
    [
        ("dicts", lambda X: dicts(X)[0], f"X is one list of 12 positions, and {ONE}"),
        ("dicts", lambda X: [["bed"], ["door", "lamp"]], f"X is one list of 2 positions, and {ONE}"),
        ("dicts", lambda X: np.array(dicts(X)[0], dtype=object), f"X is one list of 12 positions, and {ONE}"),
        ("arrays", lambda X: X[0], f"X is one table, and {ONE}"),
        ("frames", lambda X: frames(X)[0], f"X is one table, and {ONE}"),
        ("arrays", lambda X: sparse.csr_matrix(X[0]), f"X is one table, and {ONE}"),
        ("arrays", lambda X: X[0].tolist(), f"Sequence 0 must be a table .* 1 dimension. {SINGLE}"),
        ("arrays", lambda X: list(X[0]), f"Sequence 0 must be a table .* 1 dimension. {SINGLE}"),
        ("arrays", lambda X: [3, 4], f"Sequence 0 must be a table .*; got 3. {SINGLE}"),
        ("arrays", lambda X: [X[0], "bed"], "Sequence 1 must be a table .*; got 'bed'"),
        ("dicts", lambda X: {"bed": 1}, "X must be a list of sequences; got {'bed': 1}"),
        ("arrays", lambda X: None, "X must be a list of sequences; got None"),
        ("arrays", lambda X: [[[1, 0], [1]]], "Sequence 0 has rows of different lengths"),
        ("frames", lambda X: [pl.DataFrame({"bed": [1]}).lazy()], "Sequence 0 is a lazy frame"),
        ("frames", lambda X: pl.DataFrame({"bed": [1]}).lazy(), "X is a lazy frame"),
        ("frames", lambda X: in_chunks(np.ones((3, 2))), "X is a table in chunks.*Give a list"),
    ],
)
def test_one_sequence_instead_of_a_list(chains, fitted, of, take, message):
    X = take(chains[0])
    for call in (fitted[of].predict, lambda X: SparseTagger(k=1).fit(X, chains[1][0])):
        with pytest.raises((ValueError, TypeError), match=message):
            call(X)


@pytest.mark.parametrize("make", [list, dicts, lambda X: [one.tolist() for one in X]])
def test_a_list_needs_no_lengths(chains, make):
    with pytest.raises(ValueError, match="X is a list of sequences, which have their lengths; leave out 'lengths'"):
        SparseTagger(k=1).fit(make(chains[0]), np.concatenate(chains[1]), LENGTHS)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"bed": None}, "attribute 'bed' of position 1 in sequence 2 is None; .* Leave it out"),
        ({"near": {"bed": None}}, "attribute 'near:bed' of position 1 in sequence 2 is None"),
        ({"bed": [1, 2]}, r"attribute 'bed' of position 1 in sequence 2 is \[1, 2\]"),
        ({"bed": float("inf")}, "attribute 'bed' of position 1 in sequence 2 is inf"),
        (3, "Position 1 of sequence 2 is 3"),
    ],
)
def test_attributes_without_a_value(chains, fitted, item, message):
    X, y = dicts(chains[0]), chains[1]
    X[2][1] = item
    flat, labels = [position for one in X for position in one], np.concatenate(y)
    for call in (
        lambda: SparseTagger(k=1).fit(X, y),
        lambda: SparseTagger(k=1).fit(flat, labels, LENGTHS),
        lambda: fitted["dicts"].predict(X),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            call()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (np.concatenate, r"y\[0\] must be a list of labels; got 1"),
        (lambda y: ["night"] * 4, r"y\[0\] must be a list of labels; got 'night'"),
        (lambda y: pd.DataFrame({"label": [1]}), "y must be a list with the labels of every sequence; got a frame"),
        (lambda y: None, "y must be a list with the labels of every sequence; got None"),
    ],
)
def test_labels_in_other_forms(chains, change, message):
    X, y = chains
    with pytest.raises((ValueError, TypeError), match=message):
        SparseTagger(k=1).fit(X, change(y))


MISSING = [
    pd.NA,
    pd.NaT,
    np.datetime64("NaT"),
    np.float32("nan"),
    Decimal("nan"),
    Decimal("snan"),
    complex("nan"),
    np.ma.masked,
    ("night", float("nan")),
]


@pytest.mark.parametrize("label", MISSING, ids=repr)
def test_a_missing_label_is_no_class(chains, fitted, label):
    X, y = chains
    labels = [one.tolist() for one in y]
    labels[2][7] = label
    for call in (SparseTagger(k=1).fit, fitted["arrays"].score):
        with pytest.raises(ValueError, match="Position 7 of sequence 2 has no label: y holds "):
            call(X, labels)
        with pytest.raises(ValueError, match="Position 7 of sequence 2 has no label: y holds "):
            call(np.vstack(X), [label for one in labels for label in one], LENGTHS)


def test_labels_that_read_like_missing_ones(chains):
    X, y = chains
    names = np.array(["NaT", "<NA>", "nan"])
    assert SparseTagger(k=1).fit(X, [names[one] for one in y]).classes_.tolist() == ["<NA>", "NaT", "nan"]
    parts = [[("night", None), ("day", None), ("day", 1)][label] for one in y for label in one]
    assert set(SparseTagger(k=1).fit(np.vstack(X), parts, LENGTHS).classes_.tolist()) == set(parts)


def test_positions_without_words():
    X, y = [[[], ["w"]], [[], ["v", "w"]]], [["a", "b"], ["a", "c"]]
    model = SparseTagger(k=1).fit(X, y)
    assert model.names_.tolist() == ["w", "v"]
    flat = SparseTagger(k=1).fit([position for one in X for position in one], ["a", "b", "a", "c"], [2, 2])
    np.testing.assert_array_equal(flat.coef_, model.coef_)
    # A model of words may predict for positions without any.
    without = model.predict_marginals([[[], []]])
    np.testing.assert_array_equal(without[0], model.predict_marginals([[{}, {}]])[0])
    np.testing.assert_array_equal(without[0], model.predict_marginals([[], []], [2]))
    with pytest.raises(ValueError, match="X has no columns"):
        SparseTagger(k=1).fit([[[], []]], [["a", "b"]])
    with pytest.raises(ValueError, match=f"X is one list of 2 positions, and {ONE}"):
        model.predict([[], ["w"]])


def test_repeated_words_are_counted():
    X, y = [[["w"], ["w", "w"]], [["w", "v", "v", "v"], ["v"]]], [["a", "b"], ["a", "b"]]
    model = SparseTagger(k=2).fit(X, y)
    counts = SparseTagger(k=2).fit([np.array([[1, 0], [2, 0]]), np.array([[1, 3], [0, 1]])], y)
    assert model.names_.tolist() == ["w", "v"]
    np.testing.assert_allclose(model.coef_, counts.coef_, atol=1e-9)


LONG = np.longdouble("1e400")  # infinity where there are no longer numbers than doubles

OTHER_KINDS = {
    "dict": lambda X: [[{"bed": 10**400}] * len(X[0]), *dicts(X[1:])],
    "integer": lambda X: [with_text(X[0], 0, 0, 10**400), *X[1:]],
    "long double": lambda X: [one * LONG for one in X],
    "sparse long double": lambda X: [sparse.csr_matrix(one * LONG) for one in X],
    "masked": lambda X: [np.ma.masked_array(one, mask=one & (np.arange(4) == 0)) for one in X],
    "complex": lambda X: [np.array([[np.complex128(value)] for value in one[:, 0]], dtype=object) for one in X],
    "sparse complex": lambda X: [sparse.csr_matrix(one * 1j) for one in X],
}


@pytest.mark.parametrize("case", OTHER_KINDS)
def test_numbers_of_other_kinds(chains, case):
    X = [one | True for one in chains[0]]
    message = (
        r"attribute 'bed' of position 0 in sequence 0|Sequence 0 holds .* in column 'x0', position 0|Sequence 0 is "
    )
    with pytest.raises((ValueError, TypeError), match=message):
        SparseTagger(k=1).fit(OTHER_KINDS[case](X), chains[1])


def test_masked_arrays_without_masked_values(chains, fitted):
    X, y = chains
    model = SparseTagger(k=2).fit([np.ma.masked_array(one) for one in X], y)
    np.testing.assert_array_equal(model.coef_, fitted["arrays"].coef_)


@pytest.mark.parametrize("size", [0, 1, 2])
def test_all_columns_of_arrays_are_checked(chains, fitted, size):
    X, model = chains[0], fitted["arrays"].at(size)
    with pytest.raises(ValueError, match="Sequence 1 has 3 columns; the model was fitted with 4"):
        model.predict([X[0], X[1][:, :3]])
    for column in range(4):
        bad = X[2].astype(float)
        bad[5, column] = np.nan
        with pytest.raises(ValueError, match=f"Sequence 2 holds NaN or infinity in column 'x{column}', position 5"):
            model.predict_marginals([*X[:2], bad])
    with pytest.raises(ValueError, match="Sequence 0 holds 'on' in column 'x3', position 2"):
        model.predict([with_text(X[0], 2, 3)])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_model_without_sensors_reads_no_columns(chains, fitted, frame):
    X, model = chains[0], fitted["frames"].at(0)
    wanted = model.predict(frames(X))
    for one, two in zip(model.predict([frame({"other": [np.nan] * len(one)}) for one in X]), wanted, strict=True):
        np.testing.assert_array_equal(one, two)
    nothing = [pd.DataFrame(index=range(len(one))) for one in X]
    np.testing.assert_array_equal(np.concatenate(model.predict(nothing)), np.concatenate(wanted))


def test_columns_of_one_name(chains):
    X, y = chains
    twice = [one.set_axis(["bed", "bed", "lamp", "stove"], axis=1) for one in frames(X)]
    model = SparseTagger(k=2).fit(twice, y)
    assert {"bed"} <= set(model.sensors_)
    for one, two in zip(model.predict(twice), SparseTagger(k=2).fit(X, y).predict(X), strict=True):
        np.testing.assert_array_equal(one, two)
    with pytest.raises(ValueError, match="Sequence 1 has several columns of the name 'bed'"):
        model.predict([twice[0], twice[1][["lamp", "bed", "stove"]]])
    with pytest.raises(ValueError, match="X has no columns: no position has an attribute"):
        SparseTagger(k=1).fit([[{}, {}]], [["a", "b"]])


def test_frames_and_arrays_do_not_mix_in_a_fit():
    X, y = make_chains((20, 20, 20), 3, 4)
    frames = [pd.DataFrame(one, columns=list("abcd")) for one in X]
    with pytest.raises(ValueError, match=r"Sequence 1 has names of columns, sequence 0 has none: give all as frames"):
        SparseTagger(k=1).fit([X[0], *frames[1:]], y)
    with pytest.raises(ValueError, match=r"Sequence 2 has no names of columns, sequence 0 has them"):
        SparseTagger(k=1).fit([*frames[:2], X[2]], y)


def test_a_dict_of_sequences_is_no_list():
    X, y = make_chains((20, 20), 3, 4)
    with pytest.raises(TypeError, match=r"got a dict\. Give list\(it\.values\(\)\)\.$"):
        SparseTagger(k=1).fit(dict(enumerate(X)), y)


def test_measurements_are_no_labels():
    X, _ = make_chains((40, 40), 3, 4)
    y = np.random.default_rng(0).normal(size=(2, 40))
    with pytest.raises(ValueError, match=r"y holds 80 different numbers, such as .* Put them into classes first"):
        SparseTagger(k=1).fit(X, y)
    halves = np.round(2 * y) / 2  # few values are labels, whole or not
    assert set(SparseTagger(k=1).fit(X, halves).classes_) == set(halves.ravel())


def test_price_of_a_model():
    X, y = make_chains((60, 60), 3, 4)
    model = SparseTagger(k=2, costs=[1.0, 2.0, 4.0, 8.0]).fit(X, y)
    assert model.cost_ == sum(2.0**sensor for sensor in model.sensors_)
    assert model.at(0).cost_ == 0.0
    assert not hasattr(SparseTagger(k=2).fit(X, y), "cost_")
