"""Positions that are described by attributes, as users of CRFsuite have them: dicts, or lists of words."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse


def has_attributes(item: Any) -> bool:
    """Whether a position is described by attributes and not by numbers in columns."""
    words = isinstance(item, list | tuple | set | frozenset) and all(isinstance(word, str) for word in item)
    return isinstance(item, Mapping) or (words and len(item) > 0)


def is_blank(item: Any) -> bool:
    """Whether a position is a list of no words."""
    return isinstance(item, list | tuple | set | frozenset) and not item


def encode(sequences: Iterable[Sequence[Any]], known: np.ndarray | None) -> tuple[Any, np.ndarray]:
    """Attributes as a CSR matrix, and the names of its columns.

    A number or truth value has a column of its own; a string, and each of a list of strings, stands for a column of the
    name ``attribute=string`` that is one. Attributes of an attribute that is a dict are called ``attribute:inner``.
    Words of a position that is a list are columns that are one. What a position names several times is added up, as
    CRFsuite does: a word that is there twice counts two.

    Parameters
    ----------
    sequences : iterable of sequences of positions
    known : ndarray or None
        Names of the columns there are; attributes without one are passed over. None makes a column of every attribute,
        in the order in which they are met.
    """
    columns: dict[str, int] = {} if known is None else {str(name): j for j, name in enumerate(known)}
    ends, indices, values = [0], [], []
    for place, sequence in enumerate(sequences):
        for t, item in enumerate(sequence):
            for name, value in _attributes(item, place, t):
                column = columns.get(name) if known is not None else columns.setdefault(name, len(columns))
                if column is not None and value:
                    indices.append(column)
                    values.append(value)
            ends.append(len(indices))
    shape = len(ends) - 1, len(columns)
    matrix = sparse.csr_matrix((np.array(values, dtype=np.float64), np.array(indices, dtype=np.int32), ends), shape)
    matrix.sum_duplicates()
    return matrix, np.array(list(columns), dtype=object) if known is None else known


def _attributes(item: Any, place: int, t: int) -> Iterator[tuple[str, float]]:
    """Names and values of the attributes of a position."""
    if not has_attributes(item):
        if is_blank(item):
            return
        raise TypeError(
            f"Position {t} of sequence {place} is {item!r}, and others are dicts of attributes or lists of words."
        )
    if isinstance(item, Mapping):
        yield from _named(item, "", place, t)
    else:
        yield from ((word, 1.0) for word in item)


def _named(item: Mapping[Any, Any], before: str, place: int, t: int) -> Iterator[tuple[str, float]]:
    """Names and values of the attributes of a dict, whose names begin with ``before``."""
    for key, value in item.items():
        name = f"{before}{key}"
        if isinstance(value, str):
            yield f"{name}={value}", 1.0
        elif isinstance(value, list | tuple | set | frozenset) and all(isinstance(word, str) for word in value):
            yield from ((f"{name}={word}", 1.0) for word in value)
        elif isinstance(value, Mapping):
            yield from _named(value, f"{name}:", place, t)
        elif isinstance(value, numbers.Real | np.bool_) and math.isfinite(number := _as_float(value)):
            yield name, number
        else:
            leave_out = " Leave it out where it has no value." if value is None else ""
            raise ValueError(
                f"The attribute {name!r} of position {t} in sequence {place} is {value!r}; attributes are finite "
                f"numbers, truth values, strings, lists of strings or dicts of attributes.{leave_out}"
            )


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer of hundreds of digits
        return math.inf
