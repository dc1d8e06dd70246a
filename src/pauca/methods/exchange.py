"""Exchange: grow by one feature, swap until no swap helps, look elsewhere, grow again."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

from pauca.methods._steps import next_addition
from pauca.path.driver import Goal
from pauca.path.stop import Stop
from pauca.path.trail import Event, Trail, apply
from pauca.subset import Subset
from pauca.subset.base import is_lower


@dataclass(frozen=True)
class Exchange:
    """The best model of each size that single exchanges and two other starts can find.

    At every size:

    1. the model of the size before takes in the feature with the largest gain after refitting;
    2. one chosen feature is swapped for one other, the best of all k x d pairs by exact gains, until no swap lowers Q;
    3. two rivals do the same from other starts: the plain forward model of this size, and the current model after a
       detour over ``detour`` more features and back. A rival that ends lower takes over.

    What is left is optimal under single exchanges and never above ``Forward`` at any size. As each size is made
    from the sizes before it alone, the model of size 5 is the same whether 5 or 50 features were asked for.

    The replacement steps of Shalev-Shwartz, Srebro and Zhang (2010), Algorithm 4, take the best feature in and the
    smallest coefficient out; the best of all pairs lowers Q at least as much, so their Theorem 2.9 holds: with ``k
    + 1 >= s (1 + 4 (beta / lambda)^2)`` features Q is at most that of any model of s features, beta and lambda
    being the largest and smallest curvature along sparse directions.

    Parameters
    ----------
    detour : int, default=4
        How many features the detour takes in before it gives as many back; 0 leaves it out.

    Examples
    --------
    >>> from pauca.methods import Exchange
    >>> Exchange()
    Exchange(detour=4)
    """

    detour: int = 4

    def __post_init__(self) -> None:
        if not isinstance(self.detour, int) or self.detour < 0:
            raise ValueError(f"detour must be a non-negative integer; got {self.detour!r}.")

    def begin(self, subset: Subset) -> None:
        """Start from the empty model."""

    def moves(self, subset: Subset, trail: Trail, goal: Goal) -> Generator[Event | None, None, Stop]:
        """Swaps until the current size is settled, then an addition, and again."""
        scout = subset.empty()
        while True:
            if subset.size > 1:
                yield from _swaps(subset)
                for rival in self._rivals(subset, scout):
                    yield from _contest(subset, rival)
            if goal.reached(subset.size):
                return Stop.SIZE
            step = next_addition(subset, "refit", goal.tol)
            if isinstance(step, Stop):
                return step
            yield ("add", step)

    def answer(self, trail: Trail, goal: Goal) -> int:
        """The size the run ended at."""
        return trail.size

    def _rivals(self, subset: Subset, scout: Subset) -> Iterator[Subset]:
        """Other models of the same size, each made when it is asked for."""
        _advance(scout, subset.size)
        if scout.size == subset.size and set(scout.support) != set(subset.support):
            yield scout.copy()
        if self.detour:
            yield from _after_detour(subset, self.detour)


def _swaps(subset: Subset) -> Iterator[Event]:
    """Swaps of one feature until none helps."""
    value = float("inf")
    # The value is computed afresh by every swap; that it falls each time is what ends the loop.
    while subset.value < value and (swap := subset.best_swap()) is not None:
        value = subset.value
        yield ("swap", swap.out, swap.into)


def _contest(subset: Subset, rival: Subset) -> Iterator[Event | None]:
    """Bring a rival to its own optimum; if it ends lower, swap what differs for what it has."""
    for swap in _swaps(rival):
        apply(swap, rival)
        yield None
    out = sorted(set(subset.support) - set(rival.support))
    into = sorted(set(rival.support) - set(subset.support))
    if out and is_lower(rival.value, subset.value, subset.null_value):
        yield ("swap", out[0], into[0]) if len(out) == 1 else ("swap", tuple(out), tuple(into))


def _advance(scout: Subset, size: int) -> None:
    """Lead the scout along the plain forward path to ``size`` features, or as far as it goes."""
    while scout.size < size:
        step = next_addition(scout, "objective", 0.0)
        if isinstance(step, Stop):
            return
        scout.add(step)


def _after_detour(subset: Subset, extra: int) -> Iterator[Subset]:
    """The subset after taking in ``extra`` features and giving up as many, unless that leads back."""
    size = subset.size
    with subset.trial():
        for _ in range(extra):
            step = next_addition(subset, "refit", 0.0)
            if isinstance(step, Stop):
                break
            subset.add(step)
        taken = subset.support[size:]
        given_up = subset.cheapest_removals(len(taken))
        rival = None if set(given_up) == set(taken) else subset.copy()
    if rival is not None:
        for feature in given_up:
            rival.drop(feature)
        yield rival
