"""The record of a run: its moves, the best model of every size, and why it ended."""

from __future__ import annotations

from enum import StrEnum

from pauca.relaxations.proof import SizeProof
from pauca.subsets.base import Subset


class Stop(StrEnum):
    """The reason a run ended; ``message`` says it in words.

    Examples
    --------
    >>> from pauca import Stop
    >>> Stop.SIZE.message
    'The size asked for was reached.'
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
    TIME = "time"
    CALLBACK = "callback"
    INTERRUPTED = "interrupted"

    @property
    def message(self) -> str:
        """The reason in words."""
        return _MESSAGES[self]


_MESSAGES = {
    Stop.SIZE: "The size asked for was reached.",
    Stop.TOLERANCE: "Nothing further lowers the objective by the tolerance asked for.",
    Stop.CERTIFIED: "The model is proven to be within the tolerance of the best one in the ball.",
    Stop.PERFECT: "The model explains the target to rounding; nothing is left to gain.",
    Stop.NO_GAIN: "Nothing that remains lowers the objective noticeably.",
    Stop.EXHAUSTED: "Nothing is left to choose: the rest is constant, depends on what was chosen, or was left out.",
    Stop.LIMITS: "Nothing further fits in the limits given: budget, max_per_group, never.",
    Stop.STEPS: "The largest number of steps was reached.",
    Stop.REPEATED: "Removals led back to a model that the search had left; it would go in circles.",
    Stop.TIME: "The time limit was reached.",
    Stop.CALLBACK: "The callback asked to stop.",
    Stop.INTERRUPTED: "The run was interrupted from the keyboard.",
}


Move = tuple[str, int] | tuple[str, int, int] | tuple[str, tuple[int, ...], tuple[int, ...]]
"""``("add", j)``, ``("drop", i)``, ``("swap", i, j)`` for j in i's place, or ``("swap", (i, ..), (j, ..))``."""


class History:
    """The record of a run; whatever a method needs to know of its past is read off here.

    A method's next move depends on the subset and the history alone. That is why a run that was cut short goes on
    from its moves: replaying them rebuilds both.
    """

    def __init__(self, start: Subset, largest_kept: int | None) -> None:
        self.moves: list[Move] = []
        self.best = {0: start.null}
        """The best model met at each size."""
        self.stop: Stop | None = None
        self.dependent: list[int] = []
        """Columns found to be linear combinations of chosen ones, ascending."""
        self.proofs: dict[int, SizeProof] = {}
        """What is proved of the best model of a size, where a lower bound was computed."""
        self.no_proof: str | None = None
        """Why there is no lower bound, where one was asked for."""
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
        self._keep(subset)

    def keep_last(self, subset: Subset) -> None:
        """Keep the model a run ended at even if it is larger than was asked for: it may be the only one."""
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
