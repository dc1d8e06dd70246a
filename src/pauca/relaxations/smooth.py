"""Bounds and trees for smooth convex losses with a ridge.

For any theta in the domain of the conjugate loss, with ``sum_i v_i theta_i = 0`` if there is an intercept, and
``c = X'(v theta)``, every model that a node allows has at least the value

    -sum_i v_i L*(y_i, theta_i) - sum_in c_j^2 / (2 ridge_j) - top_left{c_j^2 / (2 ridge_j)}.

The derivatives of the loss at a point near the solution of the relaxation are such a theta, once they are made to sum
to zero by shrinking whichever of their positive or negative part is heavier: zero lies in every domain. The relaxation
is solved by Newton's method: its quadratic model at a point is a problem of ``perspective``, with D the ridge.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.blas import dsyrk

from pauca.clock import check_time
from pauca.constraints.limits import Limits
from pauca.losses import Loss
from pauca.relaxations.backends import Backend
from pauca.relaxations.perspective import IN, OUT, Quadratic
from pauca.relaxations.tree import MOST_BYTES, Incumbent, Tree

# Newton steps at a root, and at other nodes, which start from their parent's solution.
ROOT_STEPS = 40
NODE_STEPS = 6

# Steps with the Gram matrix of the parent.
SHARED_STEPS = 3

# A relaxation is solved when its value is within this share of the gap that is to be closed.
SOLVED_SHARE = 0.03

# Sums over the rows are known to this share of the empty model's value.
ROUNDING = 1e-11

# Steps are halved at most so often.
HALVINGS = 8

# Models are fitted until the bound is so close, as a share of their value. Steps that do not lower it are damped, by at
# least and at most so much: standardised columns have squares of one, and losses have curvatures of about that.
FITTED_WITHIN = 1e-10
FIT_STEPS = 200
LEAST_DAMPED, MOST_DAMPED = 1e-3, 1e6

# A node with at most so many models is closed by fitting each of them, once its tree has seen as many nodes: a fit
# takes a quarter of the time of a relaxation, and where the ridge is small relaxations tell next to nothing. With 6
# rows, 12 columns and a ridge of 1e-6 trees opened about as many nodes as there are models.
MOST_LISTED = 200

# Over more columns than this the relaxation is solved on a working set: the products of all with all would take too
# long and too much memory. So many columns are added to it at a time.
MOST_TOGETHER = 1000
ADDED_COLUMNS = 100


@dataclass(frozen=True, eq=False)
class SmoothProblem:
    """``sum_i v_i L(y_i, z_i w + b) + sum_j ridge_j w_j^2 / 2``."""

    columns: np.ndarray
    """Standardised columns, shape (n, m)."""
    y: np.ndarray
    weights: np.ndarray
    loss: Loss
    penalty: np.ndarray
    center: bool

    def value(self, scores: np.ndarray) -> float:
        """Mean loss."""
        return float(self.weights @ self.loss.value(self.y, scores))

    def intercept(self, scores: np.ndarray, start: float) -> float:
        """The intercept that minimises the mean loss: a root of its slope, by Newton's method with halving."""
        if not self.center:
            return 0.0
        b, step, slope = start, 0.0, np.inf
        for _ in range(50):
            slopes = self.loss.slopes(self.y, scores + b)
            new = float(self.weights @ slopes.derivative)
            if not abs(new) < slope:
                # The slope rises with b: a step that goes too far is taken back by half.
                step /= 2
                b -= step
                continue
            slope = abs(new)
            step = -new / max(float(self.weights @ slopes.curvature), 1e-12)
            if abs(step) <= 1e-9 * max(1.0, abs(b)):
                break
            b += step
        return b

    def feasible(self, scores: np.ndarray) -> np.ndarray:
        """Weighted derivatives that sum to zero if there is an intercept, divided by the weights."""
        theta = self.loss.derivative(self.y, scores)
        if not self.center:
            return theta
        up, down = float(self.weights @ np.maximum(theta, 0.0)), float(self.weights @ np.maximum(-theta, 0.0))
        if up > down:
            return np.where(theta > 0, theta * (down / up), theta)
        return np.where(theta < 0, theta * (up / down), theta) if down > 0 else theta

    def dual(self, scores: np.ndarray, codes: np.ndarray, left: int) -> tuple[float, np.ndarray]:
        """The bound of a node from scores near its relaxation's, and ``c^2 / (2 ridge)`` of every column."""
        theta = self.feasible(scores)
        pulled = self.columns.T @ (self.weights * theta)
        each = 0.5 * pulled * pulled / self.penalty
        free = each[np.abs(codes) < IN]
        top = float(np.sort(free)[len(free) - left :].sum())
        bound = -float(self.weights @ self.loss.conjugate(self.y, theta)) - float(each[codes == IN].sum()) - top
        return (bound if np.isfinite(bound) else -np.inf), each

    def gram(self, scores: np.ndarray, used: np.ndarray) -> np.ndarray:
        """Products of the ``used`` columns weighted by the curvature of the loss, the intercept minimised out."""
        # A copy of the columns costs more than the products of some that are not used.
        Z, h = self.columns, self.weights * self.loss.curvature(self.y, scores)
        if 2 * np.count_nonzero(used) < Z.shape[1]:
            Z, used = Z[:, used], np.ones(np.count_nonzero(used), dtype=bool)
        gram = dsyrk(1.0, np.sqrt(h)[:, None] * Z, trans=1, lower=1)
        gram = np.tril(gram) + np.tril(gram, -1).T
        if self.center and h.sum() > 0:
            pulled = h @ Z
            gram -= np.outer(pulled, pulled / h.sum())
        return np.asarray(gram if used.all() else gram[np.ix_(used, used)])

    def model(self, w: np.ndarray, scores: np.ndarray, used: np.ndarray, gram: np.ndarray) -> Quadratic:
        """The quadratic model of the objective at w over the ``used`` columns, with a Gram matrix of here or nearby."""
        derivative = self.loss.derivative(self.y, scores)
        slope = gram @ w[used] - (self.columns.T @ (self.weights * derivative))[used]
        # The constant does not matter, but must not be below what a model can gain.
        gained = 0.5 * float(slope @ (slope / self.penalty[used]))
        hessian = gram.copy()
        hessian.flat[:: len(hessian) + 1] += self.penalty[used]
        return Quadratic(hessian, slope, gained)

    def spread_penalty(self, w: np.ndarray, codes: np.ndarray, left: int) -> float:
        """The ridge as the relaxation has it: ``min_z sum ridge w^2 / (2 z)`` over the free columns."""
        inside, free = codes == IN, np.abs(codes) < IN
        total = 0.5 * float(self.penalty[inside] @ w[inside] ** 2)
        sizes = -np.sort(-np.abs(w[free]) * np.sqrt(self.penalty[free]))
        tail = np.cumsum(sizes[::-1])[::-1]
        big = 0
        while big < min(left, len(sizes)) and sizes[big] * (left - big) >= tail[big]:
            big += 1
        rest = float(tail[big]) ** 2 / (left - big) if big < min(left, len(sizes)) else 0.0
        return total + 0.5 * (float(sizes[:big] @ sizes[:big]) + rest)

    def fit(self, support: np.ndarray, cut: float = np.inf) -> tuple[float, float]:
        """The least value on some columns as far as it was found, and a bound that it is not below.

        It is found unless it is certain to be above ``cut``. By Newton's method; where a step does not lower the value,
        the Hessian is damped.
        """
        m, columns = len(support), self.columns[:, support]
        part = replace(self, columns=columns, penalty=self.penalty[support])
        codes, every = np.full(m, IN, dtype=np.int8), np.ones(m, dtype=bool)
        point = Point(np.zeros(m), self.intercept(np.zeros(len(self.y)), 0.0))
        value, bound, damping = self.value(np.full(len(self.y), point.b)), -np.inf, 0.0
        for _ in range(FIT_STEPS):
            scores = columns @ point.w + point.b
            bound = max(bound, part.dual(scores, codes, 0)[0])
            if value - bound <= FITTED_WITHIN * abs(value) or damping > MOST_DAMPED or bound >= cut:
                break
            model = part.model(point.w, scores, every, part.gram(scores, every))
            gradient = model.slope - model.hessian @ point.w
            model.hessian.flat[:: m + 1] += damping
            before = value
            point, value = part.move(point, point.w + np.linalg.solve(model.hessian, gradient), codes, 0, value)
            damping = damping / 4 if value < before else max(4 * damping, LEAST_DAMPED)
        return value, min(bound, value)

    def move(self, point: Point, target: np.ndarray, codes: np.ndarray, left: int, value: float) -> tuple[Point, float]:
        """A step towards ``target`` that lowers the relaxation's value, and that value; no step if none does."""
        for halving in range(HALVINGS):
            w = point.w + 0.5**halving * (target - point.w)
            raw = self.columns @ w
            b = self.intercept(raw, point.b)
            new = self.value(raw + b) + self.spread_penalty(w, codes, left)
            if new <= value:
                return Point(w, b), new
        return point, value


@dataclass(frozen=True, eq=False)
class Point:
    """Coefficients and intercept."""

    w: np.ndarray
    b: float


@dataclass(frozen=True, eq=False)
class _Gram:
    """Weighted products of some columns."""

    used: np.ndarray
    matrix: np.ndarray

    def of(self, used: np.ndarray) -> np.ndarray:
        """Those of fewer columns."""
        places = np.flatnonzero(used[self.used])
        return np.asarray(self.matrix[np.ix_(places, places)])


@dataclass(frozen=True, eq=False)
class _Bounded:
    """What is known of a node: its bound, and for every column its score, its share in the relaxation, and its loss."""

    bound: float
    scores: np.ndarray
    shares: np.ndarray
    losses: np.ndarray
    point: Point

    def branch(self, codes: np.ndarray) -> int:
        """The free column without which the relaxation would lose most."""
        loss = np.where(np.abs(codes) < IN, self.losses + 1e-6 * self.scores, -1.0)
        return int(np.argmax(loss >= loss.max() * (1 - 1e-9)))


class SmoothForest:
    """Trees of several sizes for a smooth loss; the same interface as ``forest.Forest``.

    An open node keeps its codes, coefficients and bound: about 9 m + 200 bytes.
    """

    def __init__(
        self, problem: SmoothProblem, null_value: float, incumbents: Sequence[Incumbent], limits: Limits
    ) -> None:
        self.problem, self.backend = problem, Backend()
        self._limits = limits
        self._counted = limits.price is not None or limits.kind is not None
        self._n_nodes, self._unit = 0, 1e-9 * null_value
        self.trees = {
            one.size: Tree(one.size, one.value, one.support, problem.penalty, ROUNDING * null_value)
            for one in incumbents
        }

    @property
    def open(self) -> list[Tree]:
        """Trees that are not finished."""
        return [tree for tree in self.trees.values() if tree.open]

    @property
    def full(self) -> bool:
        """Whether the open nodes take all the memory they may."""
        width = 9 * len(self.problem.penalty) + 200
        return sum(len(tree.heap) for tree in self.trees.values()) * width > MOST_BYTES

    def plant(self) -> None:
        """Bound the roots, screen columns, and open the trees that are not proved by that."""
        start = Point(np.zeros(len(self.problem.penalty)), 0.0)
        for tree in self.trees.values():
            codes = np.zeros(len(self.problem.penalty), dtype=np.int8)
            codes[list(tree.support)] = 2
            codes[list(self._limits.always)] = IN
            found = self._visit(tree, codes, start, -np.inf, ROOT_STEPS)
            if found is not None:
                settled = found[1][0]
                tree.never_in = tuple(np.flatnonzero(settled == OUT).tolist())
                tree.always_in = tuple(np.setdiff1d(np.flatnonzero(settled == IN), self._limits.always).tolist())
            tree.settle()

    @np.errstate(over="ignore", invalid="ignore")  # steps that lead too far are taken back
    def advance(self, most_nodes: float = np.inf) -> None:
        """Branch on the best node of every tree that has seen fewer than ``most_nodes``."""
        for tree in self.open:
            if tree.nodes >= most_nodes:
                continue
            bound, payload, branch = tree.pop()
            codes, point = payload
            if self._list(tree, codes, bound):
                tree.settle()
                continue
            used, gram = codes != OUT, None
            if np.count_nonzero(used) <= MOST_TOGETHER:
                gram = _Gram(used, self.problem.gram(self.problem.columns @ point.w + point.b, used))
            for code in (IN, OUT):
                child = codes.copy()
                child[branch] = code
                tree.nodes += 1
                w = point.w.copy()
                if code == OUT:
                    w[branch] = 0.0
                self._visit(tree, child, Point(w, point.b), bound, NODE_STEPS, gram)
            tree.settle()

    @np.errstate(over="ignore", invalid="ignore")
    def _visit(
        self,
        tree: Tree,
        codes: np.ndarray,
        point: Point,
        inherited: float,
        steps: int,
        gram: _Gram | None = None,
    ) -> tuple[float, tuple[np.ndarray, Point]] | None:
        """Bound a node; it is added to its tree, and returned, if it may hold a better model."""
        if self._counted:
            inside = np.flatnonzero(codes == IN)
            codes[(np.abs(codes) < IN) & ~self._limits.addable(inside.tolist(), len(codes))] = OUT
        left, free = tree.size - int(np.count_nonzero(codes == IN)), np.flatnonzero(np.abs(codes) < IN)
        if left < 0 or len(free) < left:
            return None
        if left == 0 or len(free) == left:
            self._leaf(tree, np.flatnonzero((codes == IN) | ((np.abs(codes) < IN) & (left > 0))), inherited)
            return None
        point = Point(np.where(codes == OUT, 0.0, point.w), point.b)
        found = self._relax(codes, left, point, tree.cut, steps, gram)
        bound, point = found.bound, found.point
        if bound < tree.cut:
            self._round(tree, codes, found)
        if bound >= tree.cut:
            return None
        codes = self._screened(codes, found.scores, left, tree.screened_above - bound)
        left, free = tree.size - int(np.count_nonzero(codes == IN)), np.flatnonzero(np.abs(codes) < IN)
        if left <= 0 or len(free) <= left:
            return self._visit(tree, codes, point, bound, steps)
        bound = max(bound, inherited)
        branch = found.branch(codes)
        self._n_nodes += 1
        tree.push(self._n_nodes, bound, self._unit, (codes, point), branch)  # type: ignore[arg-type]
        return bound, (codes, point)

    def _relax(
        self, codes: np.ndarray, left: int, point: Point, cut: float, steps: int, shared: _Gram | None
    ) -> _Bounded:
        """The best bound met on the way to the relaxation's solution, and what is known there.

        The Gram matrix of the parent serves for the first steps, as long as they need not be shortened.
        """
        problem = self.problem
        raw = problem.columns @ point.w
        point = Point(point.w, problem.intercept(raw, point.b))
        value = problem.value(raw + point.b) + problem.spread_penalty(point.w, codes, left)
        best, scores = problem.dual(raw + point.b, codes, left)
        used = _working(codes, scores, left)
        pieces = codes.copy()
        gram = None if shared is None else shared.of(used)
        for number in range(steps):
            check_time()
            at = problem.columns @ point.w + point.b
            gram = problem.gram(at, used) if gram is None else gram
            model = problem.model(point.w, at, used, gram)
            found = self.backend.relax(
                model, problem.penalty[used][None], pieces[used][None], np.array([left]), np.full(1, np.inf), ROOT_STEPS
            )
            pieces[used] = found.pieces[0]
            target = np.zeros_like(point.w)
            target[used] = found.u[0]
            before = value
            point, value = problem.move(point, target, codes, left, value)
            if shared is None or number + 1 >= SHARED_STEPS or not np.array_equal(point.w, target):
                gram = None
            bound, each = problem.dual(problem.columns @ point.w + point.b, codes, left)
            if bound > best:
                best, scores = bound, each
            if best >= cut or value - best <= SOLVED_SHARE * (cut - best):
                break
            entering = _entering(codes, used, each, float(found.theta[0])) if number + 1 < steps else used & ~used
            if not entering.any() and before - value <= 1e-13 * abs(value):
                break
            if entering.any():
                used, gram = used | entering, None
        shares, losses = np.zeros(len(codes)), np.zeros(len(codes))
        diagonal = problem.penalty[used][None]
        shares[used] = found.shares(np.sqrt(diagonal))[0]
        if best < cut:
            losses[used] = self.backend.removal_estimates(model, diagonal, found)[0]
        return _Bounded(best, scores, shares, losses, point)

    def _round(self, tree: Tree, codes: np.ndarray, found: _Bounded) -> None:
        """Offer the model of the columns that the relaxation takes most of; not always, as a fit costs a node."""
        if tree.nodes % 8:
            return
        wanted = found.shares + 1e-9 * found.scores / max(found.scores.max(), 1e-300)
        wanted[codes == IN], wanted[codes == OUT] = np.inf, -np.inf
        self._offer(tree, np.argsort(-wanted, kind="stable")[: tree.size])

    def _leaf(self, tree: Tree, support: np.ndarray, inherited: float) -> None:
        """Offer the only model of a node; where it could not be fitted well, its bound is what is known of the node."""
        if (bound := max(self._offer(tree, support), inherited)) < tree.cut:
            tree.unresolved = min(tree.unresolved, bound)

    def _list(self, tree: Tree, codes: np.ndarray, inherited: float) -> bool:
        """Close a node by fitting all its models, if they are few for its tree; returns whether it was."""
        inside, free = np.flatnonzero(codes == IN), np.flatnonzero(np.abs(codes) < IN)
        left = tree.size - len(inside)
        count = math.comb(len(free), left)
        if count > min(tree.nodes, MOST_LISTED):
            return False
        for chosen in itertools.combinations(free.tolist(), left):
            check_time()
            self._leaf(tree, np.concatenate([inside, np.array(chosen, dtype=np.intp)]), inherited)
        tree.nodes += count
        return True

    def _offer(self, tree: Tree, support: np.ndarray) -> float:
        """Offer a model; returns a bound of it."""
        if self._counted and not self._limits.allows(support.tolist()):
            return np.inf
        value, bound = self.problem.fit(np.sort(support), tree.cut)
        tree.offer(value, support.tolist())
        return bound

    @staticmethod
    def _screened(codes: np.ndarray, scores: np.ndarray, left: int, gap: float) -> np.ndarray:
        """Codes with the columns settled that the gap settles."""
        free = np.abs(codes) < IN
        ordered = -np.sort(-scores[free])
        last, following = ordered[left - 1], ordered[left]
        out = free & (scores < last) & (last - scores > gap)
        inside = free & (scores >= last) & (scores - following > gap)
        return np.where(out, OUT, np.where(inside, IN, codes))


def _working(codes: np.ndarray, scores: np.ndarray, left: int) -> np.ndarray:
    """Mask of the columns to solve a relaxation over: all that are not out, or the likeliest of many."""
    working = codes != OUT
    if np.count_nonzero(working) > MOST_TOGETHER:
        ranked = np.argsort(-np.where(working, scores, -1.0), kind="stable")
        working &= codes != 0
        working[ranked[: left + ADDED_COLUMNS]] = True
    return working


def _entering(codes: np.ndarray, used: np.ndarray, scores: np.ndarray, theta: float) -> np.ndarray:
    """Mask of the columns outside a working set that press to leave zero, the strongest of them."""
    pressing = (codes != OUT) & ~used & (np.sqrt(2 * scores) > theta * (1 + 1e-6))
    ranked = np.argsort(-np.where(pressing, scores, -1.0), kind="stable")
    pressing[ranked[ADDED_COLUMNS:]] = False
    return np.asarray(pressing)
