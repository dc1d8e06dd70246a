"""Guessing which features a search will want next, so that one pass over X serves many steps."""

from __future__ import annotations

import numpy as np


def largest(scores: np.ndarray, count: int) -> np.ndarray:
    """Indices of the ``count`` largest scores, best first, leaving out those of minus infinity."""
    if count < len(scores):
        top = np.argpartition(scores, len(scores) - count)[len(scores) - count :]
    else:
        top = np.arange(len(scores))
    top = top[scores[top] > -np.inf]
    return top[np.argsort(-scores[top], kind="stable")]


def rehearse(slope: np.ndarray, residual: np.ndarray, left: np.ndarray, count: int) -> list[int]:
    """Positions of the features a greedy search among few candidates would take, the first candidate first.

    The best-scored candidates are often near copies of one another: once one of them is in, the others are not
    wanted. So the search is rehearsed on them, by matching pursuit. ``slope`` and ``residual`` are exact, ``left``
    (what the chosen features leave of the candidates' products) may be a guess from a few rows: a wrong guess costs
    time, never the answer.
    """
    root = np.sqrt(np.maximum(residual, np.finfo(float).tiny))
    correlation = np.clip(left / root / root[:, None], -1.0, 1.0)
    score = slope / root
    open_ = np.ones(len(score), dtype=bool)
    taken: list[int] = []
    position = 0
    while len(taken) < min(count, len(score)):
        taken.append(position)
        open_[position] = False
        score = score - correlation[:, position] * score[position]
        position = int(np.argmax(np.where(open_, np.abs(score), -1.0)))
    return taken
