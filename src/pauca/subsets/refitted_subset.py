"""The base of every subset whose models are refits: estimates rank candidates, exact refits decide."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np

from pauca.constraints.limits import Limits
from pauca.model import Model, Snapshot
from pauca.subsets.base import (
    SLACK,
    Pair,
    Swap,
    first_largest,
    first_smallest,
    highest_scores,
    is_lower,
    require_memory,
)
from pauca.subsets.fit_cache import RecentTable


@dataclass(frozen=True)
class Shortlist:
    """How many candidates are refitted exactly, and which are passed over by their estimates.

    Larger numbers and smaller shares take more refits, and miss fewer good candidates where columns are correlated and
    estimates are far off. They change answers: each kind of subset has its own, for the quality of its estimates.
    """

    additions: int
    """Candidates refitted for an addition by the rule "refit"."""
    single_moves: int = 8
    """Candidates whose gain is found exactly for an addition by the rule "objective", where no formula gives it."""
    most_additions: int = 32
    """As long as no candidate for an addition gains anything, further ones are tried, up to this many in all."""
    removals: int = 3
    """Candidates refitted for a removal."""
    swaps: int = 6
    """Pairs refitted for a swap."""
    swaps_per_unit: int = 2
    """Pairs among them with the same incoming unit; one that estimates overrate would otherwise take them all."""
    extra_replacements: int = 2
    """Candidates refitted beyond the number of replacements to return."""
    least_swap_share: float = 0.5
    """A unit is a candidate for a swap if its estimated gain is above this share of what the removal costs."""


class AdditionScores(NamedTuple):
    """What each unit would gain by a rule, shape (U,); minus infinity for units that are no candidates."""

    gains: np.ndarray
    exact: bool
    """Whether these are the rule's own scores; otherwise they are estimates, and the best few are refitted."""


class SubsetCache:
    """Answers that depend on the support alone, shared by all subsets of one objective.

    A kind of subset adds what it takes to find them: fits, quadratics.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.answers = RecentTable[dict[tuple[Hashable, ...], Any]]()
        """By support, and then by what was asked and whether the limits were those of the search."""
        self.redundant: dict[int, frozenset[int]] = {}
        """Units that were passed over since they added nothing to a model met on the way, and the units of that model.

        They add nothing to larger models either."""


CacheT = TypeVar("CacheT", bound=SubsetCache)
Found = TypeVar("Found")


class RefittedSubset(ABC, Generic[CacheT]):
    """A subset whose every answer is a function of its support alone, but for rounding.

    The protocol is that of ``pauca.subsets.base.Subset``. A kind of subset supplies estimates (``_score_additions``,
    ``_removal_estimates``, ``_swap_estimates``), refits (``_move_to``, ``_decrease_to``, ``_gain_alone``,
    ``_zero_costs``), ``snapshot`` and ``finish``. Whatever else it holds is replaced, never changed in place, when
    units come and go: that makes copies and trials cheap.
    """

    shortlist: ClassVar[Shortlist]
    closed_form = False
    joint = False
    unit_noun: ClassVar[str] = "columns or groups"

    usable: np.ndarray
    """Mask of the units that may ever be chosen, shape (U,)."""
    null_value: float
    negligible: float
    perfect_below: float

    def __init__(self, cache: CacheT) -> None:
        self._cache = cache
        self.limits = cache.limits
        self.support: list[int] = []
        self.null = self.snapshot()
        for unit in self.limits.always:
            self.add(unit)

    # What a kind of subset supplies.

    @property
    @abstractmethod
    def value(self) -> float: ...

    @abstractmethod
    def snapshot(self) -> Snapshot: ...

    @abstractmethod
    def finish(self, snapshots: list[Snapshot], answer: int | None) -> list[Model]: ...

    @abstractmethod
    def data_key(self) -> bytes: ...

    @abstractmethod
    def _move_to(self, support: list[int]) -> None:
        """Make ``support`` the current one and refit."""

    @abstractmethod
    def _decrease_to(self, support: frozenset[int]) -> float:
        """By how much the value falls if the model is refitted on another support; negative if it rises."""

    @abstractmethod
    def _score_additions(self, rule: str, addable: np.ndarray, slack: float | None, count: int = 1) -> AdditionScores:
        """Score of every unit by ``rule``; entries outside of the mask ``addable`` are not read.

        ``slack`` is that of ``best_addition``, for scores that are found by a search of their own: as many as it takes
        to know the ``count`` highest.
        """

    @abstractmethod
    def _gain_alone(self, unit: int) -> float:
        """How far the value falls if the coefficients of one unit move and all others stay."""

    @abstractmethod
    def _removal_estimates(self, units: Sequence[int]) -> np.ndarray:
        """Estimates of what removing each of some chosen units costs after a refit, in their order."""

    @abstractmethod
    def _zero_costs(self, units: list[int], at_most: float, slack: float) -> dict[int, float]:
        """What it costs to set the coefficients of a unit to zero while all others stay; dear units may be missing."""

    def _swap_estimates(self) -> Iterator[tuple[int, float, np.ndarray]]:
        """For each chosen unit: what its removal costs, and what each other unit gains afterwards, shape (U,).

        The caller may change the arrays. Units that the limits keep in may be passed over. A kind of subset that finds
        swaps and replacements in its own way has none.
        """
        return iter(())

    def _fill_bytes(self, units: list[int]) -> int:
        """Bytes of memory that a model of all ``units`` takes."""
        return 0

    def _without_redundant(self, units: list[int]) -> list[int]:
        """``units`` without those that add nothing to the ones before them."""
        return units

    def _is_redundant(self, unit: int, replaced: int | None = None) -> bool:
        """Whether a unit would add nothing to the current model, or to the one without the unit it replaces."""
        return False

    def _replacement_estimates(self) -> Iterator[tuple[int, np.ndarray]]:
        """For each chosen unit: what each other unit would gain instead of it, shape (U,)."""
        for out, _, gains in self._swap_estimates():
            yield out, gains

    # The protocol.

    @property
    def size(self) -> int:
        return len(self.support)

    def expect(self, size: int | None) -> None:
        """The expected size changes nothing."""

    def best_addition(self, rule: str, slack: float | None = SLACK) -> int | None:
        return self._answer(lambda: self._find_addition(rule, slack), "addition", rule, slack)

    def best_additions(self, rule: str, count: int, slack: float | None = SLACK) -> list[int]:
        if self.limits.trivial:
            return self._find_additions(rule, count, slack)
        one = self.best_addition(rule, slack)
        return [] if one is None else [one]

    def decrease(self, unit: int) -> float:
        # Columns that do not vary, or were not gathered, gain nothing; an interaction may ask for them.
        return self._decrease_to(frozenset([*self.support, unit])) if self.usable[unit] else 0.0

    def gain_alone(self, unit: int) -> float:
        return self._gain_alone(unit) if self.usable[unit] else 0.0

    def largest_slope(self) -> float:
        addable = self._addable()
        squares = self._score_additions("gradient", addable, None).gains
        return float(np.sqrt(np.max(squares[addable], initial=0.0)))

    def zero_cost(self, unit: int) -> float:
        return self._zero_costs([unit], np.inf, SLACK)[unit]

    def coefficient_sizes(self) -> np.ndarray:
        # Of a linear model; other kinds of subset have coefficients of other kinds.
        objective: Any = self.objective  # type: ignore[attr-defined]
        model = self.finish([self.snapshot()], None)[0]
        squares = np.square(np.atleast_2d(model.coef)).sum(axis=0)
        totals = np.bincount(objective.units.owner[model.support], weights=squares, minlength=len(self.usable))
        return np.sqrt(totals[self.support])

    def cheapest_removal(
        self, removal: str, at_most: float = np.inf, slack: float | None = SLACK
    ) -> tuple[int, float] | None:
        removable = self.limits.removable(self.support)
        units = [unit for unit, may in zip(self.support, removable, strict=True) if may]
        if not units:
            return None
        if slack is None:
            exact_cost = self.zero_cost if removal == "zero" else self._removal_cost
            costs = {unit: exact_cost(unit) for unit in units}
        elif removal == "zero":
            costs = self._zero_costs(units, at_most, slack)
        else:
            likely = self._likely_removals(units, at_most, slack, self.shortlist.removals)
            costs = self._exact_costs(likely, slack, self._removal_cost)
        if not costs:
            return None
        candidates = list(costs)
        cheapest = candidates[first_smallest(self._per_price(costs), candidates)]
        return cheapest, costs[cheapest]

    def best_swap(self) -> Swap | None:
        return self._answer(self._find_swap, "swap")

    def likely_pair(self) -> Pair | None:
        return None

    def replacements(self, count: int) -> dict[int, list[Swap]]:
        found: dict[int, list[Swap]] = {out: [] for out in self.support}
        for out, gains in self._replacement_estimates():
            gains[~self._may_replace(out)] = -np.inf
            likely = highest_scores(gains, count + self.shortlist.extra_replacements)
            swaps = [self._refitted_swap(out, into) for into in likely]
            found[out] = sorted(swaps, key=lambda swap: (-swap.decrease, swap.into))[:count]
        return found

    def add(self, unit: int) -> None:
        self._move_to([*self.support, unit])

    def drop(self, unit: int) -> None:
        self._move_to([other for other in self.support if other != unit])

    def exchange(self, out: Sequence[int], into: Sequence[int]) -> None:
        # In one step: the models between would be refitted for nothing.
        self._move_to([unit for unit in self.support if unit not in out] + list(into))

    def cheapest_removals(self, size: int | None, limits: Limits) -> list[int]:
        rest = self.copy()
        rest.limits = limits
        while (size is not None and rest.size > size) or not limits.allows(rest.support):
            found = rest._answer(rest._likely_cheapest, "cheapest removal")
            if found is None:
                break
            rest.drop(found)
        return [unit for unit in self.support if unit not in rest.support]

    def fill(self) -> None:
        units = np.flatnonzero(self.usable & self.limits.startable(len(self.usable))).tolist()
        require_memory(self._fill_bytes(units), f"Starting from all {len(units)} {self.unit_noun}")
        self._move_to(self._without_redundant(units))

    def copy(self) -> Self:
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__, support=list(self.support))
        return other

    @contextmanager
    def trial(self) -> Iterator[None]:
        before = self.__dict__ | {"support": list(self.support)}
        if self.limits.can_be_relaxed:
            self.limits = self.limits.relaxed()
        try:
            yield
        finally:
            self.__dict__.update(before)

    def use_products_of(self, other: Any) -> None:
        """Of most kinds of subset nothing is kept."""

    def penalised(self) -> Self | None:
        return None

    def restarted(self) -> Self:
        return type(self)(self._cache)

    def held_back(self) -> bool:
        could = self.usable.copy()
        could[[*self.limits.never, *self.support]] = False
        return bool(np.any(could & ~self._addable()))

    def dependent(self) -> np.ndarray:
        """None are known."""
        return np.zeros(0, dtype=np.intp)

    # The steps of the template.

    def _answer(self, find: Callable[[], Found], *question: Hashable) -> Found:
        """What ``find`` says of the current support, asked once: scouts and detours come to the same models."""
        support, answers, key = (
            frozenset(self.support),
            self._cache.answers,
            (*question, self.limits is self._cache.limits),
        )
        if key not in answers.get(support, {}):
            found = find()
            answers.remember(support, answers.get(support, {}) | {key: found})
        return answers[support][key]

    def _addable(self) -> np.ndarray:
        return self.usable & self.limits.addable(self.support, len(self.usable))

    def _may_replace(self, out: int) -> np.ndarray:
        """Mask of the units that may be chosen instead of ``out``."""
        return self.usable & self.limits.exchangeable(self.support, out, len(self.usable))

    def _per_price(self, values: dict[int, float]) -> np.ndarray:
        """Gains or costs by unit, divided by the prices of the units, in the order of the dict."""
        return self.limits.per_price(np.array(list(values.values())), list(values))

    def _not_redundant(self) -> np.ndarray:
        """Mask of the units that may be added, but for those that are known to add nothing."""
        addable, support = self._addable(), frozenset(self.support)
        addable[[unit for unit, beside in self._cache.redundant.items() if beside <= support]] = False
        return addable

    def _find_additions(self, rule: str, count: int, slack: float | None) -> list[int]:
        """The units that a rule ranks first, without those that add nothing beside the others."""
        addable = self._not_redundant()
        scores = self._rule_scores(rule, addable, slack, count)
        gains = np.where(addable, scores.gains, -np.inf)
        likely = highest_scores(gains, 2 * count if scores.exact else max(2 * count, self.shortlist.single_moves))
        if not scores.exact:
            known = self._gains_together(likely)
            gains[likely] = [known[unit] if unit in known else self._gain_alone(unit) for unit in likely]
            likely.sort(key=lambda unit: (-gains[unit], unit))
        least = 0.0 if rule in {"gradient", "functional"} else self.negligible  # those are squares of slopes
        return self._independent([unit for unit in likely if gains[unit] > least], count)

    def _independent(self, units: list[int], count: int) -> list[int]:
        """The first ``count`` of some units that each add something to the model and to those before them."""
        return units[:count]

    def _rule_scores(self, rule: str, addable: np.ndarray, slack: float | None, count: int = 1) -> AdditionScores:
        functional = rule == "functional"
        return self._functional_scores(addable) if functional else self._score_additions(rule, addable, slack, count)

    def _find_addition(self, rule: str, slack: float | None) -> int | None:
        addable, support = self._not_redundant(), frozenset(self.support)
        while addable.any():
            scores = self._rule_scores(rule, addable, slack)
            gains = np.where(addable, self.limits.per_price(scores.gains), -np.inf)
            found = first_largest(gains) if scores.exact else self._best_of_few(gains, rule, slack)
            if found is None or not addable[found]:  # no unit has a slope, or none that is a number: any will do
                found = int(np.argmax(addable))
            if not self._is_redundant(found):
                return found
            self._cache.redundant[found] = support
            addable[found] = False
        return None

    def _functional_scores(self, addable: np.ndarray) -> AdditionScores:
        """How much of the gradient with respect to the scores each column fits by itself: slopes of columns of scale 1.

        Squares, as for the rule "gradient", from which it differs by the scale of the columns.
        """
        objective: Any = getattr(self, "objective", None)
        if getattr(objective, "design", None) is None or not objective.units.single:
            raise ValueError("rule='functional' fits the gradient by one column; this search does not choose columns.")
        scale = np.where(objective.design.usable, objective.design.spread, 1.0)
        return AdditionScores(self._score_additions("gradient", addable, None).gains / scale**2, exact=True)

    def _best_of_few(self, estimates: np.ndarray, rule: str, slack: float | None) -> int | None:
        """Of the few units with the highest estimates (per price), the one whose exact gain is the highest."""
        limits, shortlist = self.limits, self.shortlist
        count = shortlist.additions if rule == "refit" else shortlist.single_moves
        exact_gain = self.decrease if rule == "refit" else self._gain_alone
        found: dict[int, float] = {}
        ranked = highest_scores(estimates, len(estimates) if slack is None else shortlist.most_additions)
        known = {} if rule == "refit" else self._gains_together(ranked[:count])
        for unit in ranked:
            best = max(found.values(), default=0.0)
            # Where the first few gain nothing, others may still do.
            if best > self.negligible and slack and (len(found) >= count or slack * estimates[unit] < best):
                break
            gain = known[unit] if unit in known else exact_gain(unit)
            found[unit] = float(limits.per_price(np.array([gain]), [unit])[0])
        candidates = sorted(found)
        if not candidates:
            return None
        return candidates[first_largest(np.array([found[unit] for unit in candidates]))]

    def _gains_together(self, units: list[int]) -> dict[int, float]:
        """Exact gains of some units that are likely to be needed, as far as it pays to find them together."""
        return {}

    def _affordable(self, estimates: np.ndarray, at_most: float, slack: float) -> np.ndarray:
        """Mask of the removals that may cost no more than ``at_most``, by their estimates."""
        return estimates <= slack * at_most

    def _likely_removals(self, units: list[int], at_most: float, slack: float, count: int | None) -> dict[int, float]:
        """Estimated costs per price of the ``count`` removals (None: all) to be tried exactly, cheapest first."""
        estimates = self._removal_estimates(units)
        per_price = self.limits.per_price(estimates, units)
        payable = np.flatnonzero(self._affordable(estimates, at_most, slack)).tolist()
        ranked = sorted(payable, key=lambda position: (per_price[position], units[position]))[:count]
        return {units[position]: float(per_price[position]) for position in ranked}

    def _exact_costs(
        self, likely: dict[int, float], slack: float, exact_cost: Callable[[int], float]
    ) -> dict[int, float]:
        """Exact costs of removals in the order given, until the estimates of the rest are too high."""
        costs: dict[int, float] = {}
        for unit, estimate in likely.items():
            least = min(self._per_price(costs), default=np.inf)
            if estimate > slack * least:
                break
            costs[unit] = exact_cost(unit)
        return costs

    def _removal_cost(self, unit: int) -> float:
        """By how much the value rises if a chosen unit is removed and all others are refitted."""
        return max(-self._decrease_to(frozenset(self.support) - {unit}), 0.0)

    def _likely_cheapest(self) -> int | None:
        """The removal that costs least after a refit, as far as that is found without refitting many."""
        found = self.cheapest_removal("refit")
        return None if found is None else found[0]

    def _refitted_swap(self, out: int, into: int) -> Swap:
        return Swap(out, into, self._decrease_to(frozenset(self.support) - {out} | {into}))

    def _find_swap(self) -> Swap | None:
        pairs: list[tuple[float, int, int]] = []
        for out, cost, gains in self._swap_estimates():
            least = self.shortlist.least_swap_share * cost
            gains[self.support] = -np.inf
            if gains.max() <= least:
                continue
            gains[~self._may_replace(out)] = -np.inf
            likely = [unit for unit in highest_scores(gains, self.shortlist.swaps) if gains[unit] > least]
            pairs += [(float(gains[unit]) - cost, out, unit) for unit in likely]
        for out, into in self._likely_swaps(pairs):
            swap = self._refitted_swap(out, into)
            if is_lower(self.value - swap.decrease, self.value, self.negligible) and not self._is_redundant(into, out):
                return swap
        return None

    def _likely_swaps(self, pairs: list[tuple[float, int, int]]) -> list[tuple[int, int]]:
        """The swaps (out, into) to refit, from (estimated decrease, out, into): the best, no unit too often."""
        likely: list[tuple[int, int]] = []
        for _, out, into in sorted(pairs, key=lambda pair: (-pair[0], pair[2], pair[1])):
            if sum(into == other for _, other in likely) < self.shortlist.swaps_per_unit:
                likely.append((out, into))
            if len(likely) == self.shortlist.swaps:
                break
        return likely
