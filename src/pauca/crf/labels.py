"""Labels of positions: read from y and checked, encoded as classes, and how well each of them is predicted."""

from __future__ import annotations

import math
from collections.abc import Hashable
from itertools import pairwise
from typing import Any

import numpy as np

from pauca.crf.input import as_list
from pauca.wording import aligned

# More different fractions than this are measurements, not labels.
MOST_FRACTIONS = 20


def read_labels(y: Any, bounds: np.ndarray, lengths: Any) -> list[Hashable]:
    """The labels of all positions, one after the other."""
    if lengths is not None:
        flat = [_plain_label(label) for label in as_list(y, "y must be a list of labels")]
        if len(flat) != bounds[-1]:
            raise ValueError(f"X has {bounds[-1]} positions and y {len(flat)} labels.")
        sequences = [flat[a:b] for a, b in pairwise(bounds)]
    else:
        lists = as_list(y, "y must be a list with the labels of every sequence")
        sequences = [
            [_plain_label(label) for label in as_list(one, f"y[{i}] must be a list of labels")]
            for i, one in enumerate(lists)
        ]
    if len(sequences) != len(bounds) - 1:
        raise ValueError(f"X has {len(bounds) - 1} sequences and y has {len(sequences)}.")
    for i, labels in enumerate(sequences):
        length = bounds[i + 1] - bounds[i]
        if len(labels) != length:
            raise ValueError(f"Sequence {i} has {length} positions and {len(labels)} labels.")
        for t, label in enumerate(labels):
            _check_label(label, i, t)
    return [label for labels in sequences for label in labels]


def encode_labels(labels: list[Hashable]) -> tuple[np.ndarray, np.ndarray]:
    """The classes, sorted where they have an order, and the index of the class of every position."""
    distinct = dict.fromkeys(labels)
    try:
        classes = sorted(distinct)  # type: ignore[type-var]
    except TypeError:
        classes = list(distinct)
    if len(classes) < 2:
        raise ValueError(f"y holds one label only, {classes[0]!r}; a tagger needs at least two.")
    fractions = [label for label in classes if isinstance(label, float) and not label.is_integer()]
    if len(fractions) > MOST_FRACTIONS:
        raise ValueError(
            f"y holds {len(classes)} different numbers, such as {fractions[0]!r}; a tagger predicts classes, not "
            "numbers. Put them into classes first."
        )
    code = {label: i for i, label in enumerate(classes)}
    types = {type(label) for label in classes}
    if types in ({str}, {int}, {bool}, {float}):
        array = np.array(classes)
    else:
        array = np.empty(len(classes), dtype=object)
        array[:] = classes
    return array, np.array([code[label] for label in labels], dtype=np.intp)


def label_table(classes: np.ndarray, truth: list[Hashable], predicted: list[Hashable]) -> list[dict[str, Any]]:
    """Precision, recall, F1 and support of every class of the fit, and of any other label in ``truth``."""
    labels = list(dict.fromkeys([*classes.tolist(), *truth]))
    code = {label: i for i, label in enumerate(labels)}
    true, found = (np.array([code[label] for label in side], dtype=np.intp) for side in (truth, predicted))
    hits = np.bincount(true[true == found], minlength=len(labels))
    n_true, n_found = np.bincount(true, minlength=len(labels)), np.bincount(found, minlength=len(labels))
    return [
        {
            "label": label,
            "precision": float(hits[i] / n_found[i]) if n_found[i] else float("nan"),
            "recall": float(hits[i] / n_true[i]) if n_true[i] else float("nan"),
            "f1": float(2 * hits[i] / (n_found[i] + n_true[i])) if n_found[i] + n_true[i] else float("nan"),
            "support": int(n_true[i]),
        }
        for i, label in enumerate(labels)
    ]


def label_report(records: list[dict[str, Any]]) -> str:
    """The table of labels as text."""
    head = ["label", "precision", "recall", "f1", "support"]
    rows = [
        [str(one["label"]), *(_format_share(one[key]) for key in ("precision", "recall", "f1")), str(one["support"])]
        for one in records
    ]
    total = sum(one["support"] for one in records)
    hits = sum(one["recall"] * one["support"] for one in records if one["support"])
    rows.append(["(all)", "", _format_share(hits / total), "", str(total)])
    return "\n".join(aligned([head, *rows]))


def _format_share(share: float) -> str:
    return "-" if math.isnan(share) else f"{share:.3f}"


def _plain_label(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _check_label(label: Any, sequence: int, t: int) -> None:
    if isinstance(label, str | int):
        return
    if label is None or _is_missing(label):
        raise ValueError(f"Position {t} of sequence {sequence} has no label: y holds {label!r}.")
    try:
        hash(label)
    except TypeError:
        raise TypeError(
            f"Labels must be hashable, such as strings, numbers or tuples; sequence {sequence} has {label!r}."
        ) from None


def _is_missing(label: Any) -> bool:
    """Whether a label is or holds NaN, NaT, NA or a masked value: none of them equals itself."""
    if isinstance(label, tuple):
        return any(map(_is_missing, label))
    try:
        return not label == label  # noqa: PLR0124, SIM201
    except (ArithmeticError, TypeError):  # a signalling decimal NaN; NA
        return True
    except ValueError:  # an array, which is no label for another reason
        return False
