"""Random small problems against enumeration: bounds above the optimum, false proofs and wrong models; none is allowed.

    python tests/helpers/false_proofs.py --seeds 0 10000

Each seed is a table with 3 to 10 columns, or more if requested (copies, near copies, mixtures, rounded, badly scaled,
autoregressive, with an offset), a ridge from 0 to 0.1, poor incumbents, and every size from 1 to d - 1: each size is a
problem. The seeds take turns in how they are proved: by enumeration, by trees, by compiled trees (half of the time
without the formulas for the last two or three columns), depth first (with formulas for none to three), as wide tables,
whose Gram matrix is not formed, and with another loss than squared error.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
from scipy.special import xlogy

from pauca.constraints.limits import Limits
from pauca.constraints.units import Units
from pauca.design import make_design
from pauca.losses import Huber, LogLoss, Poisson, SquaredHinge
from pauca.objectives import LeastSquares, SmoothObjective
from pauca.relaxations import bounds_without_gram, depth_first, optimality_bounds, tree, tree_without_gram
from pauca.relaxations import forest as forests
from pauca.relaxations.backends import compiled_backend
from pauca.relaxations.diagonal import base_diagonal, rounding_slack
from pauca.relaxations.perspective import Quadratic
from pauca.relaxations.size_proof import SizeProof
from pauca.subsets.least_squares import LeastSquaresSubset
from pauca.subsets.smooth import SmoothSubset
from pauca.tolerances import COPY_ABOVE

FORESTS = ("enumerated", "grown", "compiled", "depth first")
WAYS = (*FORESTS, "wide", "smooth")
WRONG = ("bound above the optimum", "false proof", "wrong always_in or never_in")
KINDS = ("plain", "copy", "nearly copy", "mixed", "rounded", "scaled", "ar", "offset")
RIDGES = (0.0, 1e-12, 1e-8, 1e-5, 1e-3, 0.1)

# Where rounding can add more than this share of the empty model's value to a bound, none is reported.
MOST_SLACK = 1e-4


def columns(rng: np.random.Generator, n: int, d: int, kind: str) -> np.ndarray:
    """Columns that are difficult in one way or another."""
    X = rng.standard_normal((n, d))
    if kind == "copy":
        X[:, 1] = X[:, 0]
    elif kind == "nearly copy":
        X[:, 1] = X[:, 0] + 10.0 ** -rng.integers(2, 9) * X[:, 1]
    elif kind == "mixed":
        X = X @ rng.standard_normal((d, d))
    elif kind == "rounded":
        X = np.round(X)
    elif kind == "scaled":
        X *= 10.0 ** rng.integers(-3, 4, d)
    elif kind == "ar":
        for j in range(1, d):
            X[:, j] = 0.95 * X[:, j - 1] + 0.3 * X[:, j]
    elif kind == "offset":
        X += 10.0 ** rng.integers(0, 7)
    return X


def random_rows(seed: int, most: int = 10) -> tuple[np.ndarray, np.ndarray, np.ndarray, int, np.random.Generator]:
    """Standardised rows with those of the ridge below them, their targets, the penalty and the number of rows.

    There are at most so many columns.
    """
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(3, most + 1)), int(rng.choice([8, 15, 40]))
    kind = KINDS[seed % len(KINDS)]
    X = columns(rng, n, d, kind)
    y = X[:, : min(3, d)] @ rng.standard_normal(min(3, d))
    y = y + rng.choice([1e-6, 0.1, 1, 5]) * max(y.std(), 1e-9) * rng.standard_normal(n)
    X, y = X - X.mean(axis=0), y - y.mean()
    spread = np.sqrt(np.mean(X**2, axis=0))
    usable = spread > 1e-12
    X, spread = X[:, usable] / spread[usable], spread[usable]
    ridge = float(rng.choice(RIDGES)) if kind != "copy" else 1e-3
    penalty = ridge / (spread**2 if kind == "scaled" else np.ones(len(spread)))
    rows = np.vstack([X / np.sqrt(n), np.diag(np.sqrt(penalty))])
    return rows, np.concatenate([y / np.sqrt(n), np.zeros(len(spread))]), penalty, n, rng


def values(rows: np.ndarray, y: np.ndarray, supports: np.ndarray) -> np.ndarray:
    """The least values on several supports of one size, by orthogonal bases of their columns."""
    basis = np.linalg.qr(rows.T[supports].transpose(0, 2, 1))[0]
    rest = y - np.einsum("bik,bk->bi", basis, np.einsum("bik,i->bk", basis, y))
    return np.asarray(0.5 * np.einsum("bi,bi->b", rest, rest))


def check(seed: int, way: str, most: int = 10) -> Counter[str]:
    """The sizes of one table, and what was wrong with them; ``way`` is one of WAYS."""
    if way == "smooth":
        return check_smooth(seed, min(most, 6))
    rows, y, penalty, n, rng = random_rows(seed, most)
    m = len(penalty)
    supports = {k: np.array(list(itertools.combinations(range(m), k))) for k in range(1, m)}
    starts = {k: tuple(some[rng.integers(len(some))].tolist()) for k, some in supports.items()}
    prove = prove_wide if way == "wide" else partial(prove_by_forest, seed=seed, way=way)
    problem = Quadratic(rows.T @ rows, rows.T @ y, 0.5 * float(y @ y))
    found = prove(problem, penalty, n, starts, rows=rows, y=y, rng=rng)
    counts = Counter({"tables": 1})
    if found is None:
        return counts + Counter({"tables without a bound": 1})
    for k, some in supports.items():
        counts += judged(*found[k], some, values(rows, y, some), 1e-12 * problem.constant)
    return counts


def judged(
    proof: SizeProof, support: tuple[int, ...], supports: np.ndarray, every: np.ndarray, rounding: float
) -> Counter[str]:
    """What is wrong with the proof of one size: ``every`` are the values of all ``supports``."""
    counts, best = Counter({"sizes": 1}), float(every.min())
    own = float(every[np.flatnonzero((supports == support).all(axis=1))[0]])
    claimed = SizeProof(own, min(proof.lower_bound, own))
    counts["proved"] += claimed.proved
    counts[WRONG[0]] += proof.lower_bound > best + rounding
    counts[WRONG[1]] += claimed.proved and own > best * (1 + 2e-6) + rounding
    tied = [set(S) for S in supports[every <= best * (1 + 1e-10)].tolist()]
    counts[WRONG[2]] += not all(set(proof.always_in) <= S and not set(proof.never_in) & S for S in tied)
    return counts


Found = dict[int, tuple[SizeProof, tuple[int, ...]]]
"""What is proved of each size, and its best model."""


def prove_by_forest(
    problem: Quadratic,
    penalty: np.ndarray,
    n: int,
    starts: Mapping[int, tuple[int, ...]],
    *,
    seed: int,
    way: str,
    **_: object,
) -> Found | None:
    """Proofs over a Gram matrix; None where there is no bound."""
    diagonal = base_diagonal(problem.hessian, penalty)
    if diagonal is None or rounding_slack(problem, diagonal, n) > MOST_SLACK * problem.constant:
        return None
    incumbents = [tree.Incumbent(k, float(problem.values(np.array([S]))[0]), S) for k, S in starts.items()]
    forest = forests.Forest(problem, diagonal, incumbents, n_rows=n)
    if way in {"compiled", "depth first"}:
        forest.backend = compiled_backend()
        if seed % 2 or way != "compiled":
            # No formulas for the last columns, so that even small tables have trees.
            forest.backend.at_once = forest.backend.after = {2: 0}
    forest.goes_deep = way == "depth first"
    with ExitStack() as patches:
        patches.enter_context(patch.object(forests, "MOST_ENUMERATED", len(penalty) if way == "enumerated" else 0))
        patches.enter_context(patch.object(forests, "MANY_TREES", 1))
        patches.enter_context(patch.object(depth_first, "FEW", seed // len(WAYS) % 4))
        forest.plant()
        while forest.open:
            forest.advance()
    trees = forest.trees.items()
    return {k: (SizeProof(t.value, t.lower_bound, 0, t.always_in, t.never_in), t.support) for k, t in trees}


def prove_wide(
    problem: Quadratic,
    penalty: np.ndarray,
    n: int,
    starts: Mapping[int, tuple[int, ...]],
    *,
    rows: np.ndarray,
    y: np.ndarray,
    rng: np.random.Generator,
) -> Found | None:
    """Proofs without a Gram matrix, with small working sets; None where there is no ridge or no bound."""
    m = len(penalty)
    if not np.all(penalty > 0):
        return None
    spread = np.sqrt(penalty.min() / penalty)
    X, target = np.sqrt(n) * rows[:n] * spread, np.sqrt(n) * y[:n]
    design = make_design(X, np.full(n, 1 / n), center=False)
    objective = LeastSquares.of(design, target, ridge=float(penalty.min()), center=False, standardize=False)
    subset = LeastSquaresSubset.start(objective, Limits())
    few = {"FIRST_COLUMNS": 2, "ADDED_COLUMNS": 1, "MOST_COLUMNS": int(rng.integers(m, 2 * m))}
    few["MOST_KNOWN"] = few["MOST_COLUMNS"]
    groups = {"ALIKE_ABOVE": float(rng.choice([0.0, 0.7])), "MOST_GROUPED": int(rng.integers(0, 4 * m))}
    with ExitStack() as patches:
        for module, changes in (
            (optimality_bounds, {"MOST_DENSE": 0, "MOST_LEFT": 0}),
            (tree_without_gram, {"MOST_NARROWED": int(rng.integers(0, m)), **groups}),
            (bounds_without_gram, few),
        ):
            patches.enter_context(patch.multiple(module, **changes))
        try:
            found = optimality_bounds.Proofs(subset, {k: snapshot(problem, S) for k, S in starts.items()})
            for _ in found.grow(0.0, compiled=bool(rng.integers(2))):
                pass
        except optimality_bounds.NoBoundError:
            return None
    return {k: (found.proof(k), found.support(k)) for k in starts}


def snapshot(problem: Quadratic, support: tuple[int, ...]) -> SimpleNamespace:
    """A model as a search has it."""
    return SimpleNamespace(support=support, value=float(problem.values(np.array([support]))[0]))


def check_smooth(seed: int, most: int) -> Counter[str]:
    """Every size of a table with a smooth loss and a ridge."""
    rng = np.random.default_rng(seed)
    m, n, kind = int(rng.integers(3, most + 1)), int(rng.choice([12, 25, 60])), KINDS[seed % len(KINDS)]
    X = columns(rng, n, m, kind)
    X -= X.mean(axis=0)
    X /= np.sqrt(np.mean(X**2, axis=0))
    name, ridge, center = (
        str(rng.choice(list(SMOOTH))),
        float(rng.choice([1e-3, 1e-2, 0.1, 1.0])),
        bool(rng.integers(4)),
    )
    signal = X[:, : min(3, m)] @ rng.standard_normal(min(3, m)) + rng.choice([0.1, 1, 3]) * rng.standard_normal(n)
    y = smooth_target(name, signal, rng)
    design = make_design(X, np.full(n, 1 / n), center=center)
    loss = SMOOTH[name][0]
    units = Units.columns(m)
    objective = SmoothObjective.of(
        design, y[None], loss, units=units, n_outputs=1, bounds=None, ridge=ridge, center=center, standardize=False
    )
    subset = SmoothSubset.start(objective, Limits())
    # Copies of columns are left out.
    kept = np.flatnonzero(~np.any(np.triu(np.abs(X.T @ X) / n >= COPY_ABOVE, 1), axis=0))
    supports = {k: np.array(list(itertools.combinations(kept, k))) for k in range(1, len(kept))}
    every = {k: np.array([smooth_value(X[:, S], y, name, ridge, center) for S in some]) for k, some in supports.items()}
    starts = {k: int(rng.integers(len(some))) for k, some in supports.items()}
    models = {k: SimpleNamespace(support=tuple(supports[k][i].tolist()), value=every[k][i]) for k, i in starts.items()}
    found = optimality_bounds.Proofs(subset, models)
    for _ in found.grow(0.0, compiled=False):
        pass
    counts, empty = Counter({"tables": 1}), smooth_value(X[:, :0], y, name, ridge, center)
    for k, some in supports.items():
        counts += judged(found.proof(k), found.support(k), some, every[k], 1e-11 * empty)
    return counts


def smooth_target(name: str, signal: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A target that suits a loss."""
    if name in {"log", "squared hinge"}:
        y = np.where(signal > 0, 1.0, -1.0)
        y[0], y[1] = 1.0, -1.0
        return y
    return rng.poisson(np.exp(np.clip(signal, -3, 3))).astype(float) + 0.0 if name == "poisson" else signal


def _log(y: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    p = 1 / (1 + np.exp(np.clip(y * f, -500, 500)))
    return np.logaddexp(0, -y * f), -y * p, p * (1 - p)


def _poisson(y: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    mean = np.exp(np.minimum(f, 50))
    return mean - y * f + xlogy(y, y) - y, mean - y, mean


def _squared_hinge(y: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rest = np.maximum(1 - y * f, 0)
    return 0.5 * rest**2, -y * rest, (rest > 0).astype(float)


def _huber(y: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rest = f - y
    inside = np.abs(rest) <= 1.0
    return np.where(inside, 0.5 * rest**2, np.abs(rest) - 0.5), np.clip(rest, -1, 1), inside.astype(float)


SMOOTH = {
    "log": (LogLoss(), _log),
    "poisson": (Poisson(), _poisson),
    "squared hinge": (SquaredHinge(), _squared_hinge),
    "huber": (Huber(1.0), _huber),
}
"""Losses, and the same with two derivatives as they are written here."""


def smooth_value(X: np.ndarray, y: np.ndarray, name: str, ridge: float, center: bool) -> float:
    """The least value on some columns, by Newton's method with halved steps."""
    loss = SMOOTH[name][1]
    X = np.column_stack([np.ones(len(X)), X]) if center else X
    penalty = np.full(X.shape[1], ridge)
    penalty[: int(center)] = 0.0
    w, step = np.zeros(X.shape[1]), np.zeros(X.shape[1])

    def value(w: np.ndarray) -> float:
        return float(np.mean(loss(y, X @ w)[0]) + 0.5 * penalty @ w**2)

    least = value(w)
    for _ in range(100):
        _, slope, curvature = loss(y, X @ w)
        gradient = X.T @ slope / len(y) + penalty * w
        hessian = (X.T * np.maximum(curvature, 1e-9)) @ X / len(y) + np.diag(penalty)
        step = np.linalg.solve(hessian, gradient) if len(w) else step
        lengths = 0.5 ** np.arange(40)
        new = next((w - t * step for t in lengths if value(w - t * step) <= least - 1e-4 * t * gradient @ step), w)
        gained, w, least = least - value(new), new, min(least, value(new))
        if gained <= 1e-16 * abs(least):
            break
    return least


def wrong(counts: Counter[str]) -> dict[str, int]:
    """What should not have happened."""
    return {name: counts[name] for name in WRONG if counts[name]}


def main() -> None:
    """Count what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 2000), metavar=("FIRST", "END"))
    parser.add_argument("--most-columns", type=int, default=10)
    parser.add_argument("--way", choices=WAYS, help="one way for all seeds")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so many")
    options = parser.parse_args()
    total, start = Counter[str](), time.monotonic()
    for seed in range(*options.seeds):
        found = check(seed, options.way or WAYS[seed % len(WAYS)], options.most_columns)
        total += found
        if wrong(found):
            print(f"seed {seed}: {wrong(found)}", flush=True)
        if time.monotonic() - start > options.seconds:
            break
    print(f"seeds {options.seeds[0]} to {seed}: " + ", ".join(f"{name} {count:,}" for name, count in total.items()))


if __name__ == "__main__":
    main()
