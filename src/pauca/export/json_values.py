"""Parameters and labels as plain JSON, and back, with their types.

Lists, strings, finite numbers, true, false and null stand for themselves. Anything else is an object whose first field
names its type: ``{"tuple": [..]}``, ``{"set": [..]}``, ``{"dict": [[key, value], ..]}``, ``{"float": "inf"}``,
``{"array": [..], "dtype": ".."}``, and ``{"class": "FoBa", "options": {..}}`` for losses and methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from pauca.export.json_files import JsonReader, ModelFileError, encode_float
from pauca.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES, GammaInverseLink, Multinomial
from pauca.methods import METHODS

C = TypeVar("C", bound=type)

DTYPES: dict[str, np.dtype[Any]] = {
    **{name: np.dtype(name) for name in {np.dtype(code).name for code in "?bhilqBHILQefd"}},
    "str": np.dtype(str),
    "object": np.dtype(object),
}

CLASSES: dict[str, type] = {
    known.__name__: known
    for known in (
        *REGRESSION_LOSSES.values(),
        *CLASSIFICATION_LOSSES.values(),
        GammaInverseLink,
        Multinomial,
        *METHODS.values(),
    )
}
"""Losses and methods that a file may name, by the names of their classes."""


def register_class(loss_or_method: C) -> C:
    """Let model files name a custom loss or method, by the name of its class.

    A model file holds no code, so the class must be registered wherever the file is loaded. Its options must be
    attributes of the same names as the arguments of its constructor, and plain: numbers, strings, lists, tuples, dicts.

    Parameters
    ----------
    loss_or_method : class
        A subclass of ``pauca.losses.Loss``, or a search method.

    Returns
    -------
    class
        The same class, so that this can be used as a decorator.

    Examples
    --------
    >>> from pauca.export import register_class
    >>> from pauca.losses import Huber
    >>> @register_class
    ... class Biweight(Huber):
    ...     '''A custom loss.'''
    """
    name = loss_or_method.__name__
    known = _full_name(CLASSES.get(name, loss_or_method))
    # The same full name is the same class, defined again by a notebook cell that was run twice.
    if known != _full_name(loss_or_method):
        raise ValueError(f"The name {name!r} is already registered for {known}; rename the class.")
    CLASSES[name] = loss_or_method
    return loss_or_method


def _full_name(known: type) -> str:
    return f"{known.__module__}.{known.__qualname__}"


def write_value(value: Any, name: str) -> Any:
    """The plain form of a parameter; ``name`` appears in the error if it has none."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | str):
        return value
    for kind, write in WRITERS:
        if isinstance(value, kind):
            return write(value, name)
    # A series of pandas or polars is treated as an array everywhere; a date has no length.
    if hasattr(value, "to_numpy") and hasattr(value, "__len__"):
        return write_array(value.to_numpy(), name)
    return _write_object(value, name)


def read_value(reader: JsonReader) -> Any:
    """A parameter from its plain form."""
    value = reader.value
    if isinstance(value, list):
        return [read_value(item) for item in reader.items()]
    if not isinstance(value, dict):
        return value
    for tag, read in READERS.items():
        if tag in value:
            return read(reader)
    return reader.fail(f"expected an object with one of the fields {', '.join(map(repr, READERS))}")


def write_array(array: np.ndarray, name: str) -> dict[str, Any]:
    """The plain form of an array of one dimension."""
    dtype = {"U": "str", "O": "object"}.get(array.dtype.kind, array.dtype.name)
    if array.ndim != 1 or dtype not in DTYPES:
        raise ModelFileError(
            f"{name} is an array of {array.ndim} dimensions and dtype {array.dtype}; a model file holds "
            "one-dimensional arrays of numbers, strings or booleans."
        )
    return {"array": [write_value(item, name) for item in array.tolist()], "dtype": dtype}


def read_array(reader: JsonReader) -> np.ndarray:
    """An array from its plain form; every item must be representable in its dtype."""
    fields = reader.fields(["array", "dtype"])
    dtype = fields["dtype"].lookup(DTYPES)
    items = fields["array"].items()
    if dtype.kind == "O":
        return _objects([_read_scalar(item) for item in items])
    array = np.array([_read_as(item, dtype) for item in items], dtype=dtype)
    if dtype.kind == "U" and array.tolist() != [item.value for item in items]:
        fields["array"].fail("strings in an array must not end in NUL")
    return array


def _read_as(item: JsonReader, dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "b":
        return item.flag()
    if dtype.kind == "U":
        return item.string()
    if dtype.kind in "iu":
        return item.integer(int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    number = item.number()
    with np.errstate(over="ignore"):
        converted = dtype.type(number)
    if converted != number and not np.isnan(number):
        item.fail(f"{number!r} is not a number of dtype {dtype}")
    return number


def _objects(values: list[Any]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _write_list(values: Iterable[Any], name: str) -> list[Any]:
    return [write_value(value, name) for value in values]


def _write_dict(mapping: Mapping[Any, Any], name: str) -> dict[str, Any]:
    return {"dict": [[write_value(key, name), write_value(item, name)] for key, item in mapping.items()]}


def _write_object(value: Any, name: str) -> dict[str, Any]:
    class_name = type(value).__name__
    if CLASSES.get(class_name) is type(value):
        options = {key: write_value(item, f"{name}.{key}") for key, item in vars(value).items()}
        return {"class": class_name, "options": options}
    if name in {"loss", "method"}:
        raise ModelFileError(
            f"{name}={value!r} is a custom class, and a model file holds no code. Register it with "
            f"pauca.export.register_class({class_name}), here and wherever the file is loaded."
        )
    raise ModelFileError(f"{name} holds a {class_name}, which cannot be saved; pass a list, a dict or an array.")


def _read_object(reader: JsonReader) -> Any:
    fields = reader.fields(["class", "options"])
    known = fields["class"].lookup(CLASSES)
    options = fields["options"]
    values = {name: read_value(item) for name, item in options.entries().items()}
    try:
        instance = known(**values)
    except (TypeError, ValueError) as error:
        options.fail(str(error))
    if vars(instance).keys() != values.keys():
        options.fail(f"the options of {known.__name__} are {', '.join(map(repr, vars(instance)))}")
    return instance


def _read_dict(reader: JsonReader) -> dict[Any, Any]:
    pairs = [pair.items(2) for pair in reader.fields(["dict"])["dict"].items()]
    found = {_read_scalar(key): read_value(item) for key, item in pairs}
    if len(found) < len(pairs):
        reader.fail("duplicate key")
    return found


def _read_set(reader: JsonReader) -> set[Any]:
    return {_read_scalar(item) for item in reader.fields(["set"])["set"].items()}


def _read_tuple(reader: JsonReader) -> tuple[Any, ...]:
    return tuple(read_value(item) for item in reader.fields(["tuple"])["tuple"].items())


def _read_scalar(reader: JsonReader) -> Any:
    """A value that can be a key or a label: a string, a number, a boolean, None, or a tuple of these."""
    value = reader.value
    if isinstance(value, list):
        reader.fail("expected a single value, got a list")
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        return tuple(_read_scalar(item) for item in reader.fields(["tuple"])["tuple"].items())
    if "float" in value:
        return reader.number()
    return reader.fail("keys and labels must be strings, numbers, booleans, None, or tuples of these")


READERS = {
    "tuple": _read_tuple,
    "set": _read_set,
    "dict": _read_dict,
    "float": JsonReader.number,
    "array": read_array,
    "class": _read_object,
}

WRITERS: list[tuple[Any, Callable[[Any, str], Any]]] = [
    (float, lambda value, name: encode_float(value)),
    (list | range, _write_list),
    (tuple, lambda value, name: {"tuple": _write_list(value, name)}),
    # Sorted, so that saving the same model twice gives the same file.
    (set | frozenset, lambda value, name: {"set": _write_list(sorted(value, key=repr), name)}),
    (Mapping, _write_dict),
    (np.ndarray, write_array),
]
