"""Model files: a fitted estimator as plain JSON, and back. Nothing in a file is ever evaluated."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from pauca.export.files import ModelFileError, write_whole
from pauca.export.json_reader import JsonReader
from pauca.export.path_file import FIELDS, read_path, write_path
from pauca.export.raw_table import read_raw_table, write_raw_table
from pauca.export.registry import KINDS, Kind, kind_of
from pauca.export.values import read_array, read_value, write_array, write_value
from pauca.results.path import Path
from pauca.version import __version__

FORMAT = "pauca model"

# Raised whenever files change. A reader knows its own version and all before it; a setting that is added later must be
# filled in here with its default for files of an earlier version.
VERSION = 2

# Code that only matters while fitting: it is left out of files and comes back as None.
LEFT_OUT = ("callback",)

# The same where it is code, such as a splitter, and not a number or a name.
LEFT_OUT_AS_CODE = ("cv", "scoring")

# The same where it is a function; its answers are on the path.
LEFT_OUT_AS_FUNCTION = ("feature_groups",)


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator, or the path of ``select``, to a file.

    What was there is replaced once the new file is whole.
    """
    document = write_document(estimator)
    read_document(document)  # A file that could not be read again is never written.
    write_whole(path, _bytes({**document, "checksum": _checksum(document)}))


def load(path: str | os.PathLike[str]) -> Any:
    """The fitted model that ``model.save(path)`` has written, or the path of ``select``.

    Nothing in the file is evaluated, whoever wrote it. Everything is checked: that nothing is missing, unknown or out
    of range, that lengths agree, that numbers are finite, and the checksum, if there is one (delete that field to edit
    a file by hand).

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    estimator
        Fitted: predictions, ``summary()``, ``path_`` and ``at(size)`` are those of the model that was saved. Only
        ``callback`` is None, ``feature_groups`` that were a function are what it said, and with ``warm_start`` the
        next fit starts afresh. Where a path of ``select`` was saved, that path.

    Raises
    ------
    ModelFileError
        If the file is not a whole and sound model; the message says what is wrong, and where.

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
        content = file.read()
    try:
        return read_document(_parsed(content))
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from error
    except RecursionError:
        raise ModelFileError(f"{os.fspath(path)}: lists and objects are nested too deeply") from None


def write_document(estimator: Any) -> dict[str, Any]:
    """A fitted estimator, or a path, as lists, dicts, strings and numbers."""
    kind = kind_of(estimator)
    if isinstance(estimator, Path):
        head = {"format": FORMAT, "version": VERSION, "pauca": __version__, "kind": kind.name}
        return {**head, **write_path(estimator)}
    settings = {
        name: write_value(None if _is_left_out(name, value) else value, name)
        for name, value in estimator.get_params(deep=False).items()
        if name not in LEFT_OUT
    }
    return {
        "format": FORMAT,
        "version": VERSION,
        "pauca": __version__,
        "kind": kind.name,
        "settings": settings,
        "labels": {name: write_array(getattr(estimator, name), name) for name in kind.labels},
        **({"numbers": {name: float(getattr(estimator, name)) for name in kind.numbers}} if kind.numbers else {}),
        "size": int(estimator.k_),
        **write_path(estimator.path_),
        **({"raw_table": write_raw_table(estimator.raw_table_)} if hasattr(estimator, "raw_table_") else {}),
    }


def read_document(document: Any) -> Any:
    """A fitted estimator, or a path, from what ``write_document`` made of it."""
    top = JsonReader(document)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        top.refuse(f"this is not a model file: it does not begin with the format {FORMAT!r}")
    _check_version(JsonReader(document.get("version"), "version"))
    of_estimators = () if _is_path(document.get("kind")) else ("settings", "labels", "size")
    fields = top.fields(
        ["format", "version", "pauca", "kind", *of_estimators, *FIELDS],
        optional=["own", "checksum", *(("numbers", "raw_table") if of_estimators else ())],
    )
    fields["pauca"].text()
    if "checksum" in fields:
        _check_checksum(fields["checksum"], document)
    kind = fields["kind"].one_of(KINDS)
    if not of_estimators:
        return kind.estimator(**vars(read_path(fields)))
    estimator = _with_settings(kind, fields["settings"])
    for name, place in fields["labels"].fields(kind.labels).items():
        setattr(estimator, name, read_array(place))
    numbers = fields.get("numbers", JsonReader({}, "numbers")).fields(kind.numbers)
    for name, place in numbers.items():
        setattr(estimator, name, place.number())
    estimator.path_ = read_path(fields)
    if "raw_table" in fields:
        estimator.raw_table_ = read_raw_table(fields["raw_table"])
    return _restored(estimator, fields["size"])


def _is_left_out(name: str, value: Any) -> bool:
    """Whether a setting is code that no file holds."""
    if name in LEFT_OUT_AS_FUNCTION:
        return callable(value)
    return name in LEFT_OUT_AS_CODE and not isinstance(value, int | str)


def _is_path(kind: Any) -> bool:
    """Whether files of a kind hold a path and no estimator."""
    known = KINDS.get(kind) if isinstance(kind, str) else None
    return known is not None and issubclass(known.estimator, Path)


def _with_settings(kind: Kind, place: JsonReader) -> Any:
    """An estimator with the settings of a file, not fitted."""
    estimator = kind.estimator()
    names = [name for name in estimator.get_params(deep=False) if name not in LEFT_OUT]
    return estimator.set_params(**{name: read_value(value) for name, value in place.fields(names).items()})


def _restored(estimator: Any, size: JsonReader) -> Any:
    """Set all fitted attributes that follow from the path."""
    path = estimator.path_
    if size.integer(0, path.n_features) not in path:
        size.refuse(f"there is no model of size {size.value}")
    estimator.n_features_in_ = path.n_features
    if path.column_names is not None:
        estimator.feature_names_in_ = path.column_names
    try:
        estimator._restored()
        estimator._choose(size.value)
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"parts of the file do not go together: {error}") from error
    except MemoryError:
        raise ModelFileError(f"features.count: there is no memory for {path.n_features} coefficients") from None
    return estimator


def _check_version(place: JsonReader) -> None:
    version = place.integer(1, 2**53)
    if version > VERSION:
        place.refuse(
            f"the file is of format version {version}, and this pauca ({__version__}) knows versions up to {VERSION}; "
            "update pauca"
        )
    if version < VERSION:
        place.refuse(
            f"the file is of format version {version}, from before the first release, and this pauca ({__version__}) "
            f"reads version {VERSION}; fit and save the model again"
        )


def _check_checksum(place: JsonReader, document: dict[str, Any]) -> None:
    if place.text() != _checksum({name: value for name, value in document.items() if name != "checksum"}):
        place.refuse("the file was changed after it was written; delete this field if that was meant")


def _checksum(document: dict[str, Any]) -> str:
    """A checksum of what is said, however it is laid out."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()


def _bytes(document: dict[str, Any]) -> bytes:
    """The text of a file: a line for every field, and for every model."""
    try:
        return _text(document, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:  # half of a surrogate pair in a name, which JSON can spell out and UTF-8 cannot
        return _text(document, ensure_ascii=True).encode("ascii")


def _text(document: dict[str, Any], *, ensure_ascii: bool) -> str:
    def dump(value: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, allow_nan=False)

    lines = []
    for name, value in document.items():
        models = ",\n".join(f"  {dump(model)}" for model in value) if name == "models" else ""
        lines.append(f" {dump(name)}: " + (f"[\n{models}\n ]" if models else dump(value)))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_without_repetition,
            parse_constant=_refuse_number,
            parse_float=_finite,
        )
    except ModelFileError:
        raise
    except UnicodeDecodeError as error:
        raise ModelFileError(f"this is not a text file in UTF-8: {error.reason} at byte {error.start}") from None
    except ValueError as error:
        raise ModelFileError(f"this is not JSON, or it was cut short: {error}") from None


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ModelFileError("an object has two fields of one name")
    return found


def _finite(digits: str) -> float:
    number = float(digits)
    return number if abs(number) < float("inf") else _refuse_number(digits)


def _refuse_number(digits: str) -> Any:
    raise ModelFileError(f"{digits[:40]} is not a finite number")
