"""A run of a search method: what it aims for, the only loop, its record, and why it ended."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import numpy as np

from pauca.checks import users_function
from pauca.clock import GRACE, OutOfTime, deadline_after, limited_until
from pauca.model import Model
from pauca.relaxations.size_proof import SizeProof
from pauca.subsets.base import Subset
from pauca.threads import blas_threads


class Stop(StrEnum):
    """The reason a run ended; ``message`` says it in words.

    Examples
    --------
    >>> from pauca import Stop
    >>> Stop.SIZE.message
    'The requested size was reached.'
    >>> Stop.SIZE == "size"
    True
    """

    SIZE = "size"
    TOLERANCE = "tolerance"
    CERTIFIED = "certified"
    PERFECT = "perfect"
    NO_GAIN = "no_gain"
    EXHAUSTED = "exhausted"
    LIMITS = "limits"
    STEPS = "steps"
    REPEATED = "repeated"
    STALLED = "stalled"
    TIME = "time"
    CALLBACK = "callback"
    INTERRUPTED = "interrupted"

    @property
    def message(self) -> str:
        """The reason in words."""
        return _MESSAGES[self]


_MESSAGES = {
    Stop.SIZE: "The requested size was reached.",
    Stop.TOLERANCE: "No further change lowers the objective by more than the tolerance.",
    Stop.CERTIFIED: "The model is proven to be within the tolerance of the best one in the ball.",
    Stop.PERFECT: "The model explains the target to rounding; nothing is left to gain.",
    Stop.NO_GAIN: "Nothing that remains lowers the objective noticeably.",
    Stop.EXHAUSTED: "Nothing is left to choose: the rest is constant, depends on what was chosen, or was left out.",
    Stop.LIMITS: "Nothing further fits in the limits given: budget, max_per_group, heredity, never.",
    Stop.STEPS: "The largest number of steps was reached.",
    Stop.REPEATED: "Removals led back to a model that the search had left; it would go in circles.",
    Stop.STALLED: "The search did not converge: its steps came to an end before the gap was small enough.",
    Stop.TIME: "The time limit was reached.",
    Stop.CALLBACK: "The callback asked to stop.",
    Stop.INTERRUPTED: "The run was interrupted from the keyboard.",
}


Move = tuple[str, int] | tuple[str, int, int] | tuple[str, tuple[int, ...], tuple[int, ...]]
"""``("add", j)``, ``("drop", i)``, ``("swap", i, j)`` for j in i's place, or ``("swap", (i, ..), (j, ..))``."""


@dataclass(frozen=True)
class Goal:
    """What a run aims for: ``k`` features (None: as many as help) and the least gain of an addition."""

    k: int | None = None
    tol: float = 0.0

    def reached(self, size: int) -> bool:
        """Whether ``size`` features are enough."""
        return self.k is not None and size >= self.k


@dataclass(frozen=True)
class Progress:
    """What a callback receives after every move.

    Attributes
    ----------
    move : tuple
        The move just made, such as ``("add", 3)``.
    size : int
        Number of features after it.
    k : int or None
        Number of requested features.
    objective : float
        Value of the current model.
    null_objective : float
        Value of the empty model.
    elapsed : float
        Seconds since the run began.
    fold : int or None
        The fold this run is for, counted from 0; None for the run on all rows.
    n_folds : int
        Number of folds; 0 where ``k`` was given.
    relative_gap : float or None
        While ``Exact`` proves its models, and is called between moves too: the largest share by which a model of any
        size can still be better.
    search : int
        Which search of this run it is, counted from 0, where several are made, at different ridges.
    n_searches : int
        Their number.
    seconds_left : float or None
        About how many seconds are left of the fit, other folds and rounds included as far as they are known; None as
        long as nothing is.
    """

    move: Move
    size: int
    k: int | None
    objective: float
    null_objective: float
    elapsed: float
    fold: int | None = None
    n_folds: int = 0
    relative_gap: float | None = None
    search: int = 0
    n_searches: int = 1
    seconds_left: float | None = None


@dataclass(frozen=True)
class Budget:
    """How long a run may go on: seconds, a callback that ends it by returning True, and whether Ctrl-C does."""

    time_limit: float | None = None
    callback: Callable[[Progress], bool | None] | None = None
    search: int = 0
    """Which of several searches this is for, that are made one after the other."""
    n_searches: int = 1
    whole: bool = False
    """Whether half a search would be of no use: then an interrupt is raised."""


def asks_to_stop(callback: Callable[[Any], Any], progress: Any) -> bool:
    """Call a callback; whether it has returned True. What it raises is the user's own."""
    with users_function():
        answer = callback(progress)
    return isinstance(answer, bool | np.bool_) and bool(answer)


class History:
    """The record of a run; whatever a method needs to know of its past is read off here.

    A method's next move depends on the subset and the history alone. That is why a run that was cut short goes on
    from its moves: replaying them rebuilds both.
    """

    def __init__(self, start: Subset, largest_kept: int | None) -> None:
        self.moves: list[Move] = []
        self.n_repeated = 0
        """How many of the moves are those of an earlier run, which this one continues."""
        self.best = {0: start.null}
        """The best model met at each size."""
        self.stop: Stop | None = None
        self.dependent: list[int] = []
        """Columns found to be linear combinations of chosen ones, ascending."""
        self.proofs: dict[int, SizeProof] = {}
        """What is proved of the best model of a size, where a lower bound was computed."""
        self.no_proof: str | None = None
        """Why there is no lower bound, where one was requested."""
        self.proofs_stopped_after: float | None = None
        """The time limit in seconds, where it ended the proofs."""
        self.proofs_interrupted = False
        """Whether Ctrl-C ended them."""
        self.n_copies = 0
        """How many columns the proofs leave out because they copy others."""
        self.size = start.size
        self.smallest_gain = float("inf")
        """The least gain of any addition so far."""
        self.arrivals: dict[int, float] = {}
        """For each size, the gain of the last addition that led up to it."""
        self.lost = 0.0
        """By how much the removals since the last addition have raised the value."""
        self.undone = 0.0
        """The gains of the additions that those removals stand against."""
        self._largest_kept = largest_kept
        self._value = start.value
        self._keep(start)

    def record(self, move: Move, subset: Subset) -> None:
        """Write down a move that has just been made."""
        self._keep(subset)  # first: it takes a while, and an interrupt may come
        change = self._value - subset.value
        if move[0] == "add":
            self.smallest_gain = min(self.smallest_gain, change)
            self.arrivals[subset.size] = change
            self.lost = self.undone = 0.0
        elif move[0] == "drop":
            self.lost -= change
            self.undone += self.arrivals.get(self.size, 0.0)
        self.moves.append(move)
        self.size = subset.size
        self._value = subset.value

    def end(self, stop: Stop) -> None:
        """Note what has cut the run short: it ends at a model that it has."""
        self.stop = stop
        if self.size not in self.best:
            self.size = max(self.best)

    def keep_last(self, subset: Subset) -> None:
        """Keep the model a run ended at even if it is larger than requested: it may be the only one."""
        if subset.limits.allows(subset.support):
            self.best.setdefault(subset.size, subset.snapshot())

    def _keep(self, subset: Subset) -> None:
        if self._largest_kept is not None and subset.size > self._largest_kept:
            return
        if not subset.limits.allows(subset.support):
            return
        known = self.best.get(subset.size)
        if known is None or subset.value < known.value:
            self.best[subset.size] = subset.snapshot()


def apply(move: Move, subset: Subset) -> None:
    """Make a move."""
    action, *features = move
    if action == "add":
        subset.add(features[0])  # type: ignore[arg-type]
    elif action == "drop":
        subset.drop(features[0])  # type: ignore[arg-type]
    else:
        out, into = ((f,) if isinstance(f, int) else f for f in features)
        subset.exchange(out, into)


class Method(Protocol):
    """Options of one algorithm; frozen, so that one object serves any number of runs."""

    def begin(self, subset: Subset) -> None:
        """Put the subset where the method starts from."""
        ...

    def moves(self, subset: Subset, history: History, goal: Goal) -> Iterator[Move | None]:
        """Yield one move at a time and return the ``Stop`` that ends the run.

        The driver makes each move before it asks for the next. None stands for a moment to check the time.
        """
        ...

    def answer(self, history: History, goal: Goal) -> int:
        """The size of the model that answers ``goal``."""
        ...

    def for_comparison(self, run: SearchRun, growth: float) -> Method:
        """A quicker method for a run of this one, by which sizes are compared that grow by a share; itself if none is.

        Its models must be as good as those of this method on held-out rows.
        """
        return self

    def for_one_size(self, run: SearchRun, growth: float) -> tuple[Method, ...]:
        """Methods that, one after the other, lead a run of this one to a model of one size as good as its own.

        Sizes on the way may grow by a share.
        """
        return (self,)


def run(
    method: Method, subset: Subset, goal: Goal, budget: Budget | None = None, resume: Sequence[Move] = ()
) -> History:
    """Run ``method`` from where ``resume`` (the moves of an earlier run) left off until it or the budget ends it."""
    budget = budget or Budget()
    subset.expect(goal.k)
    start, history = list(subset.support), History(subset, goal.k)
    # The history is written after each move is complete, so it is whole whenever an interrupt comes.
    stops: list[Stop] = []
    began, deadline = time.monotonic(), deadline_after(budget.time_limit)
    with nullcontext() if budget.whole else ended_early(stops.append):
        with limited_until(deadline + GRACE):
            method.begin(subset)
            if list(subset.support) != start:
                history = History(subset, goal.k)
            history.dependent = subset.dependent().tolist()
        for move in resume:
            apply(move, subset)
            history.record(move, subset)
        history.n_repeated = len(history.moves)
        moves = method.moves(subset, history, goal)
        history.stop = _drive(moves, subset, history, goal, budget, began)
        with limited_until(deadline + GRACE):
            history.keep_last(subset)
            history.dependent = sorted({*history.dependent, *subset.dependent().tolist()})
    if stops:
        history.end(stops[0])
    return history


class _Interrupts:
    """Ctrl-C once ends a run and keeps what it found; again within two seconds it does what it does everywhere.

    Without the second half, a loop over many fits could not be left.
    """

    def __init__(self) -> None:
        self._last = float("-inf")

    def once_or_raise(self) -> None:
        """To be called where an interrupt was caught; raises it again if it is not the first."""
        before, self._last = self._last, time.monotonic()
        if self._last - before < 2:
            raise KeyboardInterrupt


_interrupts = _Interrupts()


def interrupted_once() -> None:
    """To be called where an interrupt was caught; raises it again if there was one just before."""
    _interrupts.once_or_raise()


class ended_early:  # noqa: N801, used as a function
    """A context that the time limit or Ctrl-C may end; ``note`` gets the reason. What follows must do without it."""

    def __init__(self, note: Callable[[Stop], None]) -> None:
        self._note = note

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, OutOfTime):
            self._note(Stop.TIME)
            return True
        if isinstance(error, KeyboardInterrupt):
            interrupted_once()
            self._note(Stop.INTERRUPTED)
            return True
        return False


def _drive(
    moves: Iterator[Move | None], subset: Subset, history: History, goal: Goal, budget: Budget, began: float
) -> Stop:
    # The first move is made even if that takes a little longer: runs that are taken up again and again get on.
    moved = False
    deadline = math.inf if budget.time_limit is None else began + budget.time_limit
    unwatched = budget.time_limit is None and budget.callback is None
    while True:
        try:
            with limited_until(deadline if moved else deadline + GRACE):
                move = next(moves)
                while move is None and unwatched:
                    move = next(moves)
            if move is not None:
                with limited_until(deadline + GRACE):  # a move that was found is made
                    apply(move, subset)
                history.record(move, subset)
                moved = True
        except StopIteration as end:
            return Stop(end.value)
        except OutOfTime:
            return Stop.TIME
        elapsed = time.monotonic() - began
        # Proofs are news too, but not before there was a move to tell of.
        if budget.callback is not None and history.moves and (move is not None or history.proofs):
            last = history.moves[-1] if move is None else move
            gap = max((proof.relative_gap for proof in history.proofs.values()), default=None)
            progress = Progress(
                last,
                subset.size,
                goal.k,
                float(subset.value),
                subset.null_value,
                elapsed,
                relative_gap=gap,
                search=budget.search,
                n_searches=budget.n_searches,
            )
            if asks_to_stop(budget.callback, progress):
                return Stop.CALLBACK
        if moved and budget.time_limit is not None and elapsed >= budget.time_limit:
            return Stop.TIME


@dataclass(eq=False)
class SearchRun:
    """A search on some rows, which may be taken up again to go further."""

    method: Method
    design: Any
    """What the problem has made of the data; the search itself asks the subset only."""
    subset: Subset
    history: History | None = None

    def advance(self, goal: Goal, budget: Budget, resume: Sequence[Move] = ()) -> History:
        """Go on to ``goal`` from where the search stands, or from the moves of an earlier one."""
        if self.history is not None:
            resume, self.subset = self.history.moves, self.subset.restarted()
        with blas_threads.single():
            self.history = run(self.method, self.subset, goal, budget, resume)
        return self.history

    @property
    def stopped_early(self) -> bool:
        """Whether something other than the search itself ended it."""
        assert self.history is not None
        return self.history.stop in {Stop.TIME, Stop.CALLBACK, Stop.INTERRUPTED}

    def models(self, answer: int) -> dict[int, Model]:
        """The best model of every size, in the user's units; that of size ``answer`` with exact importances.

        Time and Ctrl-C leave estimates of these, and are noted in the history.
        """
        history = self.history
        assert history is not None
        sizes = sorted(history.best)
        snapshots = [history.best[size] for size in sizes]
        models: list[Model] = []
        with blas_threads.single():
            with ended_early(lambda stop: setattr(history, "stop", stop)):
                models = self.subset.finish(snapshots, sizes.index(answer))
            models = models or self.subset.finish(snapshots, None)
        return dict(zip(sizes, models, strict=True))
