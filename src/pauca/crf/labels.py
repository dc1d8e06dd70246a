"""Labels as users bring them, checked against the sequences they belong to."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise
from typing import Any

import numpy as np

from pauca.crf.tables import items

# Labels that are so many fractions are measurements.
MOST_FRACTIONS = 20


def read_labels(y: Any, bounds: np.ndarray, lengths: Any) -> list[Hashable]:
    """The labels of all positions, one after the other."""
    if lengths is not None:
        flat = [_label(label) for label in items(y, "y must be a list of labels")]
        if len(flat) != bounds[-1]:
            raise ValueError(f"X has {bounds[-1]} positions and y {len(flat)} labels.")
        found = [flat[a:b] for a, b in pairwise(bounds)]
    else:
        sequences = enumerate(items(y, "y must be a list with the labels of every sequence"))
        found = [[_label(label) for label in items(one, f"y[{i}] must be a list of labels")] for i, one in sequences]
    if len(found) != len(bounds) - 1:
        raise ValueError(f"X has {len(bounds) - 1} sequences and y has {len(found)}.")
    for place, labels in enumerate(found):
        length = bounds[place + 1] - bounds[place]
        if len(labels) != length:
            raise ValueError(f"Sequence {place} has {length} positions and {len(labels)} labels.")
        for t, label in enumerate(labels):
            _check_label(label, place, t)
    return [label for labels in found for label in labels]


def make_classes(labels: list[Hashable]) -> tuple[np.ndarray, np.ndarray]:
    """The different labels, in order where they have one, and the number of the label of every position."""
    seen = dict.fromkeys(labels)
    try:
        classes = sorted(seen)  # type: ignore[type-var]
    except TypeError:
        classes = list(seen)
    if len(classes) < 2:
        raise ValueError(f"y holds one label only, {classes[0]!r}: there is nothing to tell apart.")
    fractions = [label for label in classes if isinstance(label, float) and not label.is_integer()]
    if len(fractions) > MOST_FRACTIONS:
        raise ValueError(
            f"y holds {len(classes)} different numbers, such as {fractions[0]!r}; labels are told apart, not foretold "
            "as numbers. Put them into classes first."
        )
    code = {label: place for place, label in enumerate(classes)}
    kinds = {type(label) for label in classes}
    if kinds in ({str}, {int}, {bool}, {float}):
        array = np.array(classes)
    else:
        array = np.empty(len(classes), dtype=object)
        array[:] = classes
    return array, np.array([code[label] for label in labels], dtype=np.intp)


def _label(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _check_label(label: Any, place: int, t: int) -> None:
    if isinstance(label, str | int):
        return
    if label is None or _is_missing(label):
        raise ValueError(f"Position {t} of sequence {place} has no label: y holds {label!r}.")
    try:
        hash(label)
    except TypeError:
        raise TypeError(
            f"Labels must be hashable, such as strings, numbers or tuples; sequence {place} has {label!r}."
        ) from None


def _is_missing(label: Any) -> bool:
    """Whether a label is, or holds, NaN of any kind, NaT, NA or what is masked: none is the same as itself."""
    if isinstance(label, tuple):
        return any(map(_is_missing, label))
    try:
        return not label == label  # noqa: PLR0124, SIM201
    except (ArithmeticError, TypeError):  # a decimal NaN that signals; NA
        return True
    except ValueError:  # an array, which is no label for another reason
        return False
