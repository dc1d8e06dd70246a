"""Model files: a fitted estimator as plain JSON, and back. Nothing in a file is ever evaluated."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from pauca.export.json_files import JsonReader, ModelFileError, write_atomically
from pauca.export.json_values import read_array, read_value, write_array, write_value
from pauca.export.path_file import FIELDS, read_path, write_path
from pauca.export.table_file import read_data_summary, read_encoding, write_data_summary, write_encoding
from pauca.results.path import Path
from pauca.version import __version__
from pauca.wording import column_names

FORMAT = "pauca model"

# Raised whenever files change. A parameter that is added later must be filled in here with its default for files of an
# earlier version.
VERSION = 5

# No more is read of a file: a model has a few kB, or as many MB as it has million names of columns.
MOST_BYTES = 1 << 28

# Fields on the table of a fit, of which a table of numbers with names has none.
TABLE_FIELDS = ("table", "names_for_display", "first_index", "data", "known_part", "dispersion")

# Parameters that only matter while fitting and are code: they are not saved and come back as None.
NOT_SAVED = ("callback",)

# The same, unless they are a number or a string (cv=5, scoring="r2").
NOT_SAVED_AS_OBJECT = ("cv", "scoring")

# The same where they are a function; its results are on the path.
NOT_SAVED_AS_FUNCTION = ("feature_groups",)

C = TypeVar("C", bound=type)


@dataclass(frozen=True)
class Kind:
    """A class of estimators that can be saved, or a class of paths, which has neither arrays nor numbers.

    An estimator has ``path_`` and ``k_``, and ``_set_size(size)`` sets what follows from them. ``arrays`` are the
    fitted attributes that are one-dimensional arrays, such as ``classes_``; ``numbers`` those that are finite numbers.
    After loading, ``_after_loading()`` sets all other fitted attributes, and raises ValueError or TypeError if the
    file is inconsistent.
    """

    name: str
    estimator: type
    arrays: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()


KINDS: dict[str, Kind] = {}
"""By name. Estimators register themselves when they are imported, and ``pauca.loading`` imports them all."""


def register_estimator(name: str, arrays: tuple[str, ...] = (), numbers: tuple[str, ...] = ()) -> Callable[[C], C]:
    """A decorator for classes of estimators, which lets ``save`` and ``pauca.load`` handle them.

    Parameters
    ----------
    name : str
        The kind of model in the file, as a rule the name of the class.
    arrays : tuple of str, default=()
        Fitted attributes that are one-dimensional arrays, such as ``classes_``.
    numbers : tuple of str, default=()
        Fitted attributes that are finite numbers.

    Returns
    -------
    callable
        The decorator, which returns the class unchanged.

    Examples
    --------
    >>> from pauca import SparseRegressor
    >>> from pauca.export import register_estimator
    >>> @register_estimator("MyRegressor")
    ... class MyRegressor(SparseRegressor):
    ...     '''A custom estimator.'''
    """

    def register(estimator: C) -> C:
        KINDS[name] = Kind(name, estimator, arrays, numbers)
        return estimator

    return register


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator, or the path of ``select``, to a file for ``pauca.load``.

    An existing file is replaced once the new one is complete.

    Parameters
    ----------
    estimator : estimator or Path
    path : str or path-like

    Raises
    ------
    ModelFileError
        If a parameter cannot be saved, or the class is not registered.

    Examples
    --------
    >>> import os, tempfile, pauca
    >>> model = pauca.SparseRegressor(k=1).fit([[1, 0], [0, 1], [2, 2]], [1, 0, 2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pauca.export.save(model, os.path.join(folder, "model.json"))
    ...     os.listdir(folder)
    ['model.json']
    """
    document = write_document(estimator)
    read_document(document)  # A file that could not be read again is never written.
    content = _bytes({**document, "checksum": _checksum(document)})
    if len(content) > MOST_BYTES:
        raise ModelFileError(f"the file would have more than {MOST_BYTES >> 20} MB, and could not be loaded")
    write_atomically(path, content)


def load(path: str | os.PathLike[str]) -> Any:
    """Load a fitted model that ``model.save(path)`` wrote, or a path of ``select``.

    Nothing in the file is evaluated, so it may come from anyone. Every field is checked: nothing may be missing,
    unknown or out of range, lengths must agree, numbers must be finite, and the checksum must match (delete the field
    ``checksum`` to edit a file by hand).

    Returns
    -------
    estimator
        Fitted: predictions, ``summary()``, ``path_`` and ``at(size)`` are those of the saved model. Parameters that
        are code are None: ``callback``, a splitter in ``cv``, a function in ``scoring``. A function in
        ``feature_groups`` comes back as the groups it returned. With ``warm_start`` the next fit starts from scratch.
        If a path of ``select`` was saved, that path.

    Raises
    ------
    ModelFileError
        If the file is not a complete and valid model; the message says what is wrong, and where.

    Examples
    --------
    >>> import tempfile, os, pauca
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = pauca.SparseRegressor(k=3).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "model.json"))
    ...     again = pauca.load(os.path.join(folder, "model.json"))
    >>> again.path_.names(3), bool((again.predict(X) == model.predict(X)).all())
    (['bmi', 'bp', 's5'], True)
    """
    with open(path, "rb") as file:
        too_large = os.fstat(file.fileno()).st_size > MOST_BYTES
        content = b"" if too_large else file.read(MOST_BYTES + 1)  # what comes through a pipe has no size
    try:
        if too_large or len(content) > MOST_BYTES:
            raise ModelFileError(f"not a model file: it has more than {MOST_BYTES >> 20} MB")
        return read_document(_parse(content))
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from error
    except RecursionError:
        raise ModelFileError(f"{os.fspath(path)}: invalid file: lists and objects are nested too deeply") from None


def write_document(estimator: Any) -> dict[str, Any]:
    """A fitted estimator, or a path, as lists, dicts, strings and numbers."""
    kind = _kind_of(estimator)
    document = {"format": FORMAT, "version": VERSION, "pauca_version": __version__, "kind": kind.name}
    if isinstance(estimator, Path):
        return {**document, **write_path(estimator)}
    document["parameters"] = {
        name: write_value(None if _is_code(name, value) else value, name)
        for name, value in estimator.get_params(deep=False).items()
        if name not in NOT_SAVED
    }
    document["arrays"] = {name: write_array(getattr(estimator, name), name) for name in kind.arrays}
    if kind.numbers:
        document["numbers"] = {name: float(getattr(estimator, name)) for name in kind.numbers}
    document |= {"size": int(estimator.k_), **write_path(estimator.path_)}
    return document | _write_table(estimator)


def read_document(document: Any) -> Any:
    """A fitted estimator, or a path, from what ``write_document`` returned."""
    top = JsonReader(document)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        top.fail(f"not a model file: the field 'format' must be {FORMAT!r}")
    _check_version(JsonReader(document.get("version"), "version"))
    holds_path = _is_path(document.get("kind"))
    fields = top.fields(
        [
            "format",
            "version",
            "pauca_version",
            "kind",
            *(() if holds_path else ("parameters", "arrays", "size")),
            *FIELDS,
        ],
        optional=[
            *("custom", "certificate", "statistics", "forced", "identifiers", "checksum"),
            *(() if holds_path else ("numbers", *TABLE_FIELDS)),
        ],
    )
    fields["pauca_version"].string()
    if "checksum" in fields:
        _check_checksum(fields["checksum"], document)
    kind = fields["kind"].lookup(KINDS)
    if holds_path:
        return kind.estimator(**vars(read_path(fields)))
    estimator = _unfitted(kind, fields["parameters"])
    for name, reader in fields["arrays"].fields(kind.arrays).items():
        setattr(estimator, name, read_array(reader))
    for name, reader in fields.get("numbers", JsonReader({}, "numbers")).fields(kind.numbers).items():
        setattr(estimator, name, reader.finite())
    estimator.path_ = read_path(fields)
    _read_table(estimator, fields)
    return _restore(estimator, fields["size"])


def _kind_of(estimator: Any) -> Kind:
    for kind in KINDS.values():
        if kind.estimator is type(estimator):
            return kind
    raise ModelFileError(
        f"{type(estimator).__name__} cannot be saved; classes that can be saved are {', '.join(sorted(KINDS))}."
    )


def _is_path(kind: Any) -> bool:
    """Whether files of a kind hold a path and no estimator."""
    known = KINDS.get(kind) if isinstance(kind, str) else None
    return known is not None and issubclass(known.estimator, Path)


def _is_code(name: str, value: Any) -> bool:
    """Whether the value of a parameter is code, which is not saved."""
    if name in NOT_SAVED_AS_FUNCTION:
        return callable(value)
    return name in NOT_SAVED_AS_OBJECT and not isinstance(value, int | str)


def _unfitted(kind: Kind, reader: JsonReader) -> Any:
    """An estimator with the parameters of a file, not fitted."""
    estimator = kind.estimator()
    names = [name for name in estimator.get_params(deep=False) if name not in NOT_SAVED]
    return estimator.set_params(**{name: read_value(value) for name, value in reader.fields(names).items()})


def _write_table(estimator: Any) -> dict[str, Any]:
    """How the table of a fit became numbers, where it was not plain numbers with names of their own."""
    document: dict[str, Any] = {}
    encoder = getattr(estimator, "encoder_", None)
    if encoder is not None:
        document["table"] = write_encoding(encoder.encoding_)
    elif estimator.path_.column_names is not None and not hasattr(estimator, "feature_names_in_"):
        document["names_for_display"] = True
    if hasattr(estimator, "first_index_"):
        document["first_index"] = estimator.first_index_
    data_summary = estimator._data_summary() if hasattr(estimator, "_data_summary") else None
    if data_summary is not None:
        document["data"] = write_data_summary(data_summary)
    if getattr(estimator, "known_part_", None) is not None:
        document["known_part"] = estimator.known_part_
    if getattr(estimator, "dispersion_", None) is not None:
        document["dispersion"] = estimator.dispersion_
    return document


def _read_table(estimator: Any, fields: dict[str, JsonReader]) -> None:
    """Set what the fit has learned of its table: the columns as they were given, and how they became numbers."""
    path = estimator.path_
    estimator.n_features_in_ = path.n_features
    if "table" in fields:
        if not hasattr(estimator, "categorical_features"):
            fields["table"].fail("this kind of model has no raw table")
        encoding = read_encoding(fields["table"])
        if encoding.names != column_names(path.column_names, range(path.n_features)):
            fields["table"].fail("the columns of the table do not agree with the features")
        estimator._set_encoder(encoding)
        estimator.path_ = replace(path, encoding=encoding)
        estimator.n_features_in_ = len(encoding.columns)
        if encoding.has_names:
            estimator.feature_names_in_ = np.array(encoding.raw_names, dtype=object)
    elif path.column_names is not None and not ("names_for_display" in fields and fields["names_for_display"].flag()):
        estimator.feature_names_in_ = path.column_names
    if "first_index" in fields:
        estimator.first_index_ = fields["first_index"].integer(0, 1)
    if "known_part" in fields:
        estimator.known_part_ = fields["known_part"].lookup({"offset": "offset", "exposure": "exposure"})
    if "dispersion" in fields:
        estimator.dispersion_ = fields["dispersion"].finite()
    if "data" in fields:
        estimator.path_ = replace(estimator.path_, data_summary=read_data_summary(fields["data"], path.n_features))


def _restore(estimator: Any, size: JsonReader) -> Any:
    """Set all fitted attributes that follow from the path."""
    path = estimator.path_
    if size.integer(0, path.n_features) not in path:
        size.fail(f"there is no model of size {size.value}")
    try:
        estimator._after_loading()
        counts = None if path.data_summary is None else path.data_summary.class_counts
        if counts is not None and len(counts) != len(getattr(estimator, "classes_", ())):
            raise ValueError("data: the rows are counted by other classes than the model has")
        estimator._set_size(size.value)
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"the file is inconsistent: {error}") from error
    except MemoryError:
        raise ModelFileError(f"features.count: not enough memory for {path.n_features} coefficients") from None
    return estimator


def _check_version(reader: JsonReader) -> None:
    version = reader.integer(1, 2**53)
    if version > VERSION:
        reader.fail(
            f"the file has format version {version}, but this pauca ({__version__}) reads version {VERSION}; "
            "update pauca"
        )
    if version < VERSION:
        reader.fail(
            f"the file has format version {version}, from before the first release, but this pauca ({__version__}) "
            f"reads version {VERSION}; fit and save the model again"
        )


def _check_checksum(reader: JsonReader, document: dict[str, Any]) -> None:
    if reader.string() != _checksum({name: value for name, value in document.items() if name != "checksum"}):
        reader.fail("the file was changed after it was saved; if you edited it on purpose, delete the field 'checksum'")


def _checksum(document: dict[str, Any]) -> str:
    """A checksum of the content, independent of the order and layout of the fields."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()


def _bytes(document: dict[str, Any]) -> bytes:
    """The text of a file: a line for every field, and for every model."""
    try:
        return _text(document, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate in a name, which JSON can escape and UTF-8 cannot encode
        return _text(document, ensure_ascii=True).encode("ascii")


def _text(document: dict[str, Any], *, ensure_ascii: bool) -> str:
    def dump(value: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, allow_nan=False)

    lines = []
    for name, value in document.items():
        models = ",\n".join(f"  {dump(model)}" for model in value) if name == "models" else ""
        lines.append(f" {dump(name)}: " + (f"[\n{models}\n ]" if models else dump(value)))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _parse(content: bytes) -> Any:
    try:
        return json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_unique_fields,
            parse_constant=_not_finite,
            parse_float=_finite_float,
        )
    except ModelFileError:
        raise
    except UnicodeDecodeError as error:
        raise ModelFileError(f"not a text file in UTF-8: {error.reason} at byte {error.start}") from None
    except ValueError as error:
        raise ModelFileError(f"not valid JSON, or truncated: {error}") from None


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ModelFileError("an object has the same field twice")
    return found


def _finite_float(digits: str) -> float:
    number = float(digits)
    return number if abs(number) < float("inf") else _not_finite(digits)


def _not_finite(digits: str) -> Any:
    raise ModelFileError(f"{digits[:40]} is not a finite number")
