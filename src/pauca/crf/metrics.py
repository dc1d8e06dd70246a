"""How well each label is found: precision, recall and how often it occurs."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np


def label_table(classes: np.ndarray, truth: list[Hashable], found: list[Hashable]) -> list[dict[str, Any]]:
    """One record for every label of the fit, and for any other that is there in truth."""
    labels = list(dict.fromkeys([*classes.tolist(), *truth]))
    code = {label: place for place, label in enumerate(labels)}
    right, wrong = (np.array([code[label] for label in side], dtype=np.intp) for side in (truth, found))
    hits = np.bincount(right[right == wrong], minlength=len(labels))
    support, said = np.bincount(right, minlength=len(labels)), np.bincount(wrong, minlength=len(labels))
    return [
        {
            "label": label,
            "precision": float(hits[i] / said[i]) if said[i] else float("nan"),
            "recall": float(hits[i] / support[i]) if support[i] else float("nan"),
            "f1": float(2 * hits[i] / (said[i] + support[i])) if said[i] + support[i] else float("nan"),
            "support": int(support[i]),
        }
        for i, label in enumerate(labels)
    ]


def label_report(records: list[dict[str, Any]]) -> str:
    """The table as text."""
    head = ["label", "precision", "recall", "f1", "support"]
    rows = [
        [str(one["label"]), *(_share(one[key]) for key in ("precision", "recall", "f1")), str(one["support"])]
        for one in records
    ]
    total = sum(one["support"] for one in records)
    hits = sum(one["recall"] * one["support"] for one in records if one["support"])
    rows.append(["(all)", "", _share(hits / total), "", str(total)])
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = []
    for row in [head, *rows]:
        numbers = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *numbers]))
    return "\n".join(lines)


def _share(share: float) -> str:
    return "-" if math.isnan(share) else f"{share:.3f}"
