"""Why a run ended, as a value."""

from __future__ import annotations

from enum import StrEnum


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
    Stop.TIME: "The time limit was reached.",
    Stop.CALLBACK: "The callback asked to stop.",
    Stop.INTERRUPTED: "The run was interrupted from the keyboard.",
}
