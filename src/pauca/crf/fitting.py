"""From checked sequences to a path: wishes, one search or one for every fold, and the models in the user's units."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import cpu_count, effective_n_jobs

from pauca.checks import ParameterChecks
from pauca.constraints.parsing import Columns, ConstraintParser
from pauca.constraints.units import Units
from pauca.crf.feature_groups import Idle, idle_sensors, sensor_labels
from pauca.crf.input import Read
from pauca.crf.observations import Observations
from pauca.crf.passes import kernels
from pauca.crf.problem import TaggerProblem, by_accuracy, told
from pauca.crf.tables import refuse_far_from_zero, refuse_large
from pauca.estimators.fit_warnings import too_few, unusual_end
from pauca.methods import FoBa, Forward, resolve
from pauca.model_selection.folds import check_cross_validation, make_folds
from pauca.model_selection.selection import Selection, choose_size
from pauca.model_selection.sizes import parse_sizes, size_range_for
from pauca.results.choice import Choice
from pauca.results.path import Path
from pauca.search.driver import Budget, Goal, Method
from pauca.search.parallel import Watch
from pauca.search.problem import SearchRun
from pauca.subsets.base import require_memory
from pauca.wording import column_names, quoted_columns

# Scores of first and last labels are taken back by transitions. Where these can hardly move, refits come to rest early:
# with a ridge of 100 they ended 2e-5 above the optimum, with 10,000 no sensor came in. At 10 transitions are near zero.
LARGEST_RIDGE = 10.0

# Refits carry an inverse Hessian and hold copies of it.
SQUARE_ARRAYS = 6

UNITS = ("sensor", "weight")

# ConstraintParser that speak of sensors.
BY_SENSOR = ("feature_groups", "always", "never", "costs", "budget")

# By the size of the gradient: of all rules the only one that asks for no passes of its own.
BY_GRADIENT: dict[str, Method] = {"foba": FoBa(rule="gradient"), "forward": Forward(rule="gradient")}


def check_options(tagger: Any) -> None:
    """Refuse options that cannot be meant, before any data are looked at."""
    check = ParameterChecks(type(tagger).__name__)
    parse_sizes(check, tagger.k)
    check.one_of("unit", tagger.unit, UNITS)
    check_cross_validation(check, tagger.cv, tagger.selection_rule, tagger.n_jobs)
    method_of(tagger)
    for name in ("ridge", "ridge_transitions"):
        if getattr(tagger, name) is not None:
            ParameterChecks(type(tagger).__name__).number(name, getattr(tagger, name))
    if tagger.ridge_transitions is not None and tagger.ridge_transitions > LARGEST_RIDGE:
        wanted = f"a float in the range [0, {LARGEST_RIDGE:g}] or None"
        told = ParameterChecks(type(tagger).__name__).message("ridge_transitions", wanted, tagger.ridge_transitions)
        raise ValueError(f"{told} To do without transitions, make every position a sequence.")
    ParameterChecks(type(tagger).__name__).number("tol", tagger.tol)
    ParameterChecks(type(tagger).__name__).optional_callable("callback", tagger.callback)
    _budget(tagger)
    given = [name for name in BY_SENSOR if getattr(tagger, name) is not None]
    if tagger.unit == "weight" and given:
        named = ", ".join(map(repr, given))
        raise ValueError(f"{named}: about sensors, and unit='weight' chooses single weights; leave it out.")


def method_of(tagger: Any) -> Method:
    """The method, by name or as an object."""
    named = BY_GRADIENT.get(tagger.method) if isinstance(tagger.method, str) else None
    return named or resolve(tagger.method)


@dataclass(frozen=True)
class Found:
    """What a fit has found."""

    path: Path
    answer: int
    """The size that answers."""
    idle: Idle
    """Sensors that tell nothing new."""


def fit_tagger(tagger: Any, read: Read, classes: np.ndarray, codes: np.ndarray) -> Found:
    """The path, and the size that answers."""
    kernels()  # says what to install before any work
    asked, n_sequences = parse_sizes(ParameterChecks(type(tagger).__name__), tagger.k), len(read.bounds) - 1
    if isinstance(asked, tuple | str) and n_sequences < 2:
        raise ValueError("Choosing k needs at least two sequences, to hold some of them out; give k as a number.")
    problem, idle = _problem(tagger, read, codes, len(classes))
    weights = np.full(n_sequences, 1.0 / n_sequences)
    if asked is None or isinstance(asked, int):
        run, goal = problem.begin(weights), Goal(asked, float(tagger.tol))
        run.advance(goal, _budget(tagger))
        assert run.history is not None
        answer = problem.method.answer(run.history, goal)
        return Found(_path(run, problem, read, classes, answer, None), answer, idle)
    folds = make_folds(tagger.cv, np.zeros(n_sequences), None, weights, classifies=False)
    selection = Selection(problem, weights, folds, float(tagger.tol))
    watch = Watch(_budget(tagger), effective_n_jobs(tagger.n_jobs), cpu_count())
    reach = size_range_for(asked, len(problem.units) - len(problem.limits.never))
    choice = choose_size(selection, reach, watch, None, by_accuracy(tagger.selection_rule, problem))
    return Found(_path(selection.whole, problem, read, classes, choice.chosen, choice), choice.chosen, idle)


def _problem(tagger: Any, read: Read, codes: np.ndarray, n_labels: int) -> tuple[TaggerProblem, Idle]:
    n, by_weight, asked = (
        len(codes),
        tagger.unit == "weight",
        parse_sizes(ParameterChecks(type(tagger).__name__), tagger.k),
    )
    n_columns = read.matrix.shape[1]
    said = {name: getattr(tagger, name) for name in BY_SENSOR}
    said["feature_groups"] = sensor_labels(tagger.feature_groups, n_columns, read.names)
    wishes = ConstraintParser(Columns(n_columns, read.names), **said, noun=f"{UNITS[0]}s")
    largest = max(asked) if isinstance(asked, tuple) else asked if isinstance(asked, int) else None
    _require_memory(n_labels, largest or 0, None if by_weight else wishes.units)
    observations = Observations.gather(read.matrix, read.bounds)
    refuse_large(observations, np.arange(n_columns), read.names)
    varies = observations.varies()
    refuse_far_from_zero(observations, varies, read.names)
    limits = wishes.limits(largest, varies)
    idle = idle_sensors(observations, wishes.units, limits, varies)
    problem = TaggerProblem(
        observations,
        codes,
        method_of(tagger),
        Units.columns(n_columns * n_labels) if by_weight else wishes.units,
        idle.weights(n_labels) if by_weight else idle.left_out(limits),
        by_weight,
        1.0 / n if tagger.ridge is None else float(tagger.ridge),
        1.0 / n if tagger.ridge_transitions is None else float(tagger.ridge_transitions),
        # Folds run at the same time, each in a thread of its own.
        effective_n_jobs(tagger.n_jobs) if asked is None or isinstance(asked, int) else 1,
    )
    return problem, idle


def _require_memory(n_labels: int, size: int, sensors: Units | None) -> None:
    """Refuse more labels than fit: refits hold an inverse over all transitions and weights, and what changes it.

    Of sensors with several columns the smallest are counted; without a size, none: so much it takes in any case.
    """
    columns = size if sensors is None else int(np.sort(sensors.sizes())[:size].sum()) * n_labels
    n_coords = n_labels**2 + 3 * n_labels + columns
    require_memory(
        SQUARE_ARRAYS * 8 * n_coords**2,
        f"A model of {n_labels} labels, with a weight for each of their {n_labels**2} transitions,",
        "Merge rare labels, or leave them out: tens of labels are fine.",
    )


def _path(
    run: SearchRun, problem: TaggerProblem, read: Read, classes: np.ndarray, answer: int, choice: Choice | None
) -> Path:
    history, learned = run.history, run.design
    n_columns = learned.field.observations.n_columns
    assert history is not None
    assert history.stop is not None
    models = {size: told(learned, one, by_weight=problem.by_weight) for size, one in run.models(answer).items()}
    words = [str(label) for label in classes.tolist()]
    if problem.by_weight:
        sensors = column_names(read.names, range(n_columns))
        names = np.array([f"{sensor} -> {word}" for sensor in sensors for word in words], dtype=object)
        return Path(models, history.moves, history.stop, len(names), names, choice=choice, noun=UNITS[1])
    return Path(
        models,
        history.moves,
        history.stop,
        n_columns,
        read.names,
        problem.units.labels,
        None if problem.units.single else problem.units.owner,
        words,
        prices=problem.limits.price,
        choice=choice,
        noun=UNITS[0],
    )


def _budget(tagger: Any) -> Budget:
    limit = None
    if tagger.time_limit is not None:
        limit = ParameterChecks(type(tagger).__name__).number("time_limit", tagger.time_limit, positive=True)
    return Budget(limit, tagger.callback)


def tag_remarks(tagger: Any, idle: Idle) -> Iterator[str]:
    """What the user should know of a fit and cannot see from its numbers; as a rule nothing."""
    path, model = tagger.path_, tagger.path_[tagger.k_]
    by_weight, n_labels = tagger.unit == "weight", len(tagger.classes_)
    names = (tagger.names_ if len(tagger.names_) else None) if path.group_labels is None else path.group_labels
    chosen = set((model.units // n_labels if by_weight else model.units).tolist())
    copies = sorted(copy for copy, sensor in idle.copies.items() if sensor in chosen)
    if idle.constant:
        yield f"Constant sensors were left out: {quoted_columns(names, idle.constant)}."
    if copies:
        yield f"Sensors that are copies of chosen ones were left out: {quoted_columns(names, copies)}."
    n_units = path.n_features if path.group_labels is None else len(path.group_labels)
    if isinstance(tagger.k, numbers.Integral) and tagger.k_ < tagger.k:
        yield from too_few(
            int(tagger.k),
            tagger.k_,
            path.stop,
            f"{tagger.unit}s",
            n_units,
            {name: getattr(tagger, name) for name in BY_SENSOR},
        )
    if path.choice is not None and path.choice.chosen == 0:
        yield "No sensor helps on sequences held out: transitions alone do as well as can be told."
    n_idle = (len(idle.constant) + len(idle.copies)) * (n_labels if by_weight else 1)
    yield from unusual_end(path, n_units - n_idle)
    if not model.converged:
        yield "The refit did not come to its end: the weights may be off. Set a larger ridge."
