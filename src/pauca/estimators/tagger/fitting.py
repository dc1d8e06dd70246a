"""From checked sequences to a path: wishes, one search or one for every fold, and the models in the user's units."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from joblib import cpu_count, effective_n_jobs

from pauca.estimators.asked import asked_sizes, check_jobs, reach_for
from pauca.estimators.folds import check_folds, make_folds
from pauca.estimators.options import check_callable, check_number, one_of, refusal
from pauca.estimators.selection import Selection, choose_size
from pauca.estimators.tagger.magnitudes import refuse_far_from_zero, refuse_large
from pauca.estimators.tagger.reading import Read
from pauca.estimators.tagger.search import TagTask, by_accuracy, told
from pauca.estimators.tagger.sensors import Idle, idle_sensors, sensor_labels
from pauca.estimators.task import Attempt
from pauca.estimators.watch import Watch
from pauca.estimators.wishes import Wishes
from pauca.methods import FoBa, Forward, resolve
from pauca.path import FOLD_RULES, Budget, Choice, Goal, Method, Path, column_names
from pauca.sequences import Observations
from pauca.sequences.passes import kernels
from pauca.subset.memory import require_memory
from pauca.units import Units

# Scores of first and last labels are taken back by transitions. Where these can hardly move, refits come to rest early:
# with a ridge of 100 they ended 2e-5 above the optimum, with 10,000 no sensor came in. At 10 transitions are near zero.
LARGEST_RIDGE = 10.0

# Refits carry an inverse Hessian and hold copies of it.
SQUARE_ARRAYS = 6

UNITS = ("sensor", "weight")

# Wishes that speak of sensors.
BY_SENSOR = ("groups", "always", "never", "costs", "budget")

# By the size of the gradient: of all rules the only one that asks for no passes of its own.
BY_GRADIENT: dict[str, Method] = {"foba": FoBa(rule="gradient"), "forward": Forward(rule="gradient")}


def check_options(tagger: Any) -> None:
    """Refuse options that cannot be meant, before any data are looked at."""
    asked_sizes(tagger)
    one_of(tagger, "unit", tagger.unit, UNITS)
    one_of(tagger, "choose", tagger.choose, FOLD_RULES)
    check_folds(tagger.cv)
    check_jobs(tagger.n_jobs)
    method_of(tagger)
    for name in ("ridge", "ridge_transitions"):
        if getattr(tagger, name) is not None:
            check_number(tagger, name, getattr(tagger, name))
    if tagger.ridge_transitions is not None and tagger.ridge_transitions > LARGEST_RIDGE:
        wanted = f"a float in the range [0, {LARGEST_RIDGE:g}] or None"
        told = refusal(tagger, "ridge_transitions", wanted, tagger.ridge_transitions)
        raise ValueError(f"{told} To do without transitions, make every position a sequence.")
    check_number(tagger, "tol", tagger.tol)
    check_callable(tagger, "callback", tagger.callback)
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
    asked, n_sequences = asked_sizes(tagger), len(read.bounds) - 1
    if isinstance(asked, tuple | str) and n_sequences < 2:
        raise ValueError("Choosing k needs at least two sequences, to hold some of them out; give k as a number.")
    task, idle = _task(tagger, read, codes, len(classes))
    weights = np.full(n_sequences, 1.0 / n_sequences)
    if asked is None or isinstance(asked, int):
        attempt, goal = task.begin(weights), Goal(asked, float(tagger.tol))
        attempt.advance(goal, _budget(tagger))
        assert attempt.trail is not None
        answer = task.method.answer(attempt.trail, goal)
        return Found(_path(attempt, task, read, classes, answer, None), answer, idle)
    folds = make_folds(tagger.cv, np.zeros(n_sequences), None, weights, classifies=False)
    selection = Selection(task, weights, folds, float(tagger.tol))
    watch = Watch(_budget(tagger), effective_n_jobs(tagger.n_jobs), cpu_count())
    reach = reach_for(asked, len(task.units) - len(task.limits.never))
    choice = choose_size(selection, reach, watch, None, by_accuracy(tagger.choose, task))
    return Found(_path(selection.whole, task, read, classes, choice.chosen, choice), choice.chosen, idle)


def _task(tagger: Any, read: Read, codes: np.ndarray, n_labels: int) -> tuple[TagTask, Idle]:
    n, by_weight, asked = len(codes), tagger.unit == "weight", asked_sizes(tagger)
    n_columns = read.matrix.shape[1]
    said = {name: getattr(tagger, name) for name in BY_SENSOR}
    said["groups"] = sensor_labels(tagger.groups, n_columns, read.names)
    wishes = Wishes(SimpleNamespace(**said, max_per_group=None), n_columns, read.names, f"{UNITS[0]}s")
    largest = max(asked) if isinstance(asked, tuple) else asked if isinstance(asked, int) else None
    _require_memory(n_labels, largest or 0, None if by_weight else wishes.units)
    observations = Observations.gather(read.matrix, read.bounds)
    refuse_large(observations, np.arange(n_columns), read.names)
    varies = observations.varies()
    refuse_far_from_zero(observations, varies, read.names)
    limits = wishes.limits(largest, varies)
    idle = idle_sensors(observations, wishes.units, limits, varies)
    task = TagTask(
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
    return task, idle


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


def _path(attempt: Attempt, task: TagTask, read: Read, classes: np.ndarray, answer: int, choice: Choice | None) -> Path:
    trail, learned = attempt.trail, attempt.design
    n_columns = learned.field.observations.n_columns
    assert trail is not None
    assert trail.stop is not None
    models = {size: told(learned, one, by_weight=task.by_weight) for size, one in attempt.models(answer).items()}
    words = [str(label) for label in classes.tolist()]
    if task.by_weight:
        sensors = column_names(read.names, range(n_columns))
        names = np.array([f"{sensor} -> {word}" for sensor in sensors for word in words], dtype=object)
        return Path(models, trail.events, trail.stop, len(names), names, choice=choice, noun=UNITS[1])
    return Path(
        models,
        trail.events,
        trail.stop,
        n_columns,
        read.names,
        task.units.labels,
        None if task.units.single else task.units.owner,
        words,
        prices=task.limits.price,
        choice=choice,
        noun=UNITS[0],
    )


def _budget(tagger: Any) -> Budget:
    limit = None
    if tagger.time_limit is not None:
        limit = check_number(tagger, "time_limit", tagger.time_limit, positive=True)
    return Budget(limit, tagger.callback)
