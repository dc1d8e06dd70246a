"""Random tables, targets and weights for the campaign: tame ones and hostile ones, in every form that data come in.

A table is drawn as plain numbers first; a form then makes a frame, a sparse matrix or something stranger of them. So
the judges know the numbers, and a case can be made smaller without knowing what made it.
"""

from __future__ import annotations

import datetime
import os
import tempfile
import weakref

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse

import pauca


def draw_numbers(rng):
    """A table of numbers, the name of its kind, and whether it is tame: nothing in it is a reason to refuse it."""
    n = int(rng.choice([1, 2, 3, 6, 12, 20, 40, 60], p=[0.01, 0.01, 0.03, 0.1, 0.2, 0.3, 0.25, 0.1]))
    d = int(rng.choice([1, 2, 3, 5, 8, 12, 30], p=[0.05, 0.1, 0.15, 0.3, 0.25, 0.1, 0.05]))
    X = rng.standard_normal((n, d))
    kind = str(rng.choice(list(KINDS), p=np.array(list(KINDS.values())) / sum(KINDS.values())))
    return _spoil(X, kind, rng), kind, kind in TAME


# How often each kind of table is drawn.
KINDS = {
    "gaussian": 8,
    "correlated": 4,
    "integers": 3,
    "binary": 3,
    "copies": 2,
    "constant": 2,
    "zeros": 1,
    "nearly collinear": 3,
    "collinear": 2,
    "units": 2,
    "far units": 2,
    "offset": 2,
    "far offset": 1,
    "heavy tails": 2,
    "huge": 1,
    "not squarable": 1,
    "tiny": 1,
    "denormal": 1,
    "one huge entry": 1,
    "nan": 1,
    "inf": 1,
    "beyond 2^53": 1,
}
TAME = {"gaussian", "correlated", "integers", "binary", "units"}


def _spoil(X, kind, rng):
    """The table X of normal numbers, made into one of a kind; column j is the one that is special."""
    (n, d), j = X.shape, int(rng.integers(X.shape[1]))
    whole = {
        "correlated": lambda: X + 3 * X[:, [j]],
        "integers": lambda: rng.integers(-5, 6, X.shape).astype(float),
        "binary": lambda: (X > 0).astype(float),
        "zeros": lambda: np.zeros_like(X),
        "nearly collinear": lambda: X[:, [j]] + 10.0 ** rng.uniform(-12, -4) * X,
        "units": lambda: X * 10.0 ** rng.integers(-3, 4, d),
        "far units": lambda: X * 10.0 ** rng.integers(-40, 41, d),
        "offset": lambda: X + 10.0 ** rng.integers(0, 7, d),
        "far offset": lambda: X + 10.0 ** rng.integers(9, 17, d),
        "heavy tails": lambda: np.sinh(4 * X),
        "huge": lambda: X * 10.0 ** rng.uniform(100, 149),
        "tiny": lambda: X * 10.0 ** rng.uniform(-150, -50),
        "beyond 2^53": lambda: rng.integers(-(2**62), 2**62, X.shape).astype(float),
    }
    column = {
        "copies": lambda: -2 * X[:, int(rng.integers(d))],
        "constant": lambda: np.full(n, rng.choice([0.0, 1.0, 1e8, -3e-7])),
        "collinear": lambda: X @ rng.standard_normal(d),
        "not squarable": lambda: X[:, j] * 10.0 ** rng.uniform(150, 307),
        "denormal": lambda: X[:, j] * 10.0 ** rng.uniform(-320, -150),
    }
    entry = {
        "one huge entry": lambda: 10.0 ** rng.uniform(10, 300),
        "nan": lambda: np.nan,
        "inf": lambda: rng.choice([np.inf, -np.inf]),
    }
    if kind in whole:
        return whole[kind]()
    if kind in column:
        X[:, j] = column[kind]()
    if kind in entry:
        X[int(rng.integers(n)), j] = entry[kind]()
    return X


def _frame(X, names=None):
    return pd.DataFrame(X, columns=names or [f"c{j}" for j in range(X.shape[1])])


def _masked(X):
    mask = np.zeros(X.shape, dtype=bool)
    mask[0, 0] = True
    return np.ma.masked_array(X, mask)


def _with_missing(X):
    frame = _frame(X).astype("Float64")
    frame.iloc[0, 0] = pd.NA
    return frame


def _memory_map(X):
    handle, path = tempfile.mkstemp(suffix=".npy")
    os.close(handle)
    np.save(path, X)
    mapped = np.load(path, mmap_mode="r")
    os.remove(path)  # the map keeps it
    return mapped


def _unsorted(X):
    stored = sparse.csr_matrix(X)
    for start, end in zip(stored.indptr[:-1], stored.indptr[1:], strict=True):
        stored.indices[start:end] = stored.indices[start:end][::-1].copy()
        stored.data[start:end] = stored.data[start:end][::-1].copy()
    stored.has_sorted_indices = False
    return stored


def _explicit_zeros(X):
    stored = sparse.csc_matrix(X)
    stored.data[::3] = 0
    return stored


def _in_chunks(X):
    """A table that is read three rows at a time."""
    return pauca.scan(lambda: (X[first : first + 3] for first in range(0, len(X), 3)))


def _npy_file(X):
    """A table in a file, read in chunks; the folder is there as long as the chunks are."""
    folder = tempfile.TemporaryDirectory()
    path = os.path.join(folder.name, "X.npy")
    np.save(path, X)
    chunks = pauca.scan(path)
    weakref.finalize(chunks, folder.cleanup)
    return chunks


def _dates(X):
    frame = _frame(X)
    frame[frame.columns[0]] = pd.Timestamp("2020-01-01")
    return frame


FORMS = {
    "array": lambda X: X,
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "reversed": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "read-only": lambda X: np.frombuffer(X.tobytes()).reshape(X.shape),
    "list": lambda X: X.tolist(),
    "frame": _frame,
    "unnamed frame": pd.DataFrame,
    "polars": lambda X: pl.DataFrame(X, schema=[f"c{j}" for j in range(X.shape[1])], orient="row"),
    "nullable": lambda X: _frame(X).astype("Float64"),
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_array,
    "coo": sparse.coo_matrix,
    "unsorted": _unsorted,
    "memory map": _memory_map,
    "chunks": pauca.scan,
    "three rows at a time": _in_chunks,
    "npy file": _npy_file,
    "objects": lambda X: X.astype(object),
    "longdouble": lambda X: X.astype(np.longdouble),
    "mask without effect": lambda X: np.ma.masked_array(X, False),
}
"""Forms in which the numbers are the same; the judges compare with them."""

ROUNDED_FORMS = {
    "float32": lambda X: X.astype(np.float32),
    "float16": lambda X: X.astype(np.float16),
    "ints": lambda X: np.clip(np.nan_to_num(X), -(2.0**62), 2.0**62).astype(np.int64),
    "bools": lambda X: X > 0,
    "big-endian": lambda X: X.astype(">f8"),
}
"""Forms that change the numbers: ``plain_numbers`` says what they have become."""

STRANGE_FORMS = {
    "masked": _masked,
    "complex": lambda X: X + 1j,
    "text": lambda X: X.astype(str),
    "words": lambda X: np.full(X.shape, "a"),
    "dates": _dates,
    "times": lambda X: np.full(X.shape, np.datetime64("2020-01-01")),
    "durations": lambda X: np.full(X.shape, np.timedelta64(5, "s")),
    "missing": _with_missing,
    "twice the same name": lambda X: _frame(X, ["same"] * X.shape[1]),
    "two of one name": lambda X: _frame(X, ["c0", *(f"c{j}" for j in range(X.shape[1] - 1))]),
    "names of several types": lambda X: _frame(X, [0, *(f"c{j}" for j in range(X.shape[1] - 1))]),
    "names that are no text": lambda X: _frame(X, [(j, None) for j in range(X.shape[1])]),
    "explicit zeros": _explicit_zeros,
    "one dimension": lambda X: X[:, 0],
    "three dimensions": lambda X: X[None],
    "no rows": lambda X: X[:0],
    "no columns": lambda X: X[:, :0],
    "objects of several types": lambda X: np.where(X > 0, X.astype(object), "a"),
    "nothing": lambda X: None,
    "dictionaries": lambda X: [dict(enumerate(row)) for row in X.tolist()],
    "python dates": lambda X: [[datetime.date(2020, 1, 1)] * X.shape[1] for _ in X],
}
"""Forms that may be refused, in pauca's or scikit-learn's words."""

LEVELS = np.array(["low", "middle, or so", "größer", "=1"])


def _thirds(column):
    """Numbers as one of four words, by where they lie among the others."""
    with np.errstate(all="ignore"):
        ranks = np.argsort(np.argsort(np.nan_to_num(column), kind="stable"), kind="stable")
    return LEVELS[ranks * len(LEVELS) // max(1, len(column))]


def _mixed(X):
    """A raw table: every third column is text, every third a category."""
    frame = _frame(X)
    for j, name in enumerate(frame.columns):
        if j % 3 < 2:
            words = pd.Series(_thirds(X[:, j]), dtype=object)
            frame[name] = words.astype("category") if j % 3 else words
    return frame


def _mixed_polars(X):
    return pl.DataFrame({f"c{j}": _thirds(X[:, j]).tolist() if j % 3 == 0 else X[:, j] for j in range(X.shape[1])})


def _gaps(X):
    """A raw table with missing numbers and words."""
    frame = _mixed(X)
    frame.iloc[::4, 0] = None
    frame.iloc[1::3, -1] = None
    return frame


RAW_FORMS = {
    "categories": lambda X: _frame(X).astype("category"),
    "mixed": _mixed,
    "mixed polars": _mixed_polars,
    "gaps": _gaps,
}
"""Raw tables, which the estimators encode."""


def _zeros_added(X):
    """A CSR matrix in which some entries are stored though they are zero."""
    stored = sparse.csr_matrix(np.where(X == 0, 1.0, X))
    stored.data[np.ravel(X == 0)] = 0.0
    return stored


def _every_entry_twice(X):
    """A CSR matrix whose rows hold every column twice; the sum counts."""
    stored = sparse.csr_matrix(X)
    return sparse.csr_matrix((np.repeat(stored.data / 2, 2), np.repeat(stored.indices, 2), stored.indptr * 2), X.shape)


def _long_indices(X):
    stored = sparse.csr_matrix(X)
    stored.indices, stored.indptr = stored.indices.astype(np.int64), stored.indptr.astype(np.int64)
    return stored


def _read_only_csc(X):
    stored = sparse.csc_matrix(X)
    for numbers in (stored.data, stored.indices, stored.indptr):
        numbers.flags.writeable = False
    return stored


def _two_levels(X):
    names = pd.MultiIndex.from_tuples([(f"c{j // 2}", j % 2) for j in range(X.shape[1])])
    return pd.DataFrame(X, columns=names)


TWISTED_FORMS = {
    "zeros added": _zeros_added,
    "every entry twice": _every_entry_twice,
    "long indices": _long_indices,
    "read-only csc": _read_only_csc,
    "lil": sparse.lil_matrix,
    "dia": sparse.dia_matrix,
    "names of two levels": _two_levels,
    "names like numbers": lambda X: _frame(X, [str(j) for j in reversed(range(X.shape[1]))]),
    "names like values": lambda X: _frame(X, ["nan", "None", "True", "", *(f"1e{j}" for j in range(40))][: X.shape[1]]),
    "frame of sparse columns": lambda X: pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(X)),
    "frame of arrow columns": lambda X: _frame(X).convert_dtypes(convert_integer=False, dtype_backend="pyarrow"),
    "lazy frame": lambda X: pl.DataFrame(X, schema=[f"c{j}" for j in range(X.shape[1])], orient="row").lazy(),
}
"""Forms with the same numbers that only ``twists`` draws."""

ALL_FORMS = FORMS | ROUNDED_FORMS | STRANGE_FORMS | RAW_FORMS | TWISTED_FORMS


def encoded_by_names(table, names):
    """The numbers of the columns that a model names: of a raw column, or of ``column=level``; missing ones are NaN."""
    columns = []
    for name in names:
        raw, _, level = name.removesuffix(" is missing").partition("=")
        values = [None if pd.isna(value) else value for value in table[raw].to_list()]
        if name.endswith(" is missing"):
            columns.append([float(value is None) for value in values])
        elif level:
            columns.append([float(_is_level(value, level)) for value in values])
        else:
            columns.append([float("nan") if value is None else float(value) for value in values])
    return np.array(columns).T.reshape(len(table), len(names))


def _is_level(value, level):
    return float(level) == value if isinstance(value, float) else value == level


def draw_form(rng):
    """The name of a form, and whether it is tame."""
    draw = rng.random()
    if draw < 0.45:
        return "array", True
    if draw < 0.85:
        return str(rng.choice(list(FORMS))), True
    if draw < 0.90:
        return str(rng.choice(list(ROUNDED_FORMS))), False
    if draw < 0.95:
        return str(rng.choice(list(RAW_FORMS))), False
    return str(rng.choice(list(STRANGE_FORMS))), False


def plain_numbers(X, form):
    """The numbers that a form holds, as the judges read them; None where it holds none."""
    if form in FORMS or form in TWISTED_FORMS:
        return X
    if form == "explicit zeros":
        return np.asarray(_explicit_zeros(X).toarray())
    if form in ROUNDED_FORMS:
        with np.errstate(all="ignore"):
            return np.asarray(ROUNDED_FORMS[form](X), dtype=float)
    if form in ("names that are no text", "two of one name", "twice the same name", "text"):
        return X
    return None


def draw_target(rng, X, kind):
    """A target of a kind (numbers, counts, amounts, classes, several classes), and whether it is tame."""
    n, d = X.shape
    with np.errstate(all="ignore"):
        columns = np.nan_to_num(X - X.mean(axis=0), nan=0.0, posinf=0.0, neginf=0.0)
        columns = columns / np.where((scale := np.abs(columns).max(axis=0)) > 0, scale, 1.0)
        signal = columns @ (rng.standard_normal(d) * (rng.random(d) < 0.5))
    signal = np.where(np.isfinite(signal), signal, 0.0) + rng.choice([0.0, 0.1, 1.0]) * rng.standard_normal(n)
    if kind == "counts":
        return rng.poisson(np.exp(np.clip(signal, -3, 5))).astype(float), True
    if kind == "amounts":
        return rng.gamma(2.0, np.exp(np.clip(signal, -30, 30))), True
    if kind == "two classes":
        return np.where(signal + rng.logistic(size=n) * 0.3 > 0, 1, 0), True
    if kind == "classes":
        return rng.permutation(4)[np.digitize(signal, [-0.5, 0.5, 1.0])], True
    return _spoiled_numbers(rng, signal)


def _spoiled_numbers(rng, y):
    draw = rng.random()
    if draw < 0.75:
        return y, True
    spoil = [
        lambda: np.full(len(y), 3.7),
        lambda: y + 1e10,
        lambda: y * 10.0 ** rng.uniform(100, 307),
        lambda: y * 10.0 ** rng.uniform(-320, -100),
        lambda: np.round(y),
        lambda: np.where(np.arange(len(y)) == 0, np.nan, y),
        lambda: np.where(np.arange(len(y)) == 0, np.inf, y),
        lambda: np.where(np.arange(len(y)) == 0, 1e200, y),
        lambda: y + 10.0 ** rng.uniform(11, 17),
    ]
    return spoil[int(rng.integers(len(spoil)))](), False


ROW_FORMS = {
    "list": lambda v: v.tolist(),
    "series": pd.Series,
    "nullable": lambda v: pd.Series(v).convert_dtypes(),
    "arrow": lambda v: pd.Series(v).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.Series,
    "objects": lambda v: v.astype(object),
    "mask without effect": lambda v: np.ma.masked_array(v, False),
    "masked": lambda v: np.ma.masked_array(v, np.arange(len(v)) == 0),
    "complex": lambda v: v + 1j,
    "none": lambda v: [None, *v[1:].tolist()],
    "missing": lambda v: pd.Series([pd.NA, *v[1:].tolist()]),
    "of two types": lambda v: np.array(["a", *v[1:].tolist()], dtype=object),
    "categories": lambda v: pd.Series(np.where(v > 0, "high", "low"), dtype="category"),
    "dates": lambda v: np.full(len(v), np.datetime64("2020-01-01")),
    "intervals": lambda v: pd.Series(pd.interval_range(0, 1, len(v))),
    "frame of one name twice": lambda v: pd.DataFrame(np.column_stack([v, v]), columns=["same", "same"]),
    "sparse": lambda v: sparse.csr_matrix(v[:, None].astype(float)),
    "three dimensions": lambda v: v[:, None, None],
    "one too few": lambda v: v[1:],
    "a dictionary": lambda v: dict(enumerate(v.tolist())),
}
"""Forms of what has one value for every row: targets, weights, offsets, groups. From "masked" on all may be refused."""


def draw_weights(rng, n):
    """Row weights or None, and whether they are tame."""
    draw = rng.random()
    if draw < 0.65:
        return None, True
    if draw < 0.8:
        return rng.random(n) + 0.1, True
    hostile = [
        lambda: rng.integers(0, 3, n).astype(float),
        lambda: np.where(np.arange(n) == n // 2, 1.0, 0.0),
        lambda: np.full(n, 1e308),
        lambda: np.full(n, 1e-310),
        lambda: 10.0 ** rng.uniform(-300, 300, n),
        lambda: np.where(np.arange(n) == 0, 1e16, 1.0),
        lambda: np.zeros(n),
        lambda: -np.ones(n),
        lambda: np.where(np.arange(n) == 0, np.nan, 1.0),
        lambda: np.where(np.arange(n) == 0, np.inf, 1.0),
        lambda: np.ones(n + 1),
    ]
    return hostile[int(rng.integers(len(hostile)))](), False
