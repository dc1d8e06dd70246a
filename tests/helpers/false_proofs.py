"""Random small problems against enumeration: bounds above the optimum, false proofs and wrong models; none is allowed.

    python tests/helpers/false_proofs.py --seeds 0 10000

Each seed is a table with 3 to 10 columns, or more if requested (copies, near copies, mixtures, rounded, badly scaled,
autoregressive, with an offset), a ridge from 0 to 0.1, poor incumbents, and every size from 1 to d - 1: each size is a
problem. A third of the seeds is proved by enumeration, a third by trees, a third by compiled trees, half of
these without the formulas for the last two or three columns.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections import Counter
from unittest.mock import patch

import numpy as np

from pauca.relaxations import forest as forests
from pauca.relaxations import tree
from pauca.relaxations.backends import compiled_backend
from pauca.relaxations.diagonal import base_diagonal, rounding_slack
from pauca.relaxations.perspective import Quadratic
from pauca.relaxations.size_proof import SizeProof

WAYS = ("enumerated", "grown", "compiled", "compiled enumeration")
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
    rows, y, penalty, n, rng = random_rows(seed, most)
    problem = Quadratic(rows.T @ rows, rows.T @ y, 0.5 * float(y @ y))
    diagonal, counts = base_diagonal(problem.hessian, penalty), Counter({"tables": 1})
    if diagonal is None or rounding_slack(problem, diagonal, n) > MOST_SLACK * problem.constant:
        return counts + Counter({"tables without a bound": 1})
    m = len(problem.slope)
    supports = {k: np.array(list(itertools.combinations(range(m), k))) for k in range(1, m)}
    starts = {k: tuple(some[rng.integers(len(some))].tolist()) for k, some in supports.items()}
    incumbents = [tree.Incumbent(k, float(problem.values(np.array([S]))[0]), S) for k, S in starts.items()]
    forest = forests.Forest(problem, diagonal, incumbents, n_rows=n)
    if way == "compiled enumeration":
        forest.backend = compiled_backend()
        forest.backend.at_once = forest.backend.after = {2: 0}
    elif way == "compiled":
        forest.backend = compiled_backend()
        if seed % 2:
            # No formulas for the last columns, so that even small tables have trees.
            forest.backend.at_once = forest.backend.after = {2: 0}
    with patch.object(forests, "MOST_ENUMERATED", m if way == "enumerated" else 0):
        forest.plant()
    with patch.object(forests, "MANY_TREES", 1 if way == "compiled enumeration" else m):
        while forest.open:
            forest.advance()
    for k, some in supports.items():
        found, every = forest.trees[k], values(rows, y, some)
        best = float(every.min())
        own = float(values(rows, y, np.array([found.support]))[0])
        proof = SizeProof(own, min(found.lower_bound, own))
        rounding = 1e-12 * problem.constant
        counts["sizes"] += 1
        counts["proved"] += proof.proved
        counts[WRONG[0]] += found.lower_bound > best + rounding
        counts[WRONG[1]] += proof.proved and own > best * (1 + 2e-6) + rounding
        tied = {tuple(S) for S in some[every <= best * (1 + 1e-10)].tolist()}
        settled = all(set(found.always_in) <= set(S) and not set(found.never_in) & set(S) for S in tied)
        counts[WRONG[2]] += not settled
    return counts


def wrong(counts: Counter[str]) -> dict[str, int]:
    """What should not have happened."""
    return {name: counts[name] for name in WRONG if counts[name]}


def main() -> None:
    """Count what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 2000), metavar=("FIRST", "END"))
    parser.add_argument("--most-columns", type=int, default=10)
    parser.add_argument("--way", choices=WAYS, help="one of the three for all seeds")
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
