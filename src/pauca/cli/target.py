"""What is foretold: numbers or classes, and how that is guessed."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pauca.cli.files import nameless, polars
from pauca.cli.messages import BadData, BadUsage, Voice
from pauca.cli.options import LOSSES_FOR_CLASSES
from pauca.cli.tables import tidied

if TYPE_CHECKING:
    import polars as pl

# So few different whole numbers are classes rather than counts, if each is there a few times.
MOST_CLASSES = 10
ROWS_OF_A_CLASS = 5


@dataclass(frozen=True, eq=False)
class Target:
    """The values to foretell, and as what."""

    name: str
    y: np.ndarray
    classifies: bool


def make_target(column: pl.Series, options: Namespace, voice: Voice) -> Target:
    """The target of a fit; a guess at its kind is said aloud."""
    pl = polars()
    if column.dtype.is_temporal():
        raise BadData(f"the target {column.name!r} holds dates or times; turn them into numbers first")
    column = tidied(column.to_frame(), "the target")[column.name]
    values = nameless(column).unique().sort()
    if values.len() < 2:
        raise BadData(f"the target {column.name!r} is {values[0]!r} in every row: there is nothing to foretell")
    classifies = _classifies(column, values, options, voice)
    if not classifies:
        return Target(column.name, column.cast(pl.Float64).to_numpy(), classifies=False)
    if column.dtype.is_float():
        if not _whole(values):
            raise BadData(f"the target {column.name!r} holds numbers with fractions; for these say --task regression")
        column = column.cast(pl.Int64)
    return Target(column.name, np.array(column.to_list()), classifies=True)


def _classifies(column: pl.Series, values: pl.Series, options: Namespace, voice: Voice) -> bool:
    pl = polars()
    text = column.dtype == pl.String
    by_loss = None if options.loss is None else options.loss in LOSSES_FOR_CLASSES
    if options.task is not None:
        asked = options.task == "classification"
        if by_loss is not None and by_loss != asked:
            raise BadUsage(
                f"--loss {options.loss} is for {'classes' if by_loss else 'numbers'}, and --task says otherwise"
            )
        by_loss = asked
    if by_loss is False and text:
        raise BadData(
            f"the target {column.name!r} holds text, such as {values[0]!r}, and cannot be foretold as a number"
        )
    if by_loss is not None:
        return by_loss
    if text or column.dtype == pl.Boolean:
        voice.note(f"classification, since {column.name!r} holds {'text' if text else 'true and false'}")
        return True
    few = values.len() <= MOST_CLASSES and values.len() * ROWS_OF_A_CLASS <= column.len() and _whole(values)
    if few:
        voice.note(
            f"classification, since {column.name!r} holds {values.len()} different whole numbers; --task regression "
            "takes them as numbers"
        )
    else:
        voice.note(f"regression, since {column.name!r} holds numbers")
    return few


def _whole(values: pl.Series) -> bool:
    return values.dtype.is_integer() or bool((values == values.round()).all())
