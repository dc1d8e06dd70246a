"""What a user should know of a fit and cannot see from its numbers: the text of its one warning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pauca.constraints.parsing import ConstraintParser
from pauca.constraints.units import Units
from pauca.design import ChunkedDesign, Design
from pauca.estimators.settings import SearchSettings
from pauca.results.path import Path
from pauca.runs.run import SearchRun, Stop
from pauca.tolerances import DEPENDENT_BELOW
from pauca.wording import column_names, quoted, quoted_columns

SEPARABLE = (
    "The data are separable, at least in part, so some coefficients diverge. Predictions can be used, but the sizes of "
    "coefficients, and probabilities near 0 or 1, mean little. For coefficients that can be read set a ridge, such as "
    "ridge=1e-3 on standardised columns."
)
NOT_CONVERGED = (
    "The solver did not converge: the coefficients may be inaccurate. Standardise the columns, leave out nearly "
    "equal ones, or set a ridge."
)


def fit_warnings(
    path: Path,
    size: int,
    settings: SearchSettings,
    run: SearchRun,
    usable: np.ndarray,
    constraints: ConstraintParser,
    divergence: Callable[[int], str],
    empty: Sequence[str] = (),
) -> Iterator[str]:
    """Warnings about a fit, for the model of the chosen ``size``; as a rule none. ``usable`` columns vary.

    ``empty`` are columns of a raw table that hold a single level, which became no column of numbers.

    ``divergence`` says what there is to say of coefficients that diverge.
    """
    history, units = run.history, constraints.units
    assert history is not None
    constant = [*empty, *column_names(path.column_names, np.flatnonzero(~usable))]
    if constant:
        yield f"Constant columns were left out: {quoted(constant)}."
    if history.dependent and history.stop is not Stop.PERFECT:
        found = combinations_of_chosen(run.design, units, path[size].units, history.dependent)
        if found:
            names = quoted_columns(path.column_names if units.single else units.labels, found)
            yield f"Columns that are linear combinations of chosen ones were left out: {names}."
    if isinstance(settings.sizes, int) and size < settings.sizes:
        yield from too_few(settings.sizes, size, path.stop, constraints.noun, len(units), settings.constraints)
    if path.choice is not None and (path.choice.chosen == 0 or path.choice.ended):
        yield path.choice.message
    yield from unusual_end(path, int(units.any(usable).sum()))
    if not path[size].converged:
        yield NOT_CONVERGED
    if path[size].diverged:
        yield divergence(size)


def combinations_of_chosen(design: Design, units: Units, chosen: np.ndarray, met: Sequence[int]) -> list[int]:
    """Those of the units ``met`` whose columns are linear combinations of the chosen ones, to rounding.

    A search meets them on its way to the largest size, where they depend on more than the chosen model has.
    """
    others = [unit for unit in met if unit not in set(chosen.tolist())]
    if not (len(chosen) and others) or isinstance(design, ChunkedDesign):  # chunks are not read again for a warning
        return []
    scale = np.sqrt(design.weights)
    basis = np.linalg.qr((design.columns(units.of(chosen)) * scale).T)[0]
    found = []
    for unit in others:
        columns = design.columns(units.of([unit])) * scale
        left = columns - (columns @ basis) @ basis.T
        if np.all(np.einsum("ij,ij->i", left, left) < DEPENDENT_BELOW):
            found.append(unit)
    return found


def unusual_end(path: Path, n_usable: int) -> Iterator[str]:
    """Warnings about where a search ended that could have gone on to ``n_usable``."""
    if path.choice is not None and path.stop is Stop.SIZE:
        chosen, largest = path.choice.chosen, int(path.choice.sizes.max())
        if 0 < chosen == largest < n_usable and len(path.choice.sizes) > 1:
            yield f"The largest size that was compared, {largest}, was chosen; a range of larger ones may score better."
    if path.stop is Stop.INTERRUPTED:
        yield f"The search was interrupted; the models up to size {max(path.sizes)} were kept."


def too_few(k: int, found: int, stop: Stop, noun: str, n_units: int, constraints: Mapping[str, Any]) -> Iterator[str]:
    """Why a model has fewer units than ``k``; nothing where the user has asked for that too."""
    asked_for = f"k={k} {noun} were asked for, but"
    limits = [
        f"{name}={constraints[name]}" for name in ("budget", "max_per_group") if constraints.get(name) is not None
    ]
    if stop is Stop.LIMITS and limits:
        yield (
            f"{asked_for} the search ended at {found}: no other fits in {' and '.join(limits)}. "
            "Allow more or ask for fewer."
        )
    elif stop in {Stop.LIMITS, Stop.EXHAUSTED}:
        left_out = "" if constraints.get("never") is None else " 'never' leaves out the others."
        yield f"{asked_for} only {found} of {n_units} can be used together.{left_out}"
    elif stop is Stop.NO_GAIN:
        hint = "Ask for fewer" if constraints.get("bounds") is None else "Loosen the bounds or ask for fewer"
        yield f"{asked_for} the search ended at {found}: no other lowers the objective. {hint}."
