"""A checked problem from which any number of runs start: on all rows, or on those of a fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from pauca.design import Design, make_design
from pauca.losses import Loss
from pauca.model import Model
from pauca.path import Budget, Event, Goal, Method, Stop, Trail, run
from pauca.subset import Subset, start
from pauca.units import Limits, Units


@dataclass(frozen=True, eq=False)
class Target:
    """What is to be predicted, in the form losses want it."""

    y: np.ndarray
    """Shape (C, n), or (n,) for classes where all outputs share one loss."""
    loss: Loss
    n_outputs: int


class Startable(Protocol):
    """A checked problem: all that a choice of size needs to know of it."""

    def begin(self, weights: np.ndarray, design: Any = None) -> Attempt:
        """A search that only sees what has weight."""
        ...


@dataclass(frozen=True, eq=False)
class Task:
    """Data, target and wishes, all of them checked."""

    X: Any
    target: Target
    method: Method
    units: Units
    limits: Limits
    bounds: tuple[np.ndarray, np.ndarray] | None
    ridge: float
    center: bool
    measure: Loss
    """The loss by which models are held against each other: that of the target, with nothing left open."""

    def begin(self, weights: np.ndarray, design: Design | None = None) -> Attempt:
        """A search that only sees rows with weight; X is shared, never copied."""
        design = design or make_design(self.X, weights, center=self.center)
        limits = self.limits
        if limits.always:
            # What varies over all rows may be constant on some.
            varies = self.units.any(design.usable)
            limits = replace(limits, always=tuple(unit for unit in limits.always if varies[unit]))
        subset = start(
            design,
            self.target.y,
            self.target.loss,
            units=self.units,
            limits=limits,
            n_outputs=self.target.n_outputs,
            ridge=self.ridge,
            center=self.center,
            bounds=self.bounds,
        )
        return Attempt(self.method, design, subset)


@dataclass(eq=False)
class Attempt:
    """A search on some rows, which may be taken up again to go further."""

    method: Method
    design: Any
    """What the task has made of the data; the search itself asks the subset only."""
    subset: Subset
    trail: Trail | None = None

    def advance(self, goal: Goal, budget: Budget, resume: Sequence[Event] = ()) -> Trail:
        """Go on to ``goal`` from where the search stands, or from the events of an earlier one."""
        if self.trail is not None:
            resume, self.subset = self.trail.events, self.subset.anew()
        self.trail = run(self.method, self.subset, goal, budget, resume)
        return self.trail

    @property
    def stopped_early(self) -> bool:
        """Whether something other than the search itself ended it."""
        assert self.trail is not None
        return self.trail.stop in {Stop.TIME, Stop.CALLBACK, Stop.INTERRUPTED}

    def models(self, answer: int) -> dict[int, Model]:
        """The best model of every size, in the user's units; that of size ``answer`` with all that is told of it."""
        assert self.trail is not None
        best = self.trail.best
        sizes = sorted(best)
        return dict(zip(sizes, self.subset.finish([best[size] for size in sizes], sizes.index(answer)), strict=True))
