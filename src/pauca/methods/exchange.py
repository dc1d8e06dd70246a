"""Exchange: grow by one feature, swap until no swap helps, look elsewhere, grow again."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

from pauca.methods.base import check_count, check_rule, next_addition, one_of
from pauca.methods.foba import FoBa
from pauca.methods.forward import Forward
from pauca.search.driver import Goal, Method
from pauca.search.history import History, Move, Stop, apply
from pauca.subsets.base import Subset, is_lower


@dataclass(frozen=True)
class Exchange:
    """The best model of each size that exchanges of single features can find from several starts.

    At every size:

    1. the model of the size before takes in the feature with the largest gain after refitting;
    2. one chosen feature is swapped for one other until no swap lowers Q: for squared loss the best of all k x d pairs
       by exact gains, for other losses the pairs that the local quadratic ranks first, refitted;
    3. rivals do the same from other starts: the models of this size that the ``scouts`` have found, and the current
       model after a detour over ``detour`` more features and back. A rival that ends lower takes over.

    What is left is never above a scout that is asked for as many features: by default, never above ``Forward()``,
    ``FoBa()`` and ``FoBa(rule="refit")``. As each size is made from the sizes before it alone, the model of size 5 is
    the same whether 5 or 50 features were asked for. Where a budget or the places of a group leave no room for another
    feature, several are traded for one, or one for several, if that lowers Q.

    For squared loss the model is optimal under single exchanges, and more: the replacement steps of Shalev-Shwartz,
    Srebro and Zhang (2010), Algorithm 4, take the best feature in and the smallest coefficient out; the best of all
    pairs lowers Q at least as much, so their Theorem 2.9 holds: with ``k + 1 >= s (1 + 4 (beta / lambda)^2)`` features
    Q is at most that of any model of s features, beta and lambda being the largest and smallest curvature along
    sparse directions.

    Parameters
    ----------
    scouts : tuple of methods, default=(Forward(), FoBa(), FoBa(rule="refit"))
        Methods that grow and whose models are taken as further starts; ``()`` for none.
    detour : int, default=4
        How many features the detour takes in before it gives as many back; 0 leaves it out.
    rule : {"objective", "gradient", "refit"}, default="refit"
        How the feature to grow by is ranked, as in ``Forward``.
    settle : {"every", "last"}, default="every"
        At which sizes features are exchanged: at every size, or only where the search ends, which is several times
        faster and gives up the promise about smaller sizes.

    Examples
    --------
    >>> from pauca.methods import Exchange, FoBa
    >>> Exchange(scouts=(FoBa(rule="refit"),), detour=2).detour
    2
    """

    scouts: tuple[Method, ...] = (Forward(), FoBa(), FoBa(rule="refit"))
    detour: int = 4
    rule: str = "refit"
    settle: str = "every"

    def __post_init__(self) -> None:
        check_rule(self.rule)
        one_of("settle", self.settle, ("every", "last"))
        check_count("detour", self.detour, 0)
        if not isinstance(self.scouts, tuple) or not all(isinstance(scout, Forward | FoBa) for scout in self.scouts):
            raise ValueError(f"scouts must be a tuple of Forward and FoBa methods; got {self.scouts!r}.")

    def begin(self, subset: Subset) -> None:
        """Start from the empty model."""

    def moves(self, subset: Subset, history: History, goal: Goal) -> Generator[Move | None, None, Stop]:
        """Swaps until the current size is settled, then an addition, and again."""
        scouts = [_Scout(method, subset.restarted()) for method in self.scouts]
        while True:
            if self.settle == "every":
                yield from self._settle(subset, scouts)
            step = Stop.SIZE if goal.reached(subset.size) else next_addition(subset, self.rule, goal.tol)
            if not isinstance(step, Stop):
                yield ("add", step)
            elif step is not Stop.LIMITS or not (yield from self._trade(subset, scouts, goal)):
                break
        if self.settle == "last":
            yield from self._settle(subset, scouts)
        return step

    def answer(self, history: History, goal: Goal) -> int:
        """The size the run ended at."""
        return history.size

    def _settle(self, subset: Subset, scouts: list[_Scout]) -> Iterator[Move | None]:
        """Swaps, and models of rivals, until neither lowers the value.

        Whenever a rival takes over, all begins anew: what comes next depends on the current model alone, and so a run
        that is taken up again goes the same way. Starts that were tried once need not be tried again.
        """
        tried: set[frozenset[int]] = set()
        taken_over = subset.size > 0
        while taken_over:
            yield from _swaps(subset)
            taken_over = False
            for scout in scouts:
                yield from scout.advance(subset.size)
            for rival in self._rivals(subset, scouts, tried):
                taken_over = yield from _contest(subset, rival)
                if taken_over:
                    break

    def _rivals(self, subset: Subset, scouts: list[_Scout], tried: set[frozenset[int]]) -> Iterator[Subset]:
        """Other models of the same size, each made when it is asked for."""
        for scout in scouts:
            support = scout.support(subset.size)
            if support and _is_new(support, subset, tried):
                yield scout.model(support)
        if self.detour:
            detour = _Detour(subset, self.detour, subset.size)
            if detour.allowed and _is_new(detour.support, subset, tried):
                rival = detour.model()
                if rival.size == subset.size:
                    yield rival

    def _trade(self, subset: Subset, scouts: list[_Scout], goal: Goal) -> Generator[Move | None, None, bool]:
        """Where no further unit fits within the limits: models of any size, if one lowers the value.

        The scouts go on as far as they get, and several units are traded for one, or one for several.
        """
        for scout in scouts:
            yield from scout.advance(goal.k)
            support = scout.lowest()
            if support != frozenset(subset.support) and (yield from _contest(subset, scout.model(support))):
                return True
        tried: set[frozenset[int]] = set()
        for extra in range(1, self.detour + 1):
            detour = _Detour(subset, extra, goal.k)
            if detour.allowed and _is_new(detour.support, subset, tried):
                taken_over = yield from _contest(subset, detour.model())
                if taken_over:
                    return True
        return False


class _Scout:
    """Another method on its own path, taken up again whenever a further size is wanted."""

    def __init__(self, method: Method, subset: Subset) -> None:
        self._method = method
        self._subset = subset
        self._trail = History(subset, None)

    def advance(self, size: int | None) -> Iterator[None]:
        """Lead the method on to ``size`` units, or as far as it goes."""
        for move in self._method.moves(self._subset, self._trail, Goal(size)):
            if move is not None:
                apply(move, self._subset)
                self._trail.record(move, self._subset)
            yield None

    def lowest(self) -> frozenset[int]:
        """The units of the method's best model of any size."""
        return frozenset(min(self._trail.best.values(), key=lambda model: model.value).support)

    def support(self, size: int) -> frozenset[int]:
        """The units of the method's best model of ``size``; none if it has not met one."""
        found = self._trail.best.get(size)
        return frozenset() if found is None else frozenset(found.support)

    def model(self, support: frozenset[int]) -> Subset:
        """A subset of its own on ``support``: as a rule that of the last size reached."""
        if support == frozenset(self._subset.support):
            return self._subset.copy()
        model = self._subset.restarted()
        for unit in sorted(support.difference(model.support)):
            model.add(unit)
        return model


class _Detour:
    """The model one gets by taking in ``extra`` units, whatever the limits say, and then giving up the cheapest.

    Until the limits hold again and no more than ``size`` are left; then what still fits is taken in.
    """

    def __init__(self, subset: Subset, extra: int, size: int | None) -> None:
        self._subset = subset
        self._size = size
        limits = subset.limits
        with subset.trial():
            before = subset.size
            for _ in range(extra):
                step = next_addition(subset, "refit", 0.0)
                # Where the fit becomes perfect any column will do, and what follows would hang on rounding.
                if isinstance(step, Stop) or subset.decrease(step) > (1 - 1e-6) * (subset.value - subset.perfect_below):
                    break
                subset.add(step)
            self._taken = subset.support[before:]
            self._given_up = subset.cheapest_removals(size, limits)
            self.support = frozenset(subset.support) - frozenset(self._given_up)
        self.allowed = limits.allows(self.support)

    def model(self) -> Subset:
        """A subset of its own on ``support``, filled up."""
        model = self._subset.copy()
        for unit in self._taken:
            model.add(unit)
        for unit in self._given_up:
            model.drop(unit)
        while self._size is None or model.size < self._size:
            step = next_addition(model, "refit", 0.0)
            if isinstance(step, Stop):
                break
            model.add(step)
        return model


def _is_new(support: frozenset[int], subset: Subset, tried: set[frozenset[int]]) -> bool:
    """Whether a start is neither the current model nor one that was tried; it is from now on."""
    new = support != frozenset(subset.support) and support not in tried
    tried.add(support)
    return new


def _swaps(subset: Subset) -> Iterator[Move]:
    """Swaps of one feature until none helps."""
    value = float("inf")
    # The value is computed afresh by every swap; that it falls each time is what ends the loop.
    while subset.value < value and (swap := subset.best_swap()) is not None:
        value = subset.value
        yield ("swap", swap.out, swap.into)


def _contest(subset: Subset, rival: Subset) -> Generator[Move | None, None, bool]:
    """Bring a rival to its own optimum; if it ends lower, swap what differs for what it has, and say so."""
    for swap in _swaps(rival):
        apply(swap, rival)
        yield None
    out = sorted(set(subset.support) - set(rival.support))
    into = sorted(set(rival.support) - set(subset.support))
    if not (out or into) or not is_lower(rival.value, subset.value, subset.negligible):
        return False
    yield ("swap", out[0], into[0]) if len(out) == len(into) == 1 else ("swap", tuple(out), tuple(into))
    return True
