"""Proofs of the models that a search has found: from its subset to lower bounds of every size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg.blas import dsyrk

from pauca.constraints.limits import Limits
from pauca.design import ChunkedDesign, GatheredDesign
from pauca.model import Snapshot
from pauca.objectives import LeastSquares
from pauca.relaxations.backends import can_compile, compiled_backend, loaded_backend
from pauca.relaxations.bounds_without_gram import Products, root_bounds
from pauca.relaxations.diagonal import base_diagonal, rounding_share, rounding_slack
from pauca.relaxations.forest import Forest
from pauca.relaxations.perspective import Quadratic
from pauca.relaxations.size_proof import PROVED_WITHIN, SizeProof
from pauca.relaxations.smooth import SmoothForest, SmoothProblem
from pauca.relaxations.tree import BEST_ONLY, BETTER_BY, Incumbent, Wanted
from pauca.relaxations.tree_without_gram import WideForest
from pauca.subsets.base import Subset
from pauca.subsets.least_squares import LeastSquaresSubset
from pauca.subsets.smooth import SmoothSubset
from pauca.tolerances import COPY_ABOVE

# Up to this many columns all sizes share one Gram matrix; beyond, what is left of every size after a first bound has
# its own, of at most this many columns.
MOST_DENSE = 1000
MOST_LEFT = 5000

# Nodes after which compiled code is worth loading.
COMPILED_FROM = 200

# Rows that are multiplied at a time.
GRAM_ROWS = 512

# Where rounding can add more than this share of the empty model's value to a bound, there is no useful one.
MOST_SLACK = 1e-4

# Columns of a smooth loss are gathered for the proof, and those that products were needed of are kept for others, up to
# this many numbers (64 MB).
MOST_GATHERED = 1 << 23

NOT_SUPPORTED = (
    "no lower bound is known for this problem: proofs are for one output or two classes, columns that are chosen one "
    "by one (neither feature_groups nor columns of text with three or more levels; max_per_group is fine), and no "
    "bounds on coefficients; not for times to an event or ordered classes"
)
HEREDITY = "no lower bound was computed: proofs are for models without heredity"
NOT_SMOOTH = "no lower bound is known for this problem: proofs are for smooth losses"
ONLY_SQUARED = "lists of good models are for squared error: they were not computed for this loss"
LOSS_WITHOUT_RIDGE = (
    "no lower bound exists: losses other than squared error need a ridge for one. Set a small ridge, such as ridge=0.01"
)
NO_CONJUGATE = (
    "no lower bound is known for this loss: it has no conjugate. Give its class the method conjugate(y, t), see "
    "help(pauca.losses.Loss.conjugate), and set a ridge"
)
LOSS_TOO_LARGE = "no lower bound was computed: for losses other than squared error the table is too large"
NO_RIDGE = (
    "no lower bound exists: without a ridge there must be more rows than columns, and the columns must be linearly "
    "independent. Set a small ridge, such as ridge=0.001, or leave out columns"
)
WIDE_WITHOUT_RIDGE = (
    "no lower bound exists: without a ridge there must be more rows than columns. Set a ridge, such as ridge=0.3 on "
    "standardised columns (with much smaller ones there is a bound, but hardly a proof), or leave out columns"
)


class NoBoundError(ValueError):
    """There is no lower bound, and the message says why."""


@dataclass(eq=False)
class _Part:
    """Trees over some of the columns."""

    columns: np.ndarray
    """The columns of the trees among those of X."""
    forest: Forest | SmoothForest | WideForest


class Proofs:
    """The proofs of some sizes under way.

    Up to ``MOST_DENSE`` columns all sizes share one Gram matrix. On wider tables every size is bounded first over all
    columns; a tree is then grown over those that the bound has not ruled out, if they are few enough.
    """

    def __init__(self, subset: Subset, models: Mapping[int, Snapshot], wanted: Wanted = BEST_ONLY) -> None:
        """Start the proofs of ``models``; raises ``NoBoundError`` where there is no bound."""
        if subset.limits.heredity is not None:
            raise NoBoundError(HEREDITY)
        least = max(1, len(subset.limits.always))
        self._waiting = {size: model for size, model in models.items() if size >= least}
        self._roots: dict[int, float] = {}
        self._parts: list[_Part] = []
        self._of_size: dict[int, _Part] = {}
        self._wanted = wanted
        self.copies: set[int] = set()
        """Columns that copy others, and are in no model: a search chooses one of them."""
        if isinstance(subset, SmoothSubset):
            self._add_smooth_part(subset)
            return
        if not isinstance(subset, LeastSquaresSubset):
            raise NoBoundError(NOT_SUPPORTED)
        self._subset = subset
        self._n_rows = subset.objective.design.n_rows
        self._columns = subset.limits.candidates(subset.objective.design.usable)
        if not len(self._columns):
            raise NoBoundError(NO_RIDGE)
        if len(self._columns) <= MOST_DENSE:
            self._add_part(self._columns, self._waiting)
        elif not subset.objective.ridge:
            raise NoBoundError(self._without_ridge)

    @property
    def _without_ridge(self) -> str:
        """Why there is no bound without a ridge, and which ridge has a chance of a proof."""
        return WIDE_WITHOUT_RIDGE if len(self._columns) >= self._n_rows else NO_RIDGE

    @property
    def sizes(self) -> list[int]:
        """Sizes with a bound."""
        return sorted({*self._of_size, *self._roots})

    def proof(self, size: int) -> SizeProof:
        """What is proved of a size so far."""
        root = self._roots.get(size, 0.0)
        part = self._of_size.get(size)
        if part is None:
            return SizeProof(float(self._waiting[size].value), min(root, float(self._waiting[size].value)))
        tree = part.forest.trees[size]
        return SizeProof(
            float(tree.value),
            float(min(max(tree.lower_bound, root), tree.value)),
            tree.nodes,
            tuple(part.columns[list(tree.always_in)].tolist()),
            tuple(part.columns[list(tree.never_in)].tolist()),
        )

    def support(self, size: int) -> tuple[int, ...]:
        """The best model of a size, by columns of X."""
        part = self._of_size.get(size)
        if part is None:
            return self._waiting[size].support
        return tuple(part.columns[list(part.forest.trees[size].support)].tolist())

    def collected(self, size: int) -> tuple[list[tuple[float, tuple[int, ...]]], bool]:
        """The requested models, best first, and whether these are proved to be the ones."""
        part = self._of_size.get(size)
        if part is None:
            return [(float(self._waiting[size].value), self._waiting[size].support)], False
        tree = part.forest.trees[size]
        found = sorted((float(value), columns) for columns, value in tree.collected.items() if value <= tree.cut)
        complete = not tree.open and bool(tree.slack <= PROVED_WITHIN * tree.value)
        return [(value, tuple(part.columns[list(columns)].tolist())) for value, columns in found], complete

    def bound_roots_only(self) -> None:
        """The bounds that the sizes have without trees and without better diagonals."""
        for part in self._parts:
            if isinstance(part.forest, Forest):
                part.forest.improves = False
        for _ in self.grow(0.0, 0, compiled=False):
            pass

    def grow(self, relative_gap: float, most_nodes: float = np.inf, *, compiled: bool = True) -> Iterator[None]:
        """Plant the trees and grow them until all are proved, or within the gap, or as large as they may be.

        Yields after every round, for whoever watches the time. Trees that grow large are left to compiled code, where
        numba is installed and ``compiled`` allows it.
        """
        if not self._parts:
            yield from self._bound_roots()
        for part in self._parts:
            part.forest.backend = loaded_backend() if compiled else part.forest.backend
            if isinstance(part.forest, Forest):
                goes_deep = compiled and most_nodes == np.inf
                part.forest.goes_deep = goes_deep and can_compile(depth_first=True)
            part.forest.plant()
            yield None
        work = [part.forest for part in self._parts]
        while work := [forest for forest in work if _wants_more(forest, relative_gap, most_nodes)]:
            if compiled and sum(tree.nodes for forest in work for tree in forest.trees.values()) > COMPILED_FROM:
                backend, compiled = compiled_backend(), False
                for forest in work:
                    forest.backend = backend or forest.backend
            for forest in work:
                forest.advance(most_nodes)
                yield None

    def _bound_roots(self) -> Iterator[None]:
        """Bounds of all sizes over all columns, and trees where few columns are left."""
        objective, limits = self._subset.objective, self._subset.limits
        usable = np.zeros(objective.design.n_features, dtype=bool)
        usable[self._columns] = True
        slack = rounding_share(len(usable), self._n_rows) * objective.null_value
        slack *= float(np.max(objective.curvature[self._columns] / objective.penalty[self._columns]))
        incumbents = [
            Incumbent(size, self._sought(model.value), tuple(sorted(model.support)))
            for size, model in self._waiting.items()
        ]
        closed = {one.size: one.value for one in incumbents if one.size == len(limits.always)}
        if not limits.always:
            gains = 0.5 * objective.slope[usable] ** 2 / objective.curvature[usable]
            closed[1] = objective.null_value - float(gains.max())
        incumbents = [one for one in incumbents if one.size not in closed]
        penalty = np.where(usable, objective.penalty, 1.0) * (1 - 1e-12)
        products = Products(_DesignColumns(objective), objective.slope, penalty, objective.null_value)
        found = {}
        if incumbents:
            found = root_bounds(products, incumbents, always=limits.always, usable=usable, slack=slack)
        self._roots = {size: max(0.0, bound - slack) for size, bound in closed.items() if size in self._waiting}
        self._roots |= {size: max(0.0, root.bound - slack) for size, root in found.items()}
        yield None
        for size, root in sorted(found.items(), key=lambda one: (int(one[1].kept.sum()), one[0])):
            model = self._waiting[size]
            if root.bound >= model.value * (1 - BETTER_BY) and not self._wanted.several:
                self._roots[size] = max(0.0, model.value * (1 - BETTER_BY) - slack)
                continue
            kept = root.kept.copy()
            kept[list(model.support)] = True
            if np.count_nonzero(kept) <= MOST_LEFT:
                self._add_part(np.flatnonzero(kept), {size: model})
                yield None
            elif not self._wanted.several and limits.price is None and limits.kind is None:
                incumbent = Incumbent(size, float(model.value), tuple(sorted(model.support)))
                forest = WideForest(products, incumbent, tuple(limits.always), root, slack, self._narrow_forest)
                self._parts.append(_Part(np.arange(len(usable)), forest))
                self._of_size[size] = self._parts[-1]

    def _sought(self, value: float) -> float:
        """The value up to which models are sought, where the best known has this one."""
        if self._wanted.n_best is not None:
            return np.inf
        return value * (1 + (self._wanted.within or 0.0))

    def _add_part(self, columns: np.ndarray, models: Mapping[int, Snapshot]) -> None:
        """Trees of some sizes over some columns."""
        objective, limits = self._subset.objective, self._subset.limits
        hessian = _DesignColumns(objective).gram(columns)
        kept = _without_copies(lambda rows: hessian[rows], columns, limits)
        self.copies.update(columns[~kept].tolist())
        if not kept.all():
            columns, hessian = columns[kept], hessian[np.ix_(kept, kept)]
        quadratic, diagonal = self._quadratic(columns, hessian)
        if diagonal is None or (rounding_slack(quadratic, diagonal, self._n_rows) > MOST_SLACK * objective.null_value):
            raise NoBoundError(self._without_ridge)
        known = set(columns.tolist())
        incumbents = [
            Incumbent(size, model.value, tuple(np.searchsorted(columns, sorted(model.support)).tolist()))
            for size, model in models.items()
            if known.issuperset(model.support)
        ]
        restricted = _restricted(limits, columns)
        forest = Forest(quadratic, diagonal, incumbents, n_rows=self._n_rows, limits=restricted, wanted=self._wanted)
        part = _Part(columns, forest)
        self._parts.append(part)
        self._of_size.update({one.size: part for one in incumbents})

    def _quadratic(self, columns: np.ndarray, gram: np.ndarray) -> tuple[Quadratic, np.ndarray | None]:
        """The objective over some columns, and a diagonal for it if there is one."""
        objective = self._subset.objective
        penalty = objective.penalty[columns]
        np.fill_diagonal(gram, 1.0 + penalty)
        # With more columns than rows no diagonal is noticeably larger than the penalty.
        shifted = len(columns) <= min(MOST_DENSE, self._n_rows) or not objective.ridge
        diagonal = base_diagonal(gram, penalty) if shifted else penalty * (1 - 1e-12)
        return Quadratic(gram, objective.slope[columns], objective.null_value), diagonal

    def _narrow_forest(self, columns: np.ndarray, inside: tuple[int, ...], incumbent: Incumbent) -> Forest:
        """The tree of one size over some columns, of which others are in."""
        objective, limits = self._subset.objective, replace(self._subset.limits, always=inside)
        quadratic, diagonal = self._quadratic(columns, _DesignColumns(objective).gram(columns))
        assert diagonal is not None  # there is a ridge
        return Forest(quadratic, diagonal, [incumbent], n_rows=self._n_rows, limits=_restricted(limits, columns))

    def _add_smooth_part(self, subset: SmoothSubset) -> None:
        """Trees of all sizes for a smooth loss."""
        objective, limits = subset.objective, subset.limits
        several = objective.n_outputs > 1 or objective.smooth.coupled
        if several or not objective.units.single or objective.bounds is not None:
            raise NoBoundError(NOT_SUPPORTED)
        if self._wanted.several:
            raise NoBoundError(ONLY_SQUARED)
        if objective.smooth is not objective.loss:
            raise NoBoundError(NOT_SMOOTH)
        try:
            objective.loss.conjugate(objective.y[0][:1], np.zeros(1))
        except NotImplementedError:
            raise NoBoundError(NO_CONJUGATE) from None
        if not objective.ridge:
            raise NoBoundError(LOSS_WITHOUT_RIDGE)
        columns = limits.candidates(objective.design.usable)
        design = objective.design
        if isinstance(design, GatheredDesign) or len(columns) * design.n_rows > MOST_GATHERED:
            raise NoBoundError(LOSS_TOO_LARGE)
        gathered = design.columns(columns).T
        kept = _without_copies(lambda rows: (gathered[:, rows].T * design.weights) @ gathered, columns, limits)
        self.copies.update(columns[~kept].tolist())
        columns, gathered = columns[kept], np.asfortranarray(gathered[:, kept])
        problem = SmoothProblem(
            gathered, objective.y[0], design.weights, objective.loss, objective.penalty[columns], objective.center
        )
        known = set(columns.tolist())
        incumbents = [
            Incumbent(size, float(model.value), tuple(np.searchsorted(columns, sorted(model.support)).tolist()))
            for size, model in self._waiting.items()
            if known.issuperset(model.support)
        ]
        part = _Part(columns, SmoothForest(problem, subset.null_value, incumbents, _restricted(limits, columns)))
        self._parts.append(part)
        self._of_size.update({one.size: part for one in incumbents})


def known_models(subset: LeastSquaresSubset, supports: Sequence[Sequence[int]]) -> list[Snapshot]:
    """Models of some supports, from the products of their columns only: a search computes those with all others.

    Raises ``LinAlgError`` where columns of a support are dependent.
    """
    columns = np.unique(np.concatenate([np.zeros(0, dtype=np.intp), *map(np.asarray, supports)])).astype(np.intp)
    objective = subset.objective
    gram = _DesignColumns(objective).gram(columns)
    np.fill_diagonal(gram, 1.0 + objective.penalty[columns])
    whole = Quadratic(gram, objective.slope[columns], objective.null_value)
    models = []
    for support in supports:
        part = whole.restricted(np.searchsorted(columns, support))
        inverse = np.linalg.inv(part.hessian)
        value = float(part.values(np.arange(len(support))[None])[0])
        models.append(Snapshot(tuple(support), inverse @ part.slope, value, np.diag(inverse)))
    return models


@dataclass(frozen=True, eq=False)
class _DesignColumns:
    """Products of columns, from the data."""

    objective: LeastSquares
    kept: dict[int, np.ndarray] = field(default_factory=dict)
    """Columns times the roots of the weights: trees come back for products with a few more columns."""

    def gram(self, columns: np.ndarray) -> np.ndarray:
        """Products of some columns with each other."""
        design = self.objective.design
        if isinstance(design, ChunkedDesign):
            # Sums over chunks have the same accuracy, and the first pass has them.
            return _symmetric(np.asfortranarray(design.gram(columns)[:, columns]))
        total = np.zeros((len(columns), len(columns)), order="F")
        gathered: list[np.ndarray] = []
        for rows, block in design.blocks(columns):
            gathered.append(np.sqrt(design.weights[rows])[:, None] * block)
            # Blocks are small, to stay in the cache; products are fast on many rows.
            if sum(map(len, gathered)) >= GRAM_ROWS or rows.stop == design.n_rows:
                total = dsyrk(1.0, np.concatenate(gathered), beta=1.0, c=total, trans=1, lower=1, overwrite_c=1)
                gathered.clear()
        return _symmetric(total)

    def products(self, columns: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Products of some columns with others, which they are among."""
        design = self.objective.design
        if isinstance(design, ChunkedDesign):
            return np.asarray(design.gram(columns)[:, others])
        if design.n_rows * (len(self.kept) + len(others)) <= MOST_GATHERED:
            return np.asarray(self._weighted(columns) @ self._weighted(others).T)
        order = np.argsort(others)
        places = order[np.searchsorted(others, columns, sorter=order)]
        total = np.zeros((len(columns), len(others)))
        for rows, block in design.blocks(others):
            total += (design.weights[rows, None] * block[:, places]).T @ block
        return total

    def _weighted(self, columns: np.ndarray) -> np.ndarray:
        """Columns times the roots of the weights, one to a line."""
        new = np.array([j for j in columns.tolist() if j not in self.kept], dtype=np.intp)
        design = self.objective.design
        found = np.empty((len(new), design.n_rows))
        for rows, block in design.blocks(new) if len(new) else ():
            found[:, rows] = (np.sqrt(design.weights[rows])[:, None] * block).T
        self.kept.update(zip(new.tolist(), found, strict=True))
        return np.stack([self.kept[j] for j in columns.tolist()])

    def residual_products(self, columns: np.ndarray, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Products of all columns with the residuals of models on some columns, and the squares of their fits."""
        design, target = self.objective.design, self.objective.target
        fits = np.empty((len(coef), design.n_rows))
        for rows, block in design.blocks(columns):
            fits[:, rows] = coef @ block.T
        squares = (fits * fits) @ design.weights
        return design.products((target - fits) * design.weights), squares


def _symmetric(gram: np.ndarray, at_once: int = 256) -> np.ndarray:
    """A matrix by columns of which the lower triangle is known, in place, as it may be large; by rows."""
    for start in range(0, len(gram), at_once):
        rows = slice(start, start + at_once)
        gram[:start, rows] = gram[rows, :start].T
        gram[rows, rows] = np.tril(gram[rows, rows]) + np.tril(gram[rows, rows], -1).T
    return gram.T


def _wants_more(forest: Forest | SmoothForest | WideForest, relative_gap: float, most_nodes: float) -> bool:
    return not forest.full and any(
        tree.nodes < most_nodes and (tree.wanted.several or tree.lower_bound < tree.value * (1 - relative_gap))
        for tree in forest.open
    )


def _without_copies(
    products: Callable[[slice], np.ndarray], columns: np.ndarray, limits: Limits, at_once: int = 500
) -> np.ndarray:
    """Mask without the copies of columns before them: a search chooses one of them, and one is as good as the other.

    Of a column that is always in, the copies go. ``products`` has those of some columns with all of them.
    """
    forced, lost = np.isin(columns, limits.always), np.zeros(len(columns), dtype=bool)
    for start in range(0, len(columns), at_once):
        rows = slice(start, start + at_once)
        first, second = np.nonzero(np.triu(np.abs(products(rows)) >= COPY_ABOVE, start + 1))
        first += start
        earlier = forced[second] & ~forced[first]
        lost[first[earlier]] = True
        lost[second[~earlier]] = True
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
