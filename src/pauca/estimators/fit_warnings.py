"""What was noteworthy about a fit, in sentences for the one warning that tells of it."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np

from pauca.constraints.parsing import ConstraintParser
from pauca.design import Design
from pauca.results.path import Path
from pauca.search.history import History
from pauca.search.stop import Stop
from pauca.wording import quoted_columns


def remarks(estimator: Any, history: History, design: Design, wishes: ConstraintParser) -> Iterator[str]:
    """What the user should know of a fit and cannot see from its numbers; as a rule nothing."""
    path = estimator.path_
    names, constant = path.column_names, np.flatnonzero(~design.usable)
    if len(constant):
        yield f"Constant columns were left out: {quoted_columns(names, constant)}."
    if history.dependent and history.stop is not Stop.PERFECT:
        unit_names = names if wishes.units.single else wishes.units.labels
        yield (
            f"Columns that are linear combinations of chosen ones were left out: "
            f"{quoted_columns(unit_names, history.dependent)}."
        )
    if isinstance(estimator.k, numbers.Integral) and estimator.k_ < estimator.k:
        yield from fewer(estimator, wishes.noun, len(wishes.units))
    if path.choice is not None and path.choice.chosen == 0:
        yield path.choice.message
    yield from ended(path, int(wishes.units.any(design.usable).sum()))
    if not path[estimator.k_].converged:
        yield (
            "The refit did not come to its end: the coefficients may be off. Standardise the columns, leave out those "
            "that are nearly alike, or set a ridge."
        )
    if path[estimator.k_].diverged:
        yield (
            "Some coefficients have grown large and would grow on, as where some rows can be told apart without error. "
            "Predictions can be used, but the sizes of coefficients, and probabilities near 0 or 1, say little. "
            "For coefficients that can be read set a ridge, such as ridge=1e-3 on standardised columns."
        )


def ended(path: Path, n_usable: int) -> Iterator[str]:
    """What is odd about where a search ended that could have gone on to ``n_usable``."""
    if path.choice is not None and path.stop is Stop.SIZE:
        chosen, largest = path.choice.chosen, int(path.choice.sizes.max())
        if 0 < chosen == largest < n_usable and len(path.choice.sizes) > 1:
            yield f"The largest size that was compared, {largest}, was chosen; a range of larger ones may score better."
    if path.stop is Stop.INTERRUPTED:
        yield f"The search was interrupted; the models up to size {max(path.sizes)} were kept."


def fewer(estimator: Any, noun: str, n_units: int) -> Iterator[str]:
    """Why there are fewer than were asked for; nothing where the user has asked for that too."""
    asked, stop = f"k={estimator.k} {noun} were asked for, but", estimator.path_.stop
    limits = [name for name in ("budget", "max_per_group") if getattr(estimator, name, None) is not None]
    if stop is Stop.LIMITS and limits:
        given = " and ".join(f"{name}={getattr(estimator, name)}" for name in limits)
        yield f"{asked} the search ended at {estimator.k_}: no other fits in {given}. Allow more or ask for fewer."
    elif stop in {Stop.LIMITS, Stop.EXHAUSTED}:
        left_out = "" if estimator.never is None else " 'never' leaves out the others."
        yield f"{asked} only {estimator.k_} of {n_units} can be used together.{left_out}"
    elif stop is Stop.NO_GAIN:
        do = "Ask for fewer" if getattr(estimator, "bounds", None) is None else "Loosen the bounds or ask for fewer"
        yield f"{asked} the search ended at {estimator.k_}: no other lowers the objective. {do}."
