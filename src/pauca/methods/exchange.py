"""Exchange, local search over swaps: contains Algorithm 4 of Shalev-Shwartz, Srebro and Zhang (2010), Theorem 2.9."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from pauca.checks import ParameterChecks
from pauca.methods.foba import FoBa
from pauca.methods.forward import Forward, GrowingMethod, next_addition
from pauca.runs.run import Goal, History, Method, Move, SearchRun, Stop, apply
from pauca.subsets.base import RULES, Subset, is_lower

# Detours of losses without closed forms go at least to this size. It costs little, as these sizes are needed anyway.
# Otherwise features that help only together are missed: on the breast cancer data sizes 2 and 3 were 2 % and 6 % above
# the best known.
LEAST_LOOKAHEAD = 6


# Of interactions that lack parents so many are tried together with their parents, those that gain most.
INTERACTIONS_TRIED = 8


# By default: all of them where each costs little, as with squared loss, else the first. Where classes share a loss,
# slopes lead to other models for next to nothing: of five pixels of digits those without are 2 % above.
SCOUTS = (Forward(), FoBa(), FoBa(rule="refit"))
SCOUTS_OF_CLASSES = (Forward(), Forward(rule="gradient"))

# The detour of a scout whose ridge is heavier, where refits and estimates take less. With 2 features instead of 4 sizes
# 18 and 19 of ten digits are up to 4 times above.
PENALISED_DETOUR = 4


# Forward selection where it is compared with exchange, or leads to its first model.
QUICK = Forward(shortlist=1.3)

# Pairs are tried whose expected gain, times this, would lower the value. On eleven problems this passed over one pair
# that would have lowered it: it gained 1.06 times what was expected, most others 0.96 to 1.04 times.
PAIR_SLACK = 1.01


@dataclass(frozen=True)
class Exchange(GrowingMethod):
    """The best model of each size that swaps of single features find from several starts.

    At every size:

    1. the feature with the largest gain after refitting is added to the model of the size before;
    2. one chosen feature is swapped for another until no swap lowers Q: for squared loss the best of all k x d pairs by
       exact gains; for other losses features are added, those most likely to gain first, and what each chosen feature
       then costs is estimated, and the best few swaps are refitted;
    3. rivals are looked at: the models of this size found by the ``scouts``, the current model after ``detour``
       additions and as many removals, and for other losses than squared loss, without groups and limits, the model of
       two features less with the two that gain most together by its quadratic. Where three or more classes are nearly
       separated by more than 6 features and there is no ridge, the same search with a small one is a scout, and its
       models of one feature more without the cheapest are looked at too. A rival with a lower Q replaces the current
       model, and is swapped in turn. For squared loss rivals are swapped before they are compared, for other losses
       each size of a detour is.

    The result is never above that of a scout run to the same size: never above ``Forward()``, and for squared loss not
    above ``FoBa()`` and ``FoBa(rule="refit")`` either. The look-ahead of a detour is fixed, so the model of size 5 is
    the same for ``k=5`` and ``k=50``. Where a budget or the limit of a group excludes any further feature, several
    features are traded for one, or one for several, if that lowers Q.

    For squared loss the model is optimal under single swaps. The replacement steps of Shalev-Shwartz, Srebro and Zhang
    (2010), Algorithm 4, add the best feature and remove the smallest coefficient; the best of all pairs lowers Q at
    least as much, so their Theorem 2.9 holds: with ``k + 1 >= s (1 + 4 (beta / lambda)^2)`` features Q is at most that
    of any model of s features, where beta and lambda are the largest and smallest curvature along sparse directions.

    Parameters
    ----------
    scouts : tuple of methods, or None, default=None
        Growing methods whose models are further starts; ``()`` for none. None: ``Forward()``, for squared loss
        ``FoBa()`` and ``FoBa(rule="refit")`` as well, and for three or more classes ``Forward(rule="gradient")``.
    detour : int or None, default=None
        How many features a detour adds before it removes as many; 0 for no detours. None: 4 for squared loss, else 2.
        For losses other than squared loss detours from sizes 1 to 3 go on to size 6.
    rule : {"objective", "gradient", "refit"}, default="refit"
        How candidates for an addition are ranked, as in ``Forward``.

    Examples
    --------
    >>> from pauca.methods import Exchange, FoBa
    >>> Exchange(scouts=(FoBa(rule="refit"),), detour=2).detour
    2
    """

    swaps: ClassVar[bool] = True
    """Whether features are exchanged at the same size."""

    scouts: tuple[Method, ...] | None = None
    detour: int | None = None
    rule: str = "refit"

    def __post_init__(self) -> None:
        check = ParameterChecks("Exchange")
        check.one_of("rule", self.rule, RULES)
        if self.detour is not None:
            check.count("detour", self.detour, "or None", least=0)
        if self.scouts is not None and not (
            isinstance(self.scouts, tuple) and all(isinstance(scout, Forward | FoBa) for scout in self.scouts)
        ):
            raise ValueError(check.message("scouts", "a tuple of Forward and FoBa methods, or None", self.scouts))

    def for_subset(self, subset: Subset) -> Exchange:
        """The method with all options set: more starts where each of them costs little."""
        costly = SCOUTS_OF_CLASSES if subset.joint else SCOUTS[:1]
        scouts = SCOUTS if subset.closed_form else costly
        detour = 4 if subset.closed_form else 2
        return Exchange(
            scouts if self.scouts is None else self.scouts, detour if self.detour is None else self.detour, self.rule
        )

    def for_comparison(self, run: SearchRun, growth: float) -> Method:
        """Swaps alone where they have closed forms, else forward selection: several times as fast.

        On held-out rows the models of exchange are no better (docs/choosing_k.md), but models of forward selection
        alone are worse for squared loss. Where features have prices, it ranks by gain per price, so that its models
        are others than those of exchange at the same size.
        """
        if not run.subset.closed_form and run.subset.limits.price is None:
            return replace(QUICK, batch=growth)
        return self._swaps_alone if swaps_suffice(run) else self

    def for_one_size(self, run: SearchRun, growth: float) -> tuple[Method, ...]:
        """Where each of the sizes below takes refits, without them: forward selection and then swaps.

        On breast cancer, simulated and wide tables frequencies of features on halves of the rows are within 0.1 of
        those that exchange at every size leads to, and as high on average; they take a fifth to two fifths of the time.
        """
        if run.subset.closed_form or run.subset.limits.can_be_relaxed:
            return (self,)
        return replace(QUICK, batch=growth), self._swaps_alone

    @property
    def _swaps_alone(self) -> Exchange:
        return Exchange(scouts=(), detour=0, rule=self.rule)

    def moves(self, subset: Subset, history: History, goal: Goal) -> Generator[Move | None, None, Stop]:
        """Swaps until none helps at the current size, then an addition, and so on."""
        return (yield from self.for_subset(subset)._moves(subset, history, goal))

    def _moves(self, subset: Subset, history: History, goal: Goal) -> Generator[Move | None, None, Stop]:
        assert self.scouts is not None
        scouts = [_Scout(method, subset.restarted()) for method in self.scouts]
        while True:
            yield from self._settle(subset, scouts, history)
            step = Stop.SIZE if goal.reached(subset.size) else next_addition(subset, self.rule, goal.tol)
            if not isinstance(step, Stop):
                subset.likely_pair()  # the next size but one asks for it, and all that it takes is at hand now
                yield ("add", step)
            elif step is not Stop.LIMITS or not (yield from self._trade(subset, scouts, goal)):
                return step

    def _settle(self, subset: Subset, scouts: list[_Scout], history: History) -> Iterator[Move | None]:
        """Swaps, and models of rivals, until neither lowers the value.

        After a rival replaced the current model, this starts again: the next move depends on the current model only, so
        that a resumed run makes the same moves. Each start is tried once.
        """
        tried: set[frozenset[int]] = set()
        replaced = subset.size > 0
        while replaced:
            yield from _swaps(subset)
            replaced = False
            wanted = subset.size > LEAST_LOOKAHEAD and scouts and not scouts[-1].penalised
            if wanted and (penalised := subset.penalised()) is not None:
                scouts.append(_Scout(Exchange((), PENALISED_DETOUR), penalised, penalised=True))
            for scout in scouts:
                yield from scout.advance(subset.size + scout.penalised)
            for rival in self._rivals(subset, scouts, history, tried):
                replaced = yield from _contest(subset, rival)
                if replaced:
                    break

    def _rivals(
        self, subset: Subset, scouts: list[_Scout], history: History, tried: set[frozenset[int]]
    ) -> Iterator[Subset]:
        """Other models of the same size, each made when it is needed."""
        for scout in scouts:
            for support in scout.starts(subset):
                if support and _is_new(support, subset, tried):
                    yield scout.model(support, subset)
        if self.detour:
            extra = self.detour if subset.closed_form else max(self.detour, LEAST_LOOKAHEAD - subset.size)
            if scouts and scouts[-1].penalised:
                extra = 1  # the detours of that scout go further at less cost
            detour = _Detour(subset, extra, subset.size)
            if detour.allowed and _is_new(detour.support, subset, tried):
                rival = detour.model()
                if rival.size == subset.size:
                    yield rival
        support = frozenset() if subset.closed_form else _with_pair(subset, history)
        if support and _is_new(support, subset, tried):
            yield _on(support, subset)
        for unit in _interactions(subset):
            detour = _Detour(subset, 0, subset.size, through=unit)
            if detour.allowed and len(detour.support) == subset.size and _is_new(detour.support, subset, tried):
                yield detour.model()

    def _trade(self, subset: Subset, scouts: list[_Scout], goal: Goal) -> Generator[Move | None, None, bool]:
        """Where the limits allow no further unit: a model of any size that lowers the value, if there is one.

        The scouts continue as far as they can, and several units are traded for one, or one for several.
        """
        for scout in scouts:
            yield from scout.advance(goal.k)
            support = scout.lowest()
            if support != frozenset(subset.support) and (yield from _contest(subset, scout.model(support, subset))):
                return True
        assert self.detour is not None
        tried: set[frozenset[int]] = set()
        for extra in range(1, self.detour + 1):
            detour = _Detour(subset, extra, goal.k)
            if detour.allowed and _is_new(detour.support, subset, tried):
                replaced = yield from _contest(subset, detour.model())
                if replaced:
                    return True
        return False


def swaps_suffice(run: SearchRun) -> bool:
    """Whether models of swaps alone, which are found quickly, predict as well as those of exchange.

    Where limits keep swaps from going far, and among more columns than rows, exchange needs its detours and starts: on
    sparse truths folds by swaps alone led to losses 1.18 times as high there (docs/choosing_k.md).
    """
    subset, design = run.subset, run.design
    return subset.closed_form and not subset.limits.can_be_relaxed and len(design.usable) <= design.n_rows


class _Scout:
    """Another method on its own path, resumed whenever a further size is needed; perhaps with a heavier ridge."""

    def __init__(self, method: Method, subset: Subset, *, penalised: bool = False) -> None:
        self.penalised = penalised
        self._method = method
        self._subset = subset
        self._history = History(subset, None)

    def advance(self, size: int | None) -> Iterator[None]:
        """Continue the method to ``size`` units, or as far as it goes."""
        for move in self._method.moves(self._subset, self._history, Goal(size)):
            if move is not None:
                apply(move, self._subset)
                self._history.record(move, self._subset)
            yield None

    def lowest(self) -> frozenset[int]:
        """The units of the method's best model of any size."""
        return frozenset(min(self._history.best.values(), key=lambda model: model.value).support)

    def support(self, size: int) -> frozenset[int]:
        """The units of the method's best model of ``size``; empty if it has none."""
        found = self._history.best.get(size)
        return frozenset() if found is None else frozenset(found.support)

    def starts(self, subset: Subset) -> Iterator[frozenset[int]]:
        """The units of its model of a subset's size; with a heavier ridge also of the next, without the cheapest."""
        yield self.support(subset.size)
        larger = self.support(subset.size + 1) if self.penalised else frozenset[int]()
        if larger:
            yield larger.difference(_on(larger, subset).cheapest_removals(subset.size, subset.limits))

    def model(self, support: frozenset[int], subset: Subset) -> Subset:
        """A separate subset on ``support``, which is usually that of the last size, with the ridge of another one."""
        if self.penalised:
            return _on(support, subset)
        if support == frozenset(self._subset.support):
            return self._subset.copy()
        return _on(support, self._subset)


class _Detour:
    """The model after adding ``extra`` units, ignoring the limits, and then removing the cheapest.

    Units are removed until the limits hold and at most ``size`` are left; then units that still fit are added. The
    detour may start with an interaction to go ``through``, which brings its parents along.
    """

    def __init__(self, subset: Subset, extra: int, size: int | None, through: int | None = None) -> None:
        self._subset = subset
        self._size = size
        limits = subset.limits
        with subset.trial():
            if through is not None and subset.decrease(through) > subset.negligible:
                subset.add(through)
            for _ in range(extra):
                step = next_addition(subset, "refit", 0.0)
                # Once the fit is perfect, any column will do, and later steps would depend on rounding.
                if isinstance(step, Stop) or subset.decrease(step) > (1 - 1e-6) * (subset.value - subset.perfect_below):
                    break
                subset.add(step)
                if not subset.closed_form and subset.limits is limits:
                    for swap in _swaps(subset):
                        apply(swap, subset)
            for parent in limits.missing_parents(subset.support):
                if subset.decrease(parent) > subset.negligible:
                    subset.add(parent)
            removed = subset.cheapest_removals(size, limits)
            self.support = frozenset(subset.support) - frozenset(removed)
        self.allowed = limits.allows(self.support)

    def model(self) -> Subset:
        """A separate subset on ``support``, filled up to the limits."""
        model = self._subset.copy()
        chosen = frozenset(model.support)
        model.exchange(sorted(chosen - self.support), sorted(self.support - chosen))
        while self._size is None or model.size < self._size:
            step = next_addition(model, "refit", 0.0)
            if isinstance(step, Stop):
                break
            model.add(step)
        return model


def _on(support: frozenset[int], subset: Subset) -> Subset:
    """A separate subset on ``support``."""
    model = subset.restarted()
    model.exchange((), sorted(support.difference(model.support)))
    return model


def _with_pair(subset: Subset, history: History) -> frozenset[int]:
    """The model of two units less with the two that are likely to gain most together; empty if that is not known.

    Features that help together are missed one by one: with four ordered classes, 500 x 2000, sizes 13 to 16 were up to
    0.3 % above models that were known.
    """
    before = history.best.get(subset.size - 2)
    pair = None if before is None else _on(frozenset(before.support), subset).likely_pair()
    if before is None or pair is None or PAIR_SLACK * pair.gain < before.value - subset.value:
        return frozenset()
    return frozenset([*before.support, pair.first, pair.second])


def _interactions(subset: Subset) -> list[int]:
    """The interactions that lack parents in the model and would gain most, alone."""
    heredity, never = subset.limits.heredity, subset.limits.never
    if heredity is None or not subset.size:
        return []
    closed = [unit for unit in heredity.closed_to(subset.support) if unit not in subset.support and unit not in never]
    return sorted(closed, key=lambda unit: (-subset.gain_alone(unit), unit))[:INTERACTIONS_TRIED]


def _is_new(support: frozenset[int], subset: Subset, tried: set[frozenset[int]]) -> bool:
    """Whether a start is neither the current model nor tried before; marks it as tried."""
    new = support != frozenset(subset.support) and support not in tried
    tried.add(support)
    return new


def _swaps(subset: Subset) -> Iterator[Move]:
    """Swaps of single features until none lowers the value."""
    value = float("inf")
    # Every swap recomputes the value; the loop terminates because the value falls each time.
    while subset.value < value and (swap := subset.best_swap()) is not None:
        value = subset.value
        yield ("swap", swap.out, swap.into)


def _contest(subset: Subset, rival: Subset) -> Generator[Move | None, None, bool]:
    """Swap the current model to a rival if its value is lower, and return True.

    Where swaps have closed forms the rival is first swapped to its own local optimum.
    """
    if subset.closed_form:
        for swap in _swaps(rival):
            apply(swap, rival)
            yield None
    out = sorted(set(subset.support) - set(rival.support))
    into = sorted(set(rival.support) - set(subset.support))
    if not (out or into) or not is_lower(rival.value, subset.value, subset.negligible):
        return False
    yield ("swap", out[0], into[0]) if len(out) == len(into) == 1 else ("swap", tuple(out), tuple(into))
    return True
