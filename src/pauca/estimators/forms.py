"""Things in place of a table that are taken for one, and can be told at a glance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def refuse_no_table(X: Any) -> None:
    """Refuse lazy frames, and texts that nobody has turned into numbers."""
    if hasattr(X, "collect_schema") and not hasattr(X, "shape"):
        raise TypeError("X is a lazy frame; call its collect() first.")
    if len(getattr(X, "shape", (0,))) == 1 and isinstance(X, Iterable) and isinstance(next(iter(X), None), str):
        raise ValueError(
            "X holds texts, and must be a table of numbers. Turn them into one first, such as with scikit-learn's "
            "CountVectorizer or TfidfVectorizer."
        )
