"""Few coordinates of any smooth convex objective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pauca.methods import resolve
from pauca.own.objective import Objective, Pair, Problem
from pauca.own.subset import OwnSubset
from pauca.path import Budget, Event, Goal, Method, Path, Progress, run
from pauca.units import Limits


def select(
    objective: Objective | Callable[[np.ndarray], float],
    k: int | None = None,
    *,
    method: str | Method = "foba",
    gradient: Callable[[np.ndarray], np.ndarray] | None = None,
    n_coords: int | None = None,
    free: Any = None,
    groups: Any = None,
    start: Any = None,
    floor: float | None = None,
    curvature: Callable[[np.ndarray], np.ndarray] | None = None,
    always: Any = None,
    never: Any = None,
    costs: Any = None,
    budget: float | None = None,
    tol: float = 0.0,
    time_limit: float | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    names: Any = None,
    resume: Path | None = None,
) -> Path:
    """Few coordinates."""
    posed: Any = objective
    if gradient is not None:
        assert n_coords is not None
        posed = Pair(posed, gradient, n_coords)
    problem = Problem(posed, free=free, groups=groups, start=start, floor=floor, curvature=curvature)
    limits = Limits(tuple(always or ()), tuple(never or ()), None if costs is None else np.asarray(costs), budget)
    subset = OwnSubset.start(problem, limits)
    return follow(
        subset, resolve(method), Goal(k, tol), Budget(time_limit, callback), names, resume.events if resume else ()
    )


def follow(
    subset: OwnSubset,
    method: Method,
    goal: Goal,
    budget: Budget | None = None,
    names: Any = None,
    resume: Sequence[Event] = (),
) -> Path:
    """Run a method on a subset and make a path of what it found."""
    problem = subset.problem
    trail = run(method, subset, goal, budget, resume)
    assert trail.stop is not None
    sizes = sorted(trail.best)
    models = subset.finish([trail.best[size] for size in sizes], sizes.index(method.answer(trail, goal)))
    return Path(
        dict(zip(sizes, models, strict=True)),
        trail.events,
        trail.stop,
        problem.n_coords - len(problem.free),
        None if names is None else np.asarray(names, dtype=object),
        problem.units.labels,
        None if problem.units.single else problem.units.owner,
        prices=subset.limits.price,
        free=problem.free,
        floor=problem.floor,
    )
