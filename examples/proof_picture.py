"""Draw the picture of docs/proofs.md: how incumbent and lower bound of one size approach each other.

``python examples/proof_picture.py docs/_static/proof.png``
"""

from __future__ import annotations

import sys
import time

import matplotlib.pyplot as plt
import numpy as np

from pauca import SparseRegressor
from pauca.estimators.certify import fitted
from pauca.relaxations.optimality_bounds import Proofs

SIZE = 5


def problem() -> tuple[np.ndarray, np.ndarray]:
    """A hundred strongly correlated columns, ten of which matter."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 100))
    for j in range(1, 100):
        X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.81) * X[:, j]
    signal = X[:, np.linspace(0, 99, 10).astype(int)].sum(axis=1)
    return X, signal + rng.standard_normal(1000) * signal.std()


def main(file: str) -> None:
    """Prove one size, and draw what was known when."""
    X, y = problem()
    model = SparseRegressor(k=SIZE, ridge=1e-3).fit(X, y)
    data = model._training_data
    assert data is not None
    subset = data.problem.begin(data.weights).subset
    proofs = Proofs(subset, {SIZE: fitted(subset, tuple(model.support_.tolist()))})
    nodes, objective, bound = [], [], []
    for _ in proofs.grow(0.0):
        proof = proofs.proof(SIZE)
        nodes.append(max(1, proof.nodes))
        objective.append(proof.objective)
        bound.append(proof.lower_bound)
    _, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
    ax.fill_between(nodes, bound, objective, step="post", color="#1f5a99", alpha=0.18, linewidth=0)
    ax.step(nodes, objective, where="post", color="#1f5a99", label="best model found")
    ax.step(nodes, bound, where="post", color="#444444", linestyle="--", label="lower bound")
    ax.set_xscale("log")
    ax.set_xlabel("nodes of the search tree")
    ax.set_ylabel("objective")
    ax.set_title(f"The best {SIZE} of 100 correlated columns (75 million subsets)", loc="left")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="lower right")
    ax.figure.savefig(file, dpi=110)


if __name__ == "__main__":
    started = time.process_time()
    main(sys.argv[1] if len(sys.argv) > 1 else "proof.png")
    print(f"{time.process_time() - started:.1f} s")
