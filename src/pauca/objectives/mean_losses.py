"""Mean losses of coefficients as they are returned, computed once more from the columns they use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from pauca.design import Design
from pauca.losses import Loss


class Coefficients(NamedTuple):
    """A model in the coordinates of a design."""

    features: np.ndarray
    coef: np.ndarray
    """Shape (C, q)."""
    intercept: np.ndarray
    """Shape (C,)."""


def mean_losses(design: Design, loss: Loss, y: np.ndarray, models: Sequence[Coefficients]) -> list[float]:
    """The weighted mean loss of every model, in one pass over the columns that any of them uses.

    Models come from many kinds of steps, each with a value of its own; what is reported depends on none of them.
    """
    totals = np.zeros(len(models))
    for rows, scores in _scores(design, models, at_once=loss.coupled):
        weights = design.weights[rows]
        for number, one in enumerate(scores):
            with np.errstate(over="ignore", invalid="ignore"):
                losses = loss.value(y[..., rows], one) * weights
            totals[number] += float(np.sum(losses, where=weights > 0))  # rows without weight may be anything
    return totals.tolist()


def _scores(
    design: Design, models: Sequence[Coefficients], *, at_once: bool
) -> Iterator[tuple[slice, list[np.ndarray]]]:
    """Scores of all models, shape (C, rows) each, for blocks of rows or, where they are coupled, all ``at_once``."""
    used = np.unique(np.concatenate([one.features for one in models]))
    places = [np.searchsorted(used, one.features) for one in models]
    everything = slice(0, len(design.weights))
    blocks = design.blocks(used) if len(used) else [(everything, np.zeros((len(design.weights), 0)))]
    if at_once and len(used):
        blocks = [(everything, design.columns(used).T)]
    for rows, block in blocks:
        yield (
            rows,
            [one.intercept[:, None] + one.coef @ block[:, place].T for one, place in zip(models, places, strict=True)],
        )
