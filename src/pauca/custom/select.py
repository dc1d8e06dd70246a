"""``select``: minimise a function of the user's own over few of its coordinates."""

from __future__ import annotations

import contextlib
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pauca.checks import arithmetic_in_words
from pauca.clock import GRACE, OutOfTime, deadline_after, limited_until
from pauca.constraints.limits import Limits
from pauca.custom.gradient_check import check_objective
from pauca.custom.objective import CustomProblem, Objective
from pauca.custom.options import CHECK, ObjectiveOptions, as_objective, check_generator, check_size, parse_limits
from pauca.custom.subset import CustomSubset
from pauca.estimators.fitted_base import check_finite_models
from pauca.export import register_estimator, save
from pauca.methods import resolve
from pauca.results.path import Path
from pauca.runs.progress import reported, showing
from pauca.runs.run import Budget, Goal, Method, Move, Progress, SearchRun, Stop, run
from pauca.warnings import PaucaWarning

# The empty models of two runs on one objective differ by no more than this share.
SAME_WITHIN = 1e-6

RIDGE = "Add a ridge, such as 1e-3 times the sum of squares of the coordinates that are chosen from."

# A value is below its floor if it is by more than this share of the empty model's value.
BELOW_FLOOR = 1e-9

# Why a search may end before its size, other than by the user's own options.
ENDED = {
    Stop.PERFECT: "the objective is at its floor, and nothing is left to gain. Ask for fewer.",
    Stop.NO_GAIN: "no other lowers the objective by more than rounding. Ask for fewer.",
    Stop.STEPS: "the largest number of steps was reached. Allow more, or go on with resume=path.",
    Stop.TIME: "the time limit was reached. Allow more, or go on with resume=path.",
}


@register_estimator("Selected")
@dataclass(frozen=True, eq=False, repr=False)
class Selected(Path):
    """The model of every size that ``select`` has found: a ``Path`` that can be saved."""

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the path to a file of plain JSON, for ``pauca.load``.

        The file holds every model, every move and the names, but not the objective. What ``load`` returns can be given
        to ``select`` as ``resume``. A file that is there already is replaced in one step, once the new one is whole.

        Examples
        --------
        >>> import os, tempfile, pauca
        >>> path = pauca.select(lambda w: (w[0] - 1) ** 2, 1, gradient=lambda w: 2 * (w - 1), n_coords=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path.save(os.path.join(folder, "path.json"))
        ...     pauca.load(os.path.join(folder, "path.json")).parameters(1)
        array([1.])
        """
        save(self, file)


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
    verbose: int = 0,
    names: Any = None,
    resume: Path | None = None,
    check: bool = True,
    random_state: Any = 0,
) -> Selected:
    """Minimise a function of your own over few of its coordinates.

    The methods are those of the estimators; gradients rank candidates, and refits by quasi-Newton steps decide (Liu,
    Fujimaki and Ye 2014 state forward-backward selection for any such function).

    Parameters
    ----------
    objective : object or callable
        A smooth convex function: an object with ``n_coords``, ``value(w)`` and ``gradient(w)``, and whatever else
        ``pauca.custom.objective.Objective`` lists; or ``value`` itself, with ``gradient`` and ``n_coords`` given too.
        A value of infinity, or one that is not a number, means that ``w`` lies outside of the domain.
    k : int or None
        The number of coordinates, or groups, to choose; None continues as long as each gains at least ``tol``. Where
        there is no model of so many, a ``PaucaWarning`` says why.
    method : {"foba", "forward", "stepwise", "exchange", "backward", "replacement"} or object, default="foba"
        How to search; see ``pauca.methods``.
    gradient : callable, default=None
        ``gradient(w)``, where ``objective`` is a function.
    n_coords : int, default=None
        Length of ``w``, where ``objective`` is a function.
    free : list, default=None
        Coordinates that are always in and never counted, by index or name. This, the next four and ``names`` override
        the objective's own.
    groups : array of shape (n_coords,), default=None
        Labels; coordinates of one label are chosen together. Those of free coordinates are ignored.
    start : array of shape (n_coords,), default=None
        Where to begin, zero outside of ``free``; None for zeros. The value must be finite there.
    curvature : callable, default=None
        ``curvature(w)``: the diagonal of the Hessian, or an estimate. It ranks candidates.
    floor : float, default=None
        A value that the objective is never below, 0 for losses: then the path has the share explained.
    always, never : list, default=None
        Coordinates, by index or name, or labels of groups, that must or must not be in.
    costs : list or dict, default=None
        What every coordinate costs (of free ones too, which are never paid), or every group, in the order of the sorted
        labels; as a dict by index or name, or by label. Candidates are then ranked by gain per cost.
    budget : float, default=None
        The most that a model may cost in all.
    tol : float, default=0.0
        The least decrease of the objective for which a coordinate is added.
    time_limit : float, default=None
        Seconds after which the search ends with what it has. A check of the objective that takes longer is cut short.
    callback : callable, default=None
        Called with a ``Progress`` after every move; the search ends if it returns True.
    verbose : int, default=0
        1 shows a progress bar on stderr while the search runs; 0 prints nothing.
    names : list of str, default=None
        Names of the coordinates, free ones included. ``path.names(size)`` and messages have them.
    resume : Path, default=None
        The path of an earlier call with the same objective, method and constraints, to be continued.
    check : bool, default=True
        Whether the objective is checked first: its gradient against differences of its value, kinks at zero, and
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
    posed = as_objective(objective, gradient, n_coords)
    CHECK.optional_callable("curvature", curvature)
    CHECK.optional_callable("callback", callback)
    CHECK.verbose(verbose)
    options = ObjectiveOptions(posed, free=free, groups=groups, start=start, floor=floor, names=names)
    problem = options.problem(curvature)
    size = check_size(k)
    limits = parse_limits(options, problem, size, always=always, never=never, costs=costs, budget=budget)
    goal = Goal(size, CHECK.number("tol", tol))
    seconds = CHECK.time_limit(time_limit)
    chosen = resolve(method)
    rng = check_generator(random_state)
    deadline = deadline_after(seconds)
    checked = CHECK.flag("check", check)
    with showing(verbose, seconds):
        if checked:
            # What the time does not allow to check is not checked.
            with contextlib.suppress(OutOfTime), limited_until(deadline):
                check_objective(problem, rng)
        with arithmetic_in_words():
            subset = CustomSubset.start(problem, limits)
            moves = () if resume is None else _earlier_moves(resume, subset, chosen, goal)
            left = None if seconds is None else max(0.0, deadline - time.monotonic())
            path = search(subset, chosen, goal, Budget(left, reported(callback)), options.names, moves)
    check_finite_models(path.models)
    messages = " ".join(search_warnings(path, size, problem, limits))
    if messages:
        warnings.warn(messages, PaucaWarning, stacklevel=2)
    return path


def search(
    subset: CustomSubset,
    method: Method,
    goal: Goal,
    budget: Budget | None = None,
    names: np.ndarray | None = None,
    resume: Sequence[Move] = (),
) -> Selected:
    """Run a method on a subset and make a path of what it finds."""
    deadline = deadline_after(None if budget is None else budget.time_limit)
    history = run(method, subset, goal, budget, resume)
    assert history.stop is not None
    problem = subset.problem
    with limited_until(deadline + GRACE):
        models = SearchRun(method, None, subset, history).models(method.answer(history, goal))
    return Selected(
        models,
        history.moves,
        history.stop,
        problem.n_coords - len(problem.free),
        names,
        problem.units.labels,
        None if problem.units.single else problem.units.owner,
        prices=subset.limits.price,
        free=problem.free,
        floor=problem.floor,
        noun="coordinate" if problem.units.single else None,
    )


def _earlier_moves(path: Path, subset: CustomSubset, method: Method, goal: Goal) -> Sequence[Move]:
    """The moves of an earlier path, if it has the same objective and constraints and is not larger than the goal."""
    if not isinstance(path, Path):
        raise TypeError(f"resume must be a Path, as select returns it; got {type(path).__name__}.")
    problem, null = subset.problem, path[0].objective
    same = path.free is not None and np.array_equal(path.free, problem.free)
    same = same and path.n_features == problem.n_coords - len(problem.free)
    if not same or abs(null - subset.null_value) > SAME_WITHIN * abs(null):
        raise ValueError("resume is the path of another objective: its empty model is not the one of this call.")
    owner = None if problem.units.single else problem.units.owner
    if not _equal(path.owner, owner) or not _equal(path.prices, subset.limits.price):
        raise ValueError("resume is the path of a call with other groups or costs; they must be the same.")
    if not _moves_lead_to_models(path, subset, method):
        raise ValueError("resume is the path of a call with another method, always or never; they must be the same.")
    if not all(subset.limits.allows(model.units.tolist()) for model in path if model.size):
        raise ValueError("resume is the path of a call with a larger budget; it must be no larger than the one now.")
    grew = any(move[0] == "add" for move in path.moves)
    return () if grew and goal.reached(path.sizes[-1] - 1) else path.moves


def _equal(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    return other is None if one is None else other is not None and np.array_equal(one, other)


def _moves_lead_to_models(path: Path, subset: CustomSubset, method: Method) -> bool:
    """Whether the moves of a path lead from the start of a run to its models, within what is allowed."""
    start = subset.restarted()
    method.begin(start)
    now = set(start.support)
    met = [frozenset(now)]
    for action, *units in path.moves:
        out, into = ([], units) if action == "add" else (units, []) if action == "drop" else units
        now = (now - _set(out)) | _set(into)
        met.append(frozenset(now))
    models = {frozenset(model.units.tolist()) for model in path if model.size}
    return models <= set(met) and not any(set(subset.limits.never) & support for support in met)


def _set(units: Any) -> set[int]:
    return set(np.atleast_1d(units).tolist())


def search_warnings(path: Path, k: int | None, problem: CustomProblem, limits: Limits) -> Iterator[str]:
    """Messages for the one warning after a search; as a rule none."""
    answer = path[k if k is not None and k in path else max(path.sizes)]
    below = problem.floor is not None and answer.objective < problem.floor - BELOW_FLOOR * abs(path[0].objective)
    if below:
        fell = f"The objective fell to {answer.objective:.6g}"
        yield f"{fell}, below floor={problem.floor:g}: give a lower floor, or none."
    elif k is not None and k not in path:
        yield from _why_fewer(path, k, problem, limits)
    if path.stop is Stop.INTERRUPTED:
        yield f"The search was interrupted; the models up to size {max(path.sizes)} were kept."
    if not answer.converged:
        yield (
            "The solver did not converge: the parameters may be inaccurate. Unless it was interrupted, bring the "
            "coordinates to a common scale, or add a ridge."
        )
    if answer.diverged:
        yield f"Some parameters diverge, as where the data are separable: their sizes mean little. {RIDGE}"


def _why_fewer(path: Path, k: int, problem: CustomProblem, limits: Limits) -> Iterator[str]:
    """Why there is no model of size k; nothing where the user's own ``tol`` or callback ended the search."""
    found = max(path.sizes)
    noun = "coordinates" if problem.units.single else "groups"
    requested = f"k={k} {noun} were requested, but"
    if path.stop is Stop.LIMITS and limits.budget is not None:
        nothing_fits = f"no other fits in budget={limits.budget:g}. Allow more or ask for fewer"
        yield f"{requested} the search ended at {found}: {nothing_fits}."
    elif path.stop in {Stop.LIMITS, Stop.EXHAUSTED}:
        left_out = " 'never' leaves out the others." if limits.never else ""
        yield f"{requested} only {found} of {int(problem.usable.sum())} can be used together.{left_out}"
    elif path[found].diverged and path.stop in {Stop.NO_GAIN, Stop.PERFECT}:
        yield f"{requested} the search ended at {found}: the objective is as low as it can be, and no other lowers it."
    elif path.stop in ENDED:
        yield f"{requested} the search ended at {found}: {ENDED[path.stop]}"
