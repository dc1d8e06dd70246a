"""The only outer loop: asks a method for moves, makes them, writes them down, and watches the budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pauca.clock import GRACE, OutOfTime, deadline_after, limited_until
from pauca.search.history import History, Move, Stop, apply
from pauca.subsets.base import Subset


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
        Number of features asked for.
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


@dataclass(frozen=True)
class Budget:
    """How long a run may go on: seconds, and a callback that ends it by returning True."""

    time_limit: float | None = None
    callback: Callable[[Progress], bool | None] | None = None


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


def run(
    method: Method, subset: Subset, goal: Goal, budget: Budget | None = None, resume: Sequence[Move] = ()
) -> History:
    """Run ``method`` from where ``resume`` (the moves of an earlier run) left off until it or the budget ends it."""
    budget = budget or Budget()
    subset.expect(goal.k)
    history = History(subset, goal.k)
    # The history is written after each move is complete, so it is whole whenever an interrupt comes.
    with ended_early(lambda stop: setattr(history, "stop", stop)):
        with limited_until(deadline_after(budget.time_limit) + GRACE):
            method.begin(subset)
            history = History(subset, goal.k)
            history.dependent = subset.dependent().tolist()
        for move in resume:
            apply(move, subset)
            history.record(move, subset)
        moves = method.moves(subset, history, goal)
        history.stop = _drive(moves, subset, history, goal, budget)
        history.keep_last(subset)
        history.dependent = sorted({*history.dependent, *subset.dependent().tolist()})
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
    """A context that the time limit or Ctrl-C may end; ``note`` is told which. What follows must do without it."""

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


def _drive(moves: Iterator[Move | None], subset: Subset, history: History, goal: Goal, budget: Budget) -> Stop:
    # The first move is made even if that takes a little longer: runs that are taken up again and again get on.
    moved = False
    began, deadline = time.monotonic(), deadline_after(budget.time_limit)
    while True:
        try:
            with limited_until(deadline if moved else deadline + GRACE):
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
        if budget.callback is not None and (move is not None or history.proofs):
            last = history.moves[-1] if move is None else move
            gap = max((proof.relative_gap for proof in history.proofs.values()), default=None)
            progress = Progress(
                last, subset.size, goal.k, float(subset.value), subset.null_value, elapsed, relative_gap=gap
            )
            answer = budget.callback(progress)
            if isinstance(answer, bool | np.bool_) and answer:
                return Stop.CALLBACK
        if moved and budget.time_limit is not None and elapsed >= budget.time_limit:
            return Stop.TIME
