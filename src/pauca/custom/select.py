"""Few coordinates of any smooth convex objective."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pauca.custom.fit_warnings import remarks
from pauca.custom.gradient_check import check_objective
from pauca.custom.objective import CustomProblem, Objective
from pauca.custom.options import (
    Said,
    check_callable,
    check_flag,
    check_generator,
    check_number,
    check_size,
    limits,
    posed,
)
from pauca.custom.path import Selected
from pauca.custom.subset import CustomSubset
from pauca.methods import resolve
from pauca.results.path import Path
from pauca.search.driver import Budget, Goal, Method, Progress, run
from pauca.search.history import Move
from pauca.warnings import PaucaWarning

# The empty models of two runs on one objective differ by no more than this share.
SAME_WITHIN = 1e-6


def select(
    objective: Objective | Callable[[np.ndarray], float],
    k: int | None,
    *,
    method: str | Method = "foba",
    gradient: Callable[[np.ndarray], np.ndarray] | None = None,
    n_coords: int | None = None,
    free: Any = None,
    groups: Any = None,
    start: Any = None,
    curvature: Callable[[np.ndarray], np.ndarray] | None = None,
    floor: float | None = None,
    always: Any = None,
    never: Any = None,
    costs: Any = None,
    budget: float | None = None,
    tol: float = 0.0,
    time_limit: float | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    names: Any = None,
    resume: Path | None = None,
    check: bool = True,
    random_state: Any = 0,
) -> Selected:
    """Minimise a function of your own over few of its coordinates.

    The methods are those of the estimators; candidates are ranked by what gradients tell, and refits by quasi-Newton
    steps decide (Liu, Fujimaki and Ye 2014 state forward-backward selection for any such function).

    Parameters
    ----------
    objective : object or callable
        A smooth convex function: an object with ``n_coords``, ``value(w)`` and ``gradient(w)``, and whatever else
        ``pauca.custom.objective.Objective`` lists; or ``value`` itself, with ``gradient`` and ``n_coords`` given too.
        A value of infinity, or one that is not a number, says that ``w`` lies outside of the domain.
    k : int or None
        The number of coordinates, or groups, to choose; None goes on as long as each gains at least ``tol``. Where
        there is no model of so many, a ``PaucaWarning`` says why.
    method : {"foba", "forward", "exchange", "backward"} or object, default="foba"
        How to search; see ``pauca.methods``.
    gradient : callable, default=None
        ``gradient(w)``, where ``objective`` is a function.
    n_coords : int, default=None
        Length of ``w``, where ``objective`` is a function.
    free : list, default=None
        Coordinates that are always in and never counted, by index or name. This, the next four and ``names`` go before
        what the objective says of them.
    groups : array of shape (n_coords,), default=None
        Labels; coordinates of one label are chosen together. Those of free coordinates are ignored.
    start : array of shape (n_coords,), default=None
        Where to begin, zero outside of ``free``; None for zeros. The value must be finite there.
    curvature : callable, default=None
        ``curvature(w)``: the diagonal of the Hessian, or an estimate. It ranks candidates.
    floor : float, default=None
        A value that the objective is never below, 0 for losses: then the path tells the share explained.
    always, never : list, default=None
        Coordinates, by index or name, or labels of groups, that must or must not be in.
    costs : list or dict, default=None
        What every coordinate costs (of free ones too, which are never paid), or every group, in the order of the sorted
        labels; as a dict by index or name, or by label. Candidates are then ranked by gain per cost.
    budget : float, default=None
        The most that a model may cost in all.
    tol : float, default=0.0
        The least decrease of the objective that is worth a coordinate.
    time_limit : float, default=None
        Seconds after which the search ends with what it has; the first move is always made.
    callback : callable, default=None
        Called with a ``Progress`` after every move; the search ends if it returns True.
    names : list of str, default=None
        Names of the coordinates, free ones included. ``path.names(size)`` and messages have them.
    resume : Path, default=None
        The path of an earlier call with the same objective, method and wishes, to be taken up where it ended.
    check : bool, default=True
        Whether the objective is tried first: its gradient against differences of its value, kinks at zero, and
        convexity, at random sparse points. It costs about two hundred values.
    random_state : int, Generator or None, default=0
        Where the random points come from.

    Returns
    -------
    Path
        ``path[5].support`` holds the chosen coordinates of the model of five, ``path[5].coef`` their values,
        ``path[5].free`` those of the free ones and ``path.parameters(5)`` the whole vector. ``path.save(file)`` writes
        it down, and ``pauca.load(file)`` reads it.

    Examples
    --------
    >>> import numpy as np
    >>> from pauca import select
    >>> rng = np.random.default_rng(0)
    >>> A = rng.normal(size=(100, 12))
    >>> b = A[:, 3] - 2 * A[:, 7] + 0.1 * rng.normal(size=100)
    >>> value = lambda w: np.sum((A @ w - b) ** 2) / 200
    >>> path = select(value, k=2, gradient=lambda w: A.T @ (A @ w - b) / 100, n_coords=12)
    >>> path[2].support
    array([3, 7])
    """
    asked = posed(objective, gradient, n_coords)
    for name, function in (("curvature", curvature), ("callback", callback)):
        check_callable(name, function)
    said = Said(asked, free=free, groups=groups, start=start, floor=floor, names=names)
    problem = CustomProblem(
        asked,
        free=said.free,
        groups=said.groups,
        start=said.start,
        floor=said.floor,
        curvature=curvature,
        names=said.names,
    )
    size = check_size(k)
    allowed = limits(said, problem, size, always=always, never=never, costs=costs, budget=budget)
    goal = Goal(size, check_number("tol", tol))
    seconds = None if time_limit is None else check_number("time_limit", time_limit, positive=True)
    chosen = resolve(method)
    rng = check_generator(random_state)
    if check_flag("check", check):
        check_objective(problem, rng)
    subset = CustomSubset.start(problem, allowed)
    events = () if resume is None else _events(resume, subset, chosen, goal)
    path = follow(subset, chosen, goal, Budget(seconds, callback), said.names, events)
    noteworthy = " ".join(remarks(path, size, problem, allowed))
    if noteworthy:
        warnings.warn(noteworthy, PaucaWarning, stacklevel=2)
    return path


def follow(
    subset: CustomSubset,
    method: Method,
    goal: Goal,
    budget: Budget | None = None,
    names: np.ndarray | None = None,
    resume: Sequence[Move] = (),
    noun: str | None = None,
) -> Selected:
    """Run a method on a subset and make a path of what it finds; ``noun`` is what its sizes count."""
    history = run(method, subset, goal, budget, resume)
    assert history.stop is not None
    sizes, problem = sorted(history.best), subset.problem
    models = subset.finish([history.best[size] for size in sizes], sizes.index(method.answer(history, goal)))
    return Selected(
        dict(zip(sizes, models, strict=True)),
        history.moves,
        history.stop,
        problem.n_coords - len(problem.free),
        names,
        problem.units.labels,
        None if problem.units.single else problem.units.owner,
        prices=subset.limits.price,
        free=problem.free,
        floor=problem.floor,
        noun=noun or ("coordinate" if problem.units.single else None),
    )


def _events(path: Path, subset: CustomSubset, method: Method, goal: Goal) -> Sequence[Move]:
    """The moves of an earlier path, if it was of this objective and these wishes and has not gone too far."""
    if not isinstance(path, Path):
        raise TypeError(f"resume must be a Path, as select returns it; got {type(path).__name__}.")
    problem, null = subset.problem, path[0].objective
    same = path.free is not None and np.array_equal(path.free, problem.free)
    same = same and path.n_features == problem.n_coords - len(problem.free)
    if not same or abs(null - subset.null_value) > SAME_WITHIN * abs(null):
        raise ValueError("resume is the path of another objective: its empty model is not the one of this call.")
    owner = None if problem.units.single else problem.units.owner
    if not _alike(path.owner, owner) or not _alike(path.prices, subset.limits.price):
        raise ValueError("resume is the path of a call with other groups or costs; they must be the same.")
    if not _leads_there(path, subset, method):
        raise ValueError("resume is the path of a call with another method, always or never; they must be the same.")
    if not all(subset.limits.allows(model.units.tolist()) for model in path if model.size):
        raise ValueError("resume is the path of a call with a larger budget; it must be no larger than the one now.")
    grew = any(move[0] == "add" for move in path.moves)
    return () if grew and goal.reached(path.sizes[-1] - 1) else path.moves


def _alike(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    return other is None if one is None else other is not None and np.array_equal(one, other)


def _leads_there(path: Path, subset: CustomSubset, method: Method) -> bool:
    """Whether the moves of a path lead from the start of a run to its models, by what is allowed."""
    twin = subset.restarted()
    method.begin(twin)
    now = set(twin.support)
    met = [frozenset(now)]
    for action, *units in path.moves:
        out, into = ([], units) if action == "add" else (units, []) if action == "drop" else units
        now = (now - _set(out)) | _set(into)
        met.append(frozenset(now))
    models = {frozenset(model.units.tolist()) for model in path if model.size}
    return models <= set(met) and not any(set(subset.limits.never) & support for support in met)


def _set(units: Any) -> set[int]:
    return set(np.atleast_1d(units).tolist())
