"""Settings and labels as plain JSON, and back, with their types.

Lists, strings, finite numbers, true, false and null stand for themselves. All else is an object with one telling field:
``{"tuple": [..]}``, ``{"set": [..]}``, ``{"dict": [[key, value], ..]}``, ``{"float": "inf"}``,
``{"array": [..], "dtype": ".."}``, and ``{"part": "FoBa", "options": {..}}`` for losses and methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from pauca.export.files import ModelFileError
from pauca.export.json_reader import JsonReader, written
from pauca.export.registry import PARTS, is_part

DTYPES: dict[str, np.dtype[Any]] = {
    **{name: np.dtype(name) for name in {np.dtype(code).name for code in "?bhilqBHILQefd"}},
    "str": np.dtype(str),
    "object": np.dtype(object),
}


def write_value(value: Any, name: str) -> Any:
    """The plain form of a setting; ``name`` says which, where it has none."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | str):
        return value
    for kind, write in WRITERS:
        if isinstance(value, kind):
            return write(value, name)
    # A series of pandas or polars is read as an array everywhere; a date has no length.
    if hasattr(value, "to_numpy") and hasattr(value, "__len__"):
        return write_array(value.to_numpy(), name)
    return _write_part(value, name)


def read_value(place: JsonReader) -> Any:
    """A setting from its plain form."""
    value = place.value
    if isinstance(value, list):
        return [read_value(item) for item in place.items()]
    if not isinstance(value, dict):
        return value
    for tag, read in READERS.items():
        if tag in value:
            return read(place)
    return place.refuse(f"an object here has one of the fields {', '.join(map(repr, READERS))}")


def write_array(array: np.ndarray, name: str) -> dict[str, Any]:
    """The plain form of an array of one dimension."""
    dtype = {"U": "str", "O": "object"}.get(array.dtype.kind, array.dtype.name)
    if array.ndim != 1 or dtype not in DTYPES:
        raise ModelFileError(
            f"{name} is an array of {array.ndim} dimensions and dtype {array.dtype}; a model file holds arrays of one "
            "dimension, of numbers, strings or truth values."
        )
    return {"array": [write_value(item, name) for item in array.tolist()], "dtype": dtype}


def read_array(place: JsonReader) -> np.ndarray:
    """An array from its plain form; what its dtype cannot hold as it is written is refused."""
    fields = place.fields(["array", "dtype"])
    dtype = fields["dtype"].one_of(DTYPES)
    items = fields["array"].items()
    if dtype.kind == "O":
        return _objects([_read_scalar(item) for item in items])
    array = np.array([_read_as(item, dtype) for item in items], dtype=dtype)
    if dtype.kind == "U" and array.tolist() != [item.value for item in items]:
        fields["array"].refuse("an array of strings cannot hold strings that end in NUL")
    return array


def _read_as(item: JsonReader, dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "b":
        return item.flag()
    if dtype.kind == "U":
        return item.text()
    if dtype.kind in "iu":
        return item.integer(int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    number = item.real()
    with np.errstate(over="ignore"):
        held = dtype.type(number)
    if held != number and not np.isnan(number):
        item.refuse(f"{number!r} is not a number of dtype {dtype}")
    return number


def _objects(values: list[Any]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _write_list(values: Iterable[Any], name: str) -> list[Any]:
    return [write_value(value, name) for value in values]


def _write_dict(mapping: Mapping[Any, Any], name: str) -> dict[str, Any]:
    return {"dict": [[write_value(key, name), write_value(item, name)] for key, item in mapping.items()]}


def _write_part(value: Any, name: str) -> dict[str, Any]:
    if is_part(value):
        options = vars(value)
        return {
            "part": type(value).__name__,
            "options": {key: write_value(item, f"{name}.{key}") for key, item in options.items()},
        }
    made = type(value).__name__
    if name in {"loss", "method"}:
        raise ModelFileError(
            f"{name}={value!r} is of your own making, and a model file holds no code. Make its class known with "
            f"pauca.export.register_part({made}), here and wherever the file is loaded."
        )
    raise ModelFileError(f"{name} holds a {made}, which a model file cannot; give it as a list, a dict or an array.")


def _read_part(place: JsonReader) -> Any:
    fields = place.fields(["part", "options"])
    part = fields["part"].one_of(PARTS)
    options = fields["options"]
    values = {name: read_value(item) for name, item in options.fields(options.value).items()}
    try:
        made = part(**values)
    except (TypeError, ValueError) as error:
        options.refuse(str(error))
    if vars(made).keys() != values.keys():
        options.refuse(f"the options of {part.__name__} are {', '.join(map(repr, vars(made)))}")
    return made


def _read_dict(place: JsonReader) -> dict[Any, Any]:
    pairs = [pair.items(2) for pair in place.fields(["dict"])["dict"].items()]
    found = {_read_scalar(key): read_value(item) for key, item in pairs}
    if len(found) < len(pairs):
        place.refuse("a key is there twice")
    return found


def _read_set(place: JsonReader) -> set[Any]:
    return {_read_scalar(item) for item in place.fields(["set"])["set"].items()}


def _read_tuple(place: JsonReader) -> tuple[Any, ...]:
    return tuple(read_value(item) for item in place.fields(["tuple"])["tuple"].items())


def _read_scalar(place: JsonReader) -> Any:
    """A value that can be a key or a label: a string, a number, a truth value, None, or a tuple of such."""
    value = place.value
    if isinstance(value, list):
        place.refuse("a single value is wanted; got a list")
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        return tuple(_read_scalar(item) for item in place.fields(["tuple"])["tuple"].items())
    if "float" in value:
        return place.real()
    return place.refuse("keys and labels are strings, numbers, truth values, None, or tuples of such")


READERS = {
    "tuple": _read_tuple,
    "set": _read_set,
    "dict": _read_dict,
    "float": JsonReader.real,
    "array": read_array,
    "part": _read_part,
}

WRITERS: list[tuple[Any, Callable[[Any, str], Any]]] = [
    (float, lambda value, name: written(value)),
    (list | range, _write_list),
    (tuple, lambda value, name: {"tuple": _write_list(value, name)}),
    # In one order, so that one model makes one file.
    (set | frozenset, lambda value, name: {"set": _write_list(sorted(value, key=repr), name)}),
    (Mapping, _write_dict),
    (np.ndarray, write_array),
]
