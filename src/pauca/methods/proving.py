"""From the subset of a search to lower bounds of every size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from pauca.constraints.units import Limits
from pauca.model import Snapshot
from pauca.relaxations.diagonal import base_diagonal, rounding_slack
from pauca.relaxations.engine import compiled_engine
from pauca.relaxations.perspective import Quadratic
from pauca.relaxations.proof import SizeProof
from pauca.relaxations.tree import Forest, Incumbent, Tree
from pauca.subsets.base import Subset
from pauca.subsets.least_squares import LeastSquaresSubset
from pauca.tolerances import COPY_ABOVE

# The Gram matrix of more columns than this is not formed (128 MB).
MOST_DENSE = 4000

# Nodes after which compiled code is worth loading.
COMPILED_FROM = 200

# Where rounding can add more than this share of the empty model's value to a bound, there is none worth the name.
MOST_SLACK = 1e-4

NOT_SUPPORTED = (
    "no lower bound is known for this problem: proofs are for squared error of one output, without feature_groups "
    "(max_per_group is fine) and without bounds on coefficients"
)
NO_RIDGE = (
    "no lower bound exists: without a ridge there must be more rows than columns, and the columns must be linearly "
    "independent. Set a small ridge, such as ridge=1e-3 on standardised columns, or leave out columns"
)
TOO_WIDE = f"no lower bound was computed: there are more than {MOST_DENSE} columns"


class NoBoundError(ValueError):
    """There is no lower bound, and the message says why."""


@dataclass(frozen=True, eq=False)
class Bounding:
    """The problem behind a subset, over the columns that may be chosen."""

    quadratic: Quadratic
    diagonal: np.ndarray
    columns: np.ndarray
    """Candidates: the columns of the problem among those of X."""
    limits: Limits
    n_rows: int

    @classmethod
    def of(cls, subset: Subset) -> Bounding:
        """The problem of a subset; raises ``NoBoundError`` where there is no bound."""
        if not isinstance(subset, LeastSquaresSubset):
            raise NoBoundError(NOT_SUPPORTED)
        columns = candidates(subset)
        if len(columns) > MOST_DENSE:
            raise NoBoundError(TOO_WIDE)
        objective = subset.objective
        hessian = subset.gram.rows(columns, columns)
        hessian = 0.5 * (hessian + hessian.T)
        kept = _without_copies(hessian, columns, subset.limits)
        columns, hessian = columns[kept], hessian[np.ix_(kept, kept)]
        penalty = objective.penalty[columns]
        np.fill_diagonal(hessian, 1.0 + penalty)
        diagonal = base_diagonal(hessian, penalty) if len(columns) else None
        if diagonal is None:
            raise NoBoundError(NO_RIDGE)
        quadratic = Quadratic(hessian, objective.slope[columns], objective.null_value)
        if rounding_slack(quadratic, diagonal, objective.design.n_rows) > MOST_SLACK * objective.null_value:
            raise NoBoundError(NO_RIDGE)
        return cls(quadratic, diagonal, columns, _restricted(subset.limits, columns), objective.design.n_rows)

    def forest(self, models: Mapping[int, Snapshot], within: float | None = None) -> Forest:
        """The trees of some sizes; ``models`` are the best known."""
        incumbents = [
            Incumbent(size, model.value, tuple(np.searchsorted(self.columns, sorted(model.support)).tolist()))
            for size, model in models.items()
            if size >= len(self.limits.always) and size and set(model.support) <= set(self.columns.tolist())
        ]
        return Forest(self.quadratic, self.diagonal, incumbents, n_rows=self.n_rows, limits=self.limits, within=within)

    def proof(self, tree: Tree) -> SizeProof:
        """What a tree has proved so far."""
        return SizeProof(
            float(tree.value),
            float(min(tree.lower_bound, tree.value)),
            tree.nodes,
            tuple(self.columns[list(tree.always_in)].tolist()),
            tuple(self.columns[list(tree.never_in)].tolist()),
        )

    def support(self, tree: Tree) -> tuple[int, ...]:
        """The best model of a tree, by columns of X."""
        return tuple(self.columns[list(tree.support)].tolist())


def candidates(subset: LeastSquaresSubset) -> np.ndarray:
    """The columns that may be chosen."""
    usable = subset.objective.design.usable & subset.limits.startable(subset.objective.design.n_features)
    return np.flatnonzero(usable)


def _without_copies(hessian: np.ndarray, columns: np.ndarray, limits: Limits) -> np.ndarray:
    """Mask without the copies of columns before them: a search chooses one of them, and one is as good as the other.

    Of a column that is always in, the copies go.
    """
    copies = np.triu(np.abs(hessian) >= COPY_ABOVE, 1)
    forced = np.isin(columns, limits.always)
    lost = np.any(copies & ~(forced & ~forced[:, None]), axis=0)
    lost |= np.any(copies & (forced & ~forced[:, None]), axis=1)
    return ~lost


def _restricted(limits: Limits, columns: np.ndarray) -> Limits:
    """The limits over some columns only."""
    return replace(
        limits,
        always=tuple(np.searchsorted(columns, sorted(limits.always)).tolist()),
        never=(),
        price=None if limits.price is None or limits.budget is None else limits.price[columns],
        kind=None if limits.kind is None or limits.most is None else limits.kind[columns],
    )


def grow(forest: Forest, relative_gap: float, most_nodes: float = np.inf, *, compiled: bool = True) -> Iterator[None]:
    """Plant the trees and grow them until all are proved, or within the gap, or as large as they may be.

    Yields after every round, for whoever watches the time. Trees that grow large are left to compiled code, where numba
    is installed and ``compiled`` allows it.
    """
    forest.plant()
    yield None
    while not forest.full and any(
        tree.nodes < most_nodes and tree.lower_bound < tree.value * (1 - relative_gap) for tree in forest.open
    ):
        if compiled and sum(tree.nodes for tree in forest.trees.values()) > COMPILED_FROM:
            forest.engine, compiled = compiled_engine() or forest.engine, False
        forest.advance(most_nodes)
        yield None
