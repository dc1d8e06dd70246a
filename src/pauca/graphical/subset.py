"""A Gaussian graph kept fitted while edges come and go: closed forms rank, refits of single blocks decide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pauca.constraints.limits import Limits
from pauca.graphical.blocks import components
from pauca.graphical.covariance_update import ModelCovariance
from pauca.graphical.mle import Optimum
from pauca.graphical.objective import GaussianGraph, least_cost
from pauca.model import Model, Snapshot
from pauca.subsets.base import TRUE_SWAPS, Swap, digest, first_largest, first_looks, first_smallest, highest, is_lower
from pauca.subsets.refitted import RefitSubset
from pauca.tolerances import NEGLIGIBLE

# How many of those that closed forms rank first are refitted. An edge between two parts of the graph needs none.
TRUE_ADDITIONS = 8
TRUE_REMOVALS = 3

# A candidate whose closed form is below this share of the best found in truth is not looked at, and one for an exchange
# if it is below this share of what the exchange costs: a refit may gain far more where there are cycles.
WORTH_A_LOOK = 0.5
WORTH_A_SWAP = 0.1

# How many replacements are looked at in truth beyond those that are wanted.
MORE_REPLACEMENTS = 2


# What edges of a block with no more than so many are worth is found by refits.
WORTH_REFITS = 400

# Matrices Sigma are kept of the run's own graph and of those of its scouts. Optima are lists of blocks, and many are.
KEPT_POINTS = 8
KEPT_OPTIMA = 1024

# Of so few nodes Sigma is made anew rather than followed.
INVERTED_ANEW = 100


class SubsetCache:
    """What all subsets of one likelihood share: optima, points and the answers that depend on the edges alone."""

    def __init__(self, graph: GaussianGraph, limits: Limits) -> None:
        self.graph = graph
        self.limits = limits
        self._optima: dict[frozenset[int], Optimum] = {}
        self._points: dict[frozenset[int], ModelCovariance] = {frozenset(): ModelCovariance(np.eye(graph.n_nodes), 0.0)}
        self.additions: dict[tuple[frozenset[int], str, bool], int] = {}
        self.swaps: dict[frozenset[int], Swap | None] = {}

    def optimum(self, support: frozenset[int], near: frozenset[int]) -> Optimum:
        """The optimum on some edges, looked for from that on others."""
        if support not in self._optima:
            found = self._from(support, near)
            while len(self._optima) >= KEPT_OPTIMA:
                self._optima.pop(next(iter(self._optima)))
            self._optima[support] = found
        return self._optima[support]

    def point(self, support: frozenset[int]) -> ModelCovariance:
        """Sigma at the optimum on some edges: from the last that was made, if that is near, or from Theta."""
        found = self._points.pop(support, None)
        if found is None:
            found = self._followed(support, next(reversed(self._points)))
        self._points[support] = found
        while len(self._points) > KEPT_POINTS:
            self._points.pop(next(iter(self._points)))
        return found

    def _from(self, support: frozenset[int], near: frozenset[int]) -> Optimum:
        came, went, maxima = support - near, near - support, self.graph.mle

        def sigma() -> np.ndarray:
            return self.point(near).sigma

        known = self._optima.get(near)
        if known is not None and len(came) == 1 and not went:
            return maxima.with_edge(known, next(iter(came)), sigma)
        if known is not None and len(went) == 1 and not came:
            return maxima.without_edge(known, next(iter(went)), sigma)
        return maxima.fit(support, sigma)

    def _followed(self, support: frozenset[int], last: frozenset[int]) -> ModelCovariance:
        optimum, before, p = self.optimum(support, last), self._points[last], self.graph.n_nodes
        if before.may_update and p > INVERTED_ANEW:
            change = optimum.change_from(self.optimum(last, frozenset()))
            part = components(p, *optimum.tree.ends(change.kept))
            found = before.updated_between_parts(change.nodes, change.after, part, p - optimum.value)
            if found is None and 4 * len(change.nodes) <= p:
                found = before.updated(change.nodes, change.after - change.before)
            if found is not None:
                return found
        made = ModelCovariance.of_precision(optimum.theta(p))
        assert made is not None
        return made


class GraphSubset(RefitSubset):
    """The fitted graph on a set of edges; every answer is a function of that set alone, but for rounding.

    The protocol is that of ``pauca.subsets.base.Subset``. Units are the numbers of ``Edges``. Whatever is asked costs
    as much as the blocks it changes, where an objective that knows nothing of graphs would refit all entries.
    """

    def __init__(self, ground: SubsetCache) -> None:
        self._cache = ground
        self.graph = ground.graph
        self.limits = ground.limits
        self.null_value = float(ground.graph.n_nodes)
        self.negligible = NEGLIGIBLE * self.null_value
        self.perfect_below = -np.inf
        self.support: list[int] = []
        self.null = self.snapshot()
        for unit in self.limits.always:
            self.add(unit)

    @classmethod
    def start(cls, graph: GaussianGraph, limits: Limits | None = None) -> GraphSubset:
        """The least subset of a likelihood: the edges that are always in."""
        return cls(SubsetCache(graph, limits or Limits()))

    @property
    def value(self) -> float:
        """Q at the optimum, for the correlations."""
        return self._optimum().value

    def best_addition(self, rule: str) -> int | None:
        """The edge that ``rule`` ranks first: by closed form, by the gradient, or by what a refit gains."""
        key = (self._key, rule, self.limits is self._cache.limits)
        if key not in self._cache.additions:
            addable = self._addable()
            if not addable.any():
                return None
            self._cache.additions[key] = self._first(rule, addable)
        return self._cache.additions[key]

    def decrease(self, unit: int) -> float:
        """By how much Q falls if an edge is added and all is refitted."""
        return self.value - self._optimum(self._key | {unit}).value

    def cheapest_removal(self, removal: str, at_most: float = np.inf) -> tuple[int, float] | None:
        """The edge whose removal costs least, and what it costs; None if every one costs far more than ``at_most``."""
        removable = self.limits.removable(self.support)
        units = [unit for unit, may in zip(self.support, removable, strict=True) if may]
        if not units:
            return None
        if removal == "zero":
            costs = self._costs_of_zero(units)
            place = first_smallest(self.limits.per_price(costs, units), units)
            return units[place], float(costs[place])
        estimates = self._optimum().removal_costs(units)
        payable = np.flatnonzero(least_cost(estimates) <= at_most)
        known = {units[place]: float(estimates[place]) for place in payable}
        ranked = sorted(known, key=lambda unit: (self._per_price(known[unit], unit), unit))[:TRUE_REMOVALS]
        too_dear = self._too_dear(ranked, at_most)
        true: dict[int, float] = {}
        for unit in ranked:
            least = min((self._per_price(cost, other) for other, cost in true.items()), default=np.inf)
            if WORTH_A_LOOK * self._per_price(known[unit], unit) > least:
                break
            if unit not in too_dear:
                true[unit] = self._cost_of_refit(unit)
        if not true:
            return None
        looked_at = list(true)
        place = first_smallest(np.array([self._per_price(true[unit], unit) for unit in looked_at]), looked_at)
        return looked_at[place], true[looked_at[place]]

    def best_swap(self) -> Swap | None:
        """The exchange of one edge that lowers Q most among those that closed forms rank first; None if none does."""
        key = self._key
        if key not in self._cache.swaps:
            self._cache.swaps[key] = self._best_swap()
        return self._cache.swaps[key]

    def replacements(self, count: int) -> dict[int, list[Swap]]:
        """For every edge the ``count`` best others in its place."""
        found: dict[int, list[Swap]] = {}
        for out in self.support:
            likely = highest(self._gains_without(out), count + MORE_REPLACEMENTS)
            swaps = [self._swapped(out, into) for into in likely]
            found[out] = sorted(swaps, key=lambda swap: (-swap.decrease, swap.into))[:count]
        return found

    def add(self, unit: int) -> None:
        """Take an edge in and refit."""
        self._stand([*self.support, unit])

    def drop(self, unit: int) -> None:
        """Leave an edge out and refit."""
        self._stand([other for other in self.support if other != unit])

    def fill(self) -> None:
        """Start from all edges."""
        units = np.flatnonzero(self.limits.startable(len(self.graph.edges))).tolist()
        self._stand(units)

    def restarted(self) -> GraphSubset:
        """The subset a run starts from."""
        return GraphSubset(self._cache)

    def snapshot(self) -> Snapshot:
        """The fitted graph as it is now: its edges, their entries, and the diagonal in place of an intercept."""
        optimum, units = self._optimum(), tuple(sorted(self.support))
        return Snapshot(
            units,
            optimum.entries(units),
            optimum.value,
            np.zeros(0),
            optimum.diagonal(self.graph.n_nodes),
            optimum.removal_costs(units),
        )

    def finish(self, snapshots: list[Snapshot], answer: int) -> list[Model]:
        """The graphs in the user's units; what edges of very large blocks are worth stays an estimate."""
        models = [self._model(found) for found in snapshots]
        chosen = self.copy()
        chosen.support = list(snapshots[answer].support)
        if all(len(block.edges) <= WORTH_REFITS for block in chosen._optimum().cyclic.values()):
            worth = np.array([chosen._cost_of_refit(unit) for unit in chosen.support])
            models[answer] = replace(models[answer], importance=worth, importance_is_exact=True)
        return models

    def held_back(self) -> bool:
        """Whether an edge is left out by the limits alone."""
        could = np.ones(len(self.graph.edges), dtype=bool)
        could[[*self.limits.never, *self.support]] = False
        return bool(np.any(could & ~self._addable()))

    def data_key(self) -> bytes:
        """What tells these correlations from others."""
        return digest((self.graph.correlation, self.graph.spread))

    def dependent(self) -> np.ndarray:
        """None: where edges depend on others there is no maximum, which is an error."""
        return np.zeros(0, dtype=np.intp)

    @property
    def _key(self) -> frozenset[int]:
        return frozenset(self.support)

    def _optimum(self, support: frozenset[int] | None = None) -> Optimum:
        key = self._key
        return self._cache.optimum(key if support is None else support, key)

    def _stand(self, support: list[int]) -> None:
        self._cache.optimum(frozenset(support), self._key)
        self.support = support
        self._cache.point(self._key)

    def _model(self, found: Snapshot) -> Model:
        """A graph in the user's units: Theta and Q for the covariance."""
        graph = self.graph
        edges = np.array(found.support, dtype=np.intp)
        ends = graph.spread[graph.edges.first[edges]] * graph.spread[graph.edges.second[edges]]
        assert found.intercept is not None
        assert found.importance is not None
        return Model(
            support=edges,
            coef=found.coef / ends,
            intercept=0.0,
            objective=found.value + graph.shift,
            importance=found.importance,
            units=edges,
            importance_is_exact=False,
            free=found.intercept / graph.spread**2,
        )

    def _costs_of_zero(self, units: list[int]) -> np.ndarray:
        sigma = self._cache.point(self._key).sigma
        return self.graph.zero_costs(sigma, np.array(units), self._optimum().entries(units))

    def _too_dear(self, units: list[int], at_most: float) -> set[int]:
        """Edges of large blocks that cost more than ``at_most``, seen by a sharper look."""
        found: set[int] = set()
        for block in self._optimum().cyclic.values():
            held = [unit for unit in units if unit in block.edges]
            if held and not block.is_small and at_most < np.inf:
                sigma = self._cache.point(self._key).sigma[np.ix_(block.nodes, block.nodes)]
                costs = block.refined_removal_costs(held, sigma)
                found |= {unit for unit, cost in costs.items() if least_cost(cost) > at_most}
        return found

    def _cost_of_refit(self, unit: int) -> float:
        """What leaving out an edge costs once all is refitted: only its own block is fitted anew."""
        block = self._optimum().block(unit)
        if block is None:
            return float(self._optimum().removal_costs([unit])[0])
        rest = self.graph.mle.block_without_edge(block, unit, lambda: self._cache.point(self._key).sigma)
        return max(block.logdet + rest.value - self.graph.n_nodes, 0.0)

    def _addable(self) -> np.ndarray:
        return self.limits.addable(self.support, len(self.graph.edges))

    def _first(self, rule: str, addable: np.ndarray) -> int:
        sigma = self._cache.point(self._key).sigma
        if rule == "gradient":
            slopes = np.square(self.graph.slopes(sigma))
            return first_largest(np.where(addable, self.limits.per_price(slopes), -np.inf))
        gains = np.where(addable, self.limits.per_price(self.graph.edge_gains(sigma)), -np.inf)
        if rule == "objective":
            return first_largest(gains)
        found: dict[int, float] = {}
        for unit in highest(gains, TRUE_ADDITIONS):
            if gains[unit] < WORTH_A_LOOK * max(found.values(), default=0.0):
                break
            found[unit] = self._per_price(self.decrease(unit), unit)
        looked_at = sorted(found)
        return looked_at[first_largest(np.array([found[unit] for unit in looked_at]))]

    def _swapped(self, out: int, into: int) -> Swap:
        return Swap(out, into, self.value - self._optimum(self._key - {out} | {into}).value)

    def _gains_without(self, out: int) -> np.ndarray:
        """What every other edge gains by closed form once an edge is out and all is refitted."""
        allowed = self.limits.exchangeable(self.support, out, len(self.graph.edges))
        if not allowed.any():
            return np.full(len(allowed), -np.inf)
        sigma = self._cache.point(self._key - {out}).sigma
        return np.where(allowed, self.graph.edge_gains(sigma), -np.inf)

    def _best_swap(self) -> Swap | None:
        pairs: list[tuple[float, int, int]] = []
        for out in self.support:
            gains, cost = self._gains_without(out), self._cost_of_refit(out)
            likely = [unit for unit in highest(gains, TRUE_SWAPS) if gains[unit] > WORTH_A_SWAP * cost]
            pairs += [(float(gains[unit]) - cost, out, unit) for unit in likely]
        for out, into in first_looks(pairs):
            swap = self._swapped(out, into)
            if is_lower(self.value - swap.decrease, self.value, self.negligible):
                return swap
        return None
