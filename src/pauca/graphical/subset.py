"""A Gaussian graph kept fitted while edges come and go: closed forms rank, refits of single blocks decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from pauca.constraints.limits import Limits
from pauca.graphical.blocks import components
from pauca.graphical.covariance_update import ModelCovariance
from pauca.graphical.mle import Optimum
from pauca.graphical.objective import GaussianGraph, least_cost
from pauca.model import Model, Snapshot
from pauca.subsets.base import digest
from pauca.subsets.fit_cache import RecentTable
from pauca.subsets.refitted_subset import AdditionScores, RefittedSubset, Shortlist, SubsetCache
from pauca.tolerances import NEGLIGIBLE

# Importances of the edges of a block with no more than so many are found by refits.
IMPORTANCE_REFITS = 400

# Matrices Sigma are kept of the run's own graph and of those of its scouts. Optima are lists of blocks, and many are.
KEPT_COVARIANCES = 8
KEPT_OPTIMA = 1024

# Up to so many nodes Sigma is found by inverting Theta rather than by an update.
INVERTED_UP_TO = 100


class GraphCache(SubsetCache):
    """What all subsets of one likelihood share: optima, and covariances at them."""

    def __init__(self, graph: GaussianGraph, limits: Limits) -> None:
        super().__init__(limits)
        self.graph = graph
        self._optima = RecentTable[Optimum]()
        self._covariances = RecentTable[ModelCovariance]({frozenset(): ModelCovariance(np.eye(graph.n_nodes), 0.0)})

    def optimum(self, support: frozenset[int], near: frozenset[int]) -> Optimum:
        """The optimum on some edges, starting from that on others."""
        found = self._optima.get(support)
        if found is None:
            found = self._refitted(support, near)
            self._optima.keep(support, found, KEPT_OPTIMA)
        return found

    def covariance(self, support: frozenset[int]) -> ModelCovariance:
        """Sigma at the optimum on some edges: updated from the most recent one, if that is near, or from Theta."""
        found = self._covariances.get(support)
        if found is None:
            found = self._updated(support, next(reversed(self._covariances)))
        self._covariances.keep(support, found, KEPT_COVARIANCES)
        return found

    def _refitted(self, support: frozenset[int], near: frozenset[int]) -> Optimum:
        came, went, mle = support - near, near - support, self.graph.mle

        def sigma() -> np.ndarray:
            return self.covariance(near).sigma

        known = self._optima.get(near)
        if known is not None and len(came) == 1 and not went:
            return mle.with_edge(known, next(iter(came)), sigma)
        if known is not None and len(went) == 1 and not came:
            return mle.without_edge(known, next(iter(went)), sigma)
        return mle.fit(support, sigma)

    def _updated(self, support: frozenset[int], last: frozenset[int]) -> ModelCovariance:
        optimum, before, p = self.optimum(support, last), self._covariances[last], self.graph.n_nodes
        if before.may_update and p > INVERTED_UP_TO:
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


class GraphSubset(RefittedSubset[GraphCache]):
    """The fitted graph on a set of edges.

    Units are the numbers of ``Edges``. Every answer costs as much as the blocks it changes, where an objective that
    knows nothing of graphs would refit all entries.
    """

    # An edge between two parts of the graph needs no refit, so more are tried. Where there are cycles a refit may gain
    # far more than the closed form, so few are passed over for a swap.
    shortlist = Shortlist(additions=8, most_additions=8, least_swap_share=0.1)
    unit_noun = "edges"

    def __init__(self, cache: GraphCache) -> None:
        self.graph = cache.graph
        self.usable = np.ones(len(cache.graph.edges), dtype=bool)
        self.null_value = float(cache.graph.n_nodes)
        self.negligible = NEGLIGIBLE * self.null_value
        self.perfect_below = -np.inf
        super().__init__(cache)

    @classmethod
    def start(cls, graph: GaussianGraph, limits: Limits | None = None) -> GraphSubset:
        """The least subset of a likelihood: the edges that are always in."""
        return cls(GraphCache(graph, limits or Limits()))

    @property
    def value(self) -> float:
        """Q at the optimum, for the correlations."""
        return self._optimum.value

    def snapshot(self) -> Snapshot:
        """The fitted graph as it is now: its edges, their entries, and the diagonal as an intercept."""
        optimum, units = self._optimum, tuple(sorted(self.support))
        return Snapshot(
            units,
            optimum.entries(units),
            optimum.value,
            np.zeros(0),
            optimum.diagonal(self.graph.n_nodes),
            optimum.removal_costs(units),
        )

    def finish(self, snapshots: list[Snapshot], answer: int | None) -> list[Model]:
        """The graphs in the user's units; importances of the edges of very large blocks remain estimates."""
        models = [self._model(found) for found in snapshots]
        if answer is None:
            return models
        chosen = self.copy()
        chosen.support = list(snapshots[answer].support)
        if all(len(block.edges) <= IMPORTANCE_REFITS for block in chosen._optimum.cyclic.values()):
            importance = np.array([chosen._removal_cost(unit) for unit in chosen.support])
            models[answer] = replace(models[answer], importance=importance, importance_is_exact=True)
        return models

    def data_key(self) -> bytes:
        """A digest of the correlations and the scale."""
        return digest((self.graph.correlation, self.graph.spread))

    @property
    def _key(self) -> frozenset[int]:
        return frozenset(self.support)

    @property
    def _optimum(self) -> Optimum:
        return self._cache.optimum(self._key, self._key)

    @property
    def _sigma(self) -> np.ndarray:
        return self._cache.covariance(self._key).sigma

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

    def coefficient_sizes(self) -> np.ndarray:
        """Sizes of the chosen entries of Theta, for the covariance."""
        edges, spread = np.array(self.support, dtype=np.intp), self.graph.spread
        ends = spread[self.graph.edges.first[edges]] * spread[self.graph.edges.second[edges]]
        return np.abs(self._optimum.entries(self.support)) / ends

    def _move_to(self, support: list[int]) -> None:
        self._cache.optimum(frozenset(support), self._key)
        self.support = support
        self._cache.covariance(self._key)

    def _decrease_to(self, support: frozenset[int]) -> float:
        return self.value - self._cache.optimum(support, self._key).value

    def _removal_cost(self, unit: int) -> float:
        """What removing an edge costs after a refit: only its own block is fitted again."""
        block = self._optimum.block(unit)
        if block is None:
            return float(self._optimum.removal_costs([unit])[0])
        rest = self.graph.mle.block_without_edge(block, unit, lambda: self._sigma)
        return max(block.logdet + rest.value - self.graph.n_nodes, 0.0)

    def _score_additions(self, rule: str, addable: np.ndarray, slack: float | None, count: int = 1) -> AdditionScores:
        if rule == "gradient":
            return AdditionScores(np.square(self.graph.slopes(self._sigma)), exact=True)
        return AdditionScores(self.graph.edge_gains(self._sigma), exact=rule == "objective")

    def _gain_alone(self, unit: int) -> float:
        return float(self.graph.edge_gains(self._sigma)[unit])

    def _removal_estimates(self, units: Sequence[int]) -> np.ndarray:
        return self._optimum.removal_costs(units)

    def _affordable(self, estimates: np.ndarray, at_most: float, slack: float) -> np.ndarray:
        return np.asarray(least_cost(estimates) <= at_most)

    def _likely_removals(self, units: list[int], at_most: float, slack: float, count: int | None) -> dict[int, float]:
        likely = super()._likely_removals(units, at_most, slack, count)
        too_costly = self._too_costly(list(likely), at_most)
        return {unit: estimate for unit, estimate in likely.items() if unit not in too_costly}

    def _too_costly(self, units: list[int], at_most: float) -> set[int]:
        """Edges of large blocks that cost more than ``at_most``, by a sharper lower bound."""
        found: set[int] = set()
        for block in self._optimum.cyclic.values():
            held = [unit for unit in units if unit in block.edges]
            if held and not block.is_small and at_most < np.inf:
                costs = block.refined_removal_costs(held, self._sigma[np.ix_(block.nodes, block.nodes)])
                found |= {unit for unit, cost in costs.items() if least_cost(cost) > at_most}
        return found

    def _zero_costs(self, units: list[int], at_most: float, slack: float) -> dict[int, float]:
        costs = self.graph.zero_costs(self._sigma, np.array(units), self._optimum.entries(units))
        return dict(zip(units, costs.tolist(), strict=True))

    def _swap_estimates(self) -> Iterator[tuple[int, float, np.ndarray]]:
        for out, gains in self._replacement_estimates():
            yield out, self._removal_cost(out), gains

    def _replacement_estimates(self) -> Iterator[tuple[int, np.ndarray]]:
        """Gains by closed form once an edge is out and all others are refitted."""
        for out in self.support:
            if self._may_replace(out).any():
                yield out, self.graph.edge_gains(self._cache.covariance(self._key - {out}).sigma)
