"""Forward greedy selection with full correction: Shalev-Shwartz, Srebro and Zhang (2010), Algorithm 3, Theorem 2.7.

Its step, ``next_addition``, is that of every method that grows.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

from pauca.checks import ParameterChecks
from pauca.runs.run import Goal, History, Method, Move, Stop
from pauca.subsets.base import RULES, SLACK, Subset


class GrowingMethod(Method):
    """A method that starts from the empty model and answers with the size at which it stopped."""

    def begin(self, subset: Subset) -> None:
        """Start from the empty model."""

    def answer(self, history: History, goal: Goal) -> int:
        """The size at which the run stopped."""
        return history.size


@dataclass(frozen=True)
class LineStops:
    """The stops of Liu, Fujimaki and Ye (2014), Algorithm 1, lines 4 and 5, made before a feature is added.

    ``min_line_gain`` is their delta, ``gradient_tol`` their epsilon; 0 for none.
    """

    min_line_gain: float = 0.0
    gradient_tol: float = 0.0

    @classmethod
    def of(cls, min_line_gain: float, gradient_tol: float) -> LineStops | None:
        """The stops; None for none."""
        return cls(min_line_gain, gradient_tol) if min_line_gain or gradient_tol else None

    def reached(self, subset: Subset, shortlist: float | None = SLACK) -> bool:
        """Whether no candidate gains enough along its own coordinate, or no slope is steep enough."""
        if self.gradient_tol and subset.largest_slope() < self.gradient_tol:
            return True
        if not self.min_line_gain:
            return False
        unit = subset.best_addition("objective", shortlist)
        return unit is None or subset.gain_alone(unit) < self.min_line_gain


def check_shortlist(check: ParameterChecks, shortlist: float | None) -> None:
    """Check the option of how many candidates are scored."""
    if shortlist is not None and check.number("shortlist", shortlist, positive=True, otherwise=" or None") < 1:
        raise ValueError(check.message("shortlist", "at least 1 or None", shortlist))


def next_addition(
    subset: Subset, rule: str, tol: float, shortlist: float | None = SLACK, stops: LineStops | None = None
) -> int | Stop:
    """The unit to add next, or why there is none.

    The gain compared with ``tol`` is the decrease after refitting, and a unit that gains less is not added (Zhang 2011,
    Figure 4; Figure 1 of the same paper adds it and then stops).
    """
    if subset.value <= subset.perfect_below:
        return Stop.PERFECT
    unit = subset.best_addition(rule, shortlist)
    if unit is None:
        return Stop.LIMITS if subset.held_back() else Stop.EXHAUSTED
    if stops is not None and stops.reached(subset, shortlist):
        return Stop.TOLERANCE
    gain = subset.decrease(unit)
    if gain <= subset.negligible:
        return Stop.NO_GAIN
    if gain < tol:
        return Stop.TOLERANCE
    return unit


@dataclass(frozen=True)
class Forward(GrowingMethod):
    """Add one feature at a time and refit all coefficients each time.

    Shalev-Shwartz, Srebro and Zhang (2010), Algorithm 3; Zhang (2011), Figure 1; known for squared loss as
    orthogonal matching pursuit. It is fast, and never removes a feature.

    Guarantee (Theorem 2.7 of Shalev-Shwartz et al., for the rules "objective" and "gradient"): with
    ``k >= 2 beta |w|_1^2 / eps`` features, Q is within ``eps`` of ``Q(w)``, for any w; beta is the largest curvature
    of Q along a coordinate.

    The papers' rule, "objective", looks at the decrease along the new coordinate alone. Forward stepwise regression as
    in textbooks and in R's ``regsubsets(method = "forward")`` looks at the decrease after refitting: that is
    ``rule="refit"``, for which ``method="stepwise"`` is the short name.

    Parameters
    ----------
    rule : {"objective", "gradient", "refit", "functional"}, default="objective"
        How candidates are ranked: by the decrease of Q along the new coordinate alone; by the size of the gradient
        (which depends on the units of columns); by the decrease once all coefficients are refitted; or by how well the
        column by itself fits the gradient with respect to the scores, as in functional gradient boosting (for squared
        loss without a ridge the same as "objective").
    shortlist : float or None, default=2.0
        Where a score takes a search of its own, as by the rule "objective" for losses other than squared loss,
        candidates are scored in the order of estimates, until this many times the next estimate is below the best.
        None scores every candidate but those that a proved ceiling rules out: the rule as printed.
    min_line_gain : float, default=0.0
        Stop before an addition if no candidate lowers Q by this much along its own coordinate, the others fixed: delta
        of Liu, Fujimaki and Ye (2014), Algorithm 1. The ``tol`` of the estimators is compared with the decrease after
        refitting, which is larger.
    gradient_tol : float, default=0.0
        Stop before an addition if no slope of Q is above this in absolute value, in the units of the columns: epsilon
        of the same algorithm.
    batch : float, default=0.0
        Share of its size by which the model grows at a time: with 0.1 the path has every size to 20, then 22, 24, ...,
        30, 33, ... The features of a batch come from one ranking, and the model is refitted once, so that long paths
        take far fewer refits; for squared error, where these cost nothing, each is ranked after the ones before it.
        Features are added one at a time by a share of 0, and wherever limits of what may be chosen together or a
        tolerance decide on each. The guarantee above is for one at a time.

    Examples
    --------
    >>> from pauca.methods import Forward
    >>> Forward(rule="gradient", gradient_tol=0.01).gradient_tol
    0.01
    """

    rule: str = "objective"
    shortlist: float | None = SLACK
    min_line_gain: float = 0.0
    gradient_tol: float = 0.0
    batch: float = 0.0

    def __post_init__(self) -> None:
        check = ParameterChecks("Forward")
        if check.number("batch", self.batch) >= 1:
            raise ValueError(check.message("batch", "a share below 1", self.batch))
        check.one_of("rule", self.rule, RULES)
        check_shortlist(check, self.shortlist)
        check.number("min_line_gain", self.min_line_gain)
        check.number("gradient_tol", self.gradient_tol)

    def moves(self, subset: Subset, history: History, goal: Goal) -> Generator[Move | None, None, Stop]:
        """Additions until the goal is reached or no feature lowers Q."""
        stops = LineStops.of(self.min_line_gain, self.gradient_tol)
        singly = goal.tol > 0 or stops is not None
        while not goal.reached(subset.size):
            count = 1 if singly or subset.value <= subset.perfect_below else self._count(subset.size, goal)
            several = subset.best_additions(self.rule, count, self.shortlist) if count > 1 else []
            if len(several) > 1:
                yield ("swap", (), tuple(several))
                continue
            step = next_addition(subset, self.rule, goal.tol, self.shortlist, stops)
            if isinstance(step, Stop):
                return step
            yield ("add", step)
        return Stop.SIZE

    def _count(self, size: int, goal: Goal) -> int:
        """How many features it takes to the next size of the path."""
        if not self.batch:
            return 1
        following = next(other for other in sizes_growing_by(self.batch) if other > size)
        return following - size if goal.k is None else min(following, goal.k) - size


def sizes_growing_by(share: float) -> Iterator[int]:
    """Sizes from 0 on, each larger than the one before by a share of it, and at least by one."""
    size = 0
    while True:
        yield size
        size += max(1, int(share * size))
