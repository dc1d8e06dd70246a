"""Rows of the Gram matrix, computed when they are first needed, several to a pass over X."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from pauca.design import Design

# A pass over X for 32 rows takes about four times as long as for one. More rows gain nothing further.
ROWS_PER_PASS = 32

# Where many rows are known to be needed, nothing is computed in vain.
KNOWN_ROWS_PER_PASS = 256

# Designs this narrow get the whole Gram matrix in one pass.
WHOLE_UP_TO = 4 * ROWS_PER_PASS

# On data that fit in the cache, arithmetic takes all of the time, and rows computed in vain are not cheap.
SMALL_BYTES = 1 << 20

# No pass computes more than this many bytes of rows, and the rows kept take at most the larger of twice as much and an
# eighth of X.
PASS_BYTES = 1 << 26


class GramRows:
    """Cached rows ``j -> X_j' V X`` of the Gram matrix of standardised columns.

    When a row is missing, the pass over X that computes it also computes the rows that are likely to be needed next.
    """

    def __init__(self, design: Design) -> None:
        self._design = design
        self._rows: dict[int, np.ndarray] = {}
        row_bytes = 8 * design.n_features
        per_pass = ROWS_PER_PASS if design.nbytes > SMALL_BYTES else ROWS_PER_PASS // 8
        self._per_pass = int(np.clip(PASS_BYTES // row_bytes, 1, per_pass))
        self._known_per_pass = int(np.clip(PASS_BYTES // row_bytes, 1, KNOWN_ROWS_PER_PASS))
        self._most_kept = max(4 * self._per_pass, max(2 * PASS_BYTES, design.nbytes // 8) // row_bytes)
        self.passes = 0
        self.computed = 0

    def row(self, feature: int, likely: Callable[[int, int], Iterable[int]] | None = None) -> np.ndarray:
        """The Gram row of ``feature``; ``likely(feature, count)`` returns rows likely to be needed next."""
        row = self._rows.get(feature)
        if row is None:
            self._compute(self._batch(feature, likely))
            row = self._rows[feature]
        return row

    def known(self) -> list[int]:
        """The features whose rows are cached."""
        return list(self._rows)

    def rows(self, features: Sequence[int] | np.ndarray, columns: np.ndarray | slice = slice(None)) -> np.ndarray:
        """The Gram rows of several features, stacked; ``columns`` keeps only some entries of each."""
        needed = [int(j) for j in features]
        found = {j: self._rows[j][columns] for j in needed if j in self._rows}
        missing = [j for j in needed if j not in found]
        for start in range(0, len(missing), self._known_per_pass):
            batch = missing[start : start + self._known_per_pass]
            found.update(zip(batch, self._compute(batch)[:, columns], strict=True))
        width = self._design.n_features if isinstance(columns, slice) else len(columns)
        return np.stack([found[j] for j in needed]) if needed else np.zeros((0, width))

    def _batch(self, feature: int, likely: Callable[[int, int], Iterable[int]] | None) -> list[int]:
        if self._design.n_features <= WHOLE_UP_TO:
            return [j for j in range(self._design.n_features) if j not in self._rows]
        if likely is None or self._per_pass == 1:
            return [feature]
        others = (int(j) for j in likely(feature, self._per_pass - 1))
        # In order, as the columns lie in memory.
        return sorted({feature, *(j for j in others if j not in self._rows)})

    def _compute(self, features: list[int]) -> np.ndarray:
        block = self._design.gram(features)
        self.passes += 1
        self.computed += len(features)
        for j, row in zip(features, block, strict=True):
            self._rows[j] = row
        while len(self._rows) > self._most_kept:
            # Oldest first: dictionaries keep the order of insertion.
            self._rows.pop(next(iter(self._rows)))
        return block
