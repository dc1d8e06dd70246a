"""The tree of one size by compiled code, depth first: all models of this size that are sought.

A node has some columns in, some out, and the others not settled. It keeps what the columns that are in leave of the
problem: H and slopes of the columns that are not settled given these (a Schur complement), and the value of the model.
The relaxation of ``perspective`` bounds what can be chosen of them, columns are settled by their scores, and the node
branches on the column without which the relaxation would lose most. In the child that has this column in, the
relaxation is that of the parent, if the column was big: half of the nodes need none.

Where three columns or fewer are missing, or must go, all models are tried by one formula: the columns T gain
``v_T' B_TT^-1 v_T / 2``, where v are the slopes and B what is left of H; or that is what dropping them costs, where v
are the coefficients of the model of all columns and B the inverse.

Compared with the trees of ``forest``, there is no heap: where the model in hand is the best, which it is as a rule,
both see the same nodes. Nodes are some five times cheaper. What they lack is a bound that rises steadily: it is that of
the root until the tree is done.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pauca.clock import interrupts_held
from pauca.relaxations.perspective import MOST_SQUARES, MOST_STEPS, Quadratic

# Nodes looked at in one call, a few tenths of a second.
NODES_AT_ONCE = 20_000

# All sets of so many columns that are missing, or of so many that must go, are tried by formulas; at most three.
FEW = 3


class DepthFirst:
    """The search of one size under way.

    Parameters
    ----------
    problem : Quadratic
    diagonal : ndarray
        ``H - D`` must be positive semidefinite.
    size : int
        Of the models.
    always : sequence of int
        Columns that are in.
    """

    def __init__(self, problem: Quadratic, diagonal: np.ndarray, size: int, always: Sequence[int]) -> None:
        with interrupts_held():
            from pauca.relaxations import depth_first_kernels as kernels

        self._kernels, self._level, self.nodes = kernels, 0, 0
        m, scale = len(diagonal), 1 / np.sqrt(diagonal)
        self._most_squares = MOST_SQUARES * problem.constant
        self._levels = kernels.Levels(
            np.zeros((m + 1, m, m)),
            np.zeros((m + 1, 2, m)),
            np.zeros((m + 1, 2, m), np.int64),
            np.zeros((m + 1, m), np.uint8),
            np.zeros(m + 1),
            np.zeros((m + 1, 5), np.int64),
        )
        self._work = kernels.Work(np.zeros((m + kernels.ROWS, m)), np.zeros((3, m), np.int64))
        most = sum(_binomials(m, FEW))
        self._sets, self._spare = np.empty((most, 3), np.int64), np.empty((2, m, m))
        self._found = np.empty((most, m), np.uint8)
        root = self._levels
        root.block[0], root.lines[0, kernels.SLOPE] = problem.hessian * np.outer(scale, scale), problem.slope * scale
        root.places[0, kernels.COLUMN], root.value[0] = np.arange(m), problem.constant
        root.counts[0] = m, size, 0, -1, 0
        for column in always:
            place = int(np.flatnonzero(root.places[0, kernels.COLUMN, : root.counts[0, kernels.WIDTH]] == column)[0])
            kernels.put_in(root, 0, place, np.empty(m))

    @property
    def done(self) -> bool:
        """Whether all models that are sought were found."""
        return self._level < 0

    def advance(self, sought: float) -> list[tuple[int, ...]]:
        """Look at some nodes; the supports of models with a value up to ``sought``, which may fall between calls."""
        self._level, count, nodes = self._kernels.search(
            self._levels,
            self._level,
            NODES_AT_ONCE,
            sought,
            self._most_squares,
            MOST_STEPS,
            FEW,
            self._sets,
            self._spare,
            self._found,
            self._work,
        )
        self.nodes += nodes
        return [tuple(np.flatnonzero(line).tolist()) for line in self._found[:count]]


def _binomials(m: int, most: int) -> list[int]:
    """How many sets of 0 to ``most`` of m there are."""
    numbers = [1]
    for k in range(most):
        numbers.append(numbers[-1] * (m - k) // (k + 1))
    return numbers
