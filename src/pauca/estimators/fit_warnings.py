"""What to warn of after a fit: columns that were left out, sizes that were not reached, models that mean little."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pauca.constraints.units import Units
from pauca.design import ChunkedDesign, Design
from pauca.estimators.fit import FittedPath
from pauca.estimators.identifiers import in_the_model
from pauca.estimators.settings import SearchSettings
from pauca.methods.exact import STOPPED_BEFORE, Exact
from pauca.results.instructions import GO_ON, NAMELESS, STALLED
from pauca.results.path import Path
from pauca.runs.run import Stop
from pauca.tolerances import DEPENDENT_BELOW
from pauca.wording import column_names, quoted, quoted_columns

SEPARABLE = (
    "The data are separable, at least in part, so some coefficients diverge: their sizes mean little, and "
    "probabilities are far too close to 0 and 1, so that new rows may be predicted badly. Set a ridge, such as "
    "ridge=0.001, or let cross-validation choose one with ridge='auto'."
)
NOT_CONVERGED = (
    "The solver did not converge: the coefficients may be inaccurate. Standardise the columns, leave out nearly "
    "equal ones, or set a ridge."
)

FEWEST_ROWS = 5
"""Rows for every coefficient, below which categories of many levels make a model that few columns hide."""

EVENTS_PER_COEFFICIENT = 5
"""Events below which estimates are often far off: Vittinghoff and McCulloch (2007), who relax the usual 10."""

RARE = 0.25
"""The share of events from which few events are few rows, which everyone sees."""


def fit_warnings(
    settings: SearchSettings,
    fitted: FittedPath,
    path: Path,
    divergence: Callable[[int], str],
    events: tuple[int, str],
) -> Iterator[str]:
    """Warnings about a fit, for the model that was chosen on its finished ``path``; as a rule none.

    ``divergence`` says what there is to say of coefficients that diverge. ``events`` are how many rows have the rarer
    of two outcomes, as a number and in words.
    """
    size, constraints, history = fitted.found.answer, fitted.constraints, fitted.found.run.history
    units, model = constraints.units, path[size]
    assert history is not None
    constant = [] if fitted.usable.all() else column_names(path.column_names, np.flatnonzero(~fitted.usable))
    if fitted.table is not None:
        marked = fitted.table.only_marked(fitted.usable)
        if marked:
            marks = quoted([f"{name} is missing" for name in marked])
            yield f"The numbers of {quoted(marked)} are constant, so only {marks} can be used."
        constant = [*fitted.table.constant, *(name for name in constant if name not in marked)]
        yield from fitted.table.warnings(model.support)
    yield from in_the_model(path.column_names, path.identifiers_in(size))
    if constant:
        yield f"Constant columns were left out: {quoted(constant)}."
    combined: list[int] = []
    if history.dependent and history.stop is not Stop.PERFECT:
        combined = combinations_of_chosen(fitted.found.run.design, units, model.units, history.dependent)
        if combined:
            names = quoted_columns(path.column_names if units.single else units.labels, combined)
            yield f"Columns that are linear combinations of chosen ones were left out: {names}."
    if (constant or combined) and path.is_nameless:
        yield NAMELESS
    n_rows = int(np.count_nonzero(fitted.found.run.design.weights))
    yield from many_coefficients(path, size, n_rows)
    yield from few_events(*events, n_rows, len(model.support))
    if isinstance(settings.sizes, int):
        yield from too_few(settings.sizes, size, path.stop, constraints.noun, len(units), settings.constraints)
        history = fitted.found.run.history
        stalled = history is not None and 0 < len(history.moves) == history.n_repeated
        yield from ended_by_time(settings.sizes, size, path.stop, constraints.noun, STALLED if stalled else GO_ON)
    if path.choice is not None and (path.choice.chosen == 0 or path.choice.ended):
        yield path.choice.message
    yield from unusual_end(path, len(fitted.problem.limits.candidates(units.any(fitted.usable))))
    reason = None if path.certificate is None else path.certificate.reason
    if isinstance(settings.method, Exact) and reason not in {None, STOPPED_BEFORE}:
        yield f"Exact has proved nothing, and the models are those of Exchange: {reason}."
    if not model.converged:
        yield NOT_CONVERGED
    if model.diverged:
        if isinstance(settings.sizes, int) and path.stop is Stop.PERFECT and size < settings.sizes:
            yield f"The search ended at {size}, where nothing is left to gain without a ridge."
        yield divergence(size)


def many_coefficients(path: Path, size: int, n_rows: int) -> Iterator[str]:
    """A warning where few columns of a raw table have so many levels that rows are scarce."""
    columns = path.raw_columns(size)
    n_terms = len(path[size].support)
    if not columns or n_terms < 2 * len(columns) or n_terms * FEWEST_ROWS <= n_rows:
        return
    most = max(columns, key=lambda column: len(column.terms))
    if len(columns) == 1:
        have = f"The chosen column, {most.name!r}, has {n_terms} coefficients, on {n_rows} rows"
    else:
        alone = f"{most.name!r} alone has {len(most.terms)}"
        have = f"The {len(columns)} chosen columns have {n_terms} coefficients, on {n_rows} rows ({alone})"
    yield (
        f"{have}: new rows may be predicted far worse than these. Combine levels that are rare or alike, or leave such "
        "columns out."
    )


def few_events(n_events: int, which: str, n_rows: int, n_coefficients: int) -> Iterator[str]:
    """A warning where rare events are too few for the coefficients of the model, however many rows there are."""
    if n_events >= RARE * n_rows or n_events >= EVENTS_PER_COEFFICIENT * max(1, n_coefficients):
        return
    have = f", for {n_coefficients} coefficient{'' if n_coefficients == 1 else 's'}" if n_coefficients else ""
    fewer = ", or ask for fewer features" if n_coefficients > 1 else ""
    yield (
        f"There {'is' if n_events == 1 else 'are'} only {which} among {n_rows} rows{have}: with fewer than "
        f"{EVENTS_PER_COEFFICIENT} for each coefficient, neither the coefficients nor the choice of features can be "
        f"trusted, however many other rows there are. Collect more of them{fewer}."
    )


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
    """Why a model has fewer units than ``k``; nothing where the user has requested that too."""
    if found >= k:
        return
    requested = f"k={k} {noun} were requested, but"
    limits = [
        f"{name}={constraints[name]}" for name in ("budget", "max_per_group") if constraints.get(name) is not None
    ]
    if stop is Stop.LIMITS and limits:
        yield (
            f"{requested} the search ended at {found}: no other fits in {' and '.join(limits)}. "
            "Allow more or ask for fewer."
        )
    elif stop in {Stop.LIMITS, Stop.EXHAUSTED}:
        left_out = "" if constraints.get("never") is None else " 'never' leaves out the others."
        yield f"{requested} only {found} of {n_units} can be used together.{left_out}"
    elif stop is Stop.NO_GAIN:
        hint = "Ask for fewer" if constraints.get("bounds") is None else "Loosen the bounds or ask for fewer"
        yield f"{requested} the search ended at {found}: no other lowers the objective. {hint}."


def ended_by_time(k: int, found: int, stop: Stop, noun: str, go_on: str = "") -> Iterator[str]:
    """That time is why a model has another number of units than ``k``: fewer, or more where a search removes them.

    ``go_on`` is how the search can be taken up again.
    """
    if stop is Stop.TIME and found != k:
        yield f"k={k} {noun} were requested, but the time limit was reached at {found}. Allow more time{go_on}."
