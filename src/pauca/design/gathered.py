"""Some columns of a table in chunks, gathered in memory: a search on them counts columns as in the whole table."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pauca.design.base import StandardisedColumns
from pauca.design.chunks.base import Chunks
from pauca.design.dense import DenseDesign


class GatheredColumns:
    """Columns of a table in chunks, in its dtype; more can be gathered, in a pass over the table.

    There is room for as many columns as fit in the ``memory`` of the table, which is taken only as it is filled. Should
    there be more, all of them lie in a file without a name, which is gone with this object.
    """

    def __init__(self, chunks: Chunks, most: int) -> None:
        self.chunks = chunks
        self.shape = chunks.shape
        self.features = np.zeros(0, dtype=np.intp)
        self.place = np.full(chunks.n_features, -1, dtype=np.intp)
        """Where every column is among the gathered ones; -1 for those that are not."""
        self._most = min(most, chunks.n_features)
        in_memory = min(self._most, chunks.memory // (chunks.n_rows * chunks.dtype.itemsize))
        self._values = np.empty((in_memory, chunks.n_rows), dtype=chunks.dtype)

    @property
    def room(self) -> int:
        """How many further columns can be gathered."""
        return self._most - len(self.features)

    @property
    def table(self) -> np.ndarray:
        """The gathered columns as a table of shape (n, p), by columns."""
        return self._values[: len(self.features)].T

    def gather(self, features: Sequence[int] | np.ndarray) -> None:
        """Gather further columns."""
        new = np.array(sorted({int(j) for j in features} - set(self.features.tolist())), dtype=np.intp)
        first, last = len(self.features), len(self.features) + len(new)
        if last > len(self._values):
            self._move_to_a_file()
        for rows, block in self.chunks.map(_transposed, features=new):
            self._values[first:last, rows] = block
        self.place[new] = np.arange(first, last)
        self.features = np.concatenate([self.features, new])

    def _move_to_a_file(self) -> None:
        with tempfile.TemporaryFile(prefix="pauca") as file:  # the map keeps it until it is gone itself
            shape = (self._most, self.shape[0])
            values = np.memmap(file, dtype=self._values.dtype, mode="w+", shape=shape)
        values[: len(self.features)] = self._values[: len(self.features)]
        self._values = values

    def read(self, columns: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Some gathered columns of some rows, shape (rows, columns)."""
        return self._values[self.place[columns][:, None], rows].T.astype(np.float64)


def _transposed(block: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(block.T)


class GatheredDesign(StandardisedColumns):
    """Operations on gathered columns, counted as in the whole table; all others are zero, and cannot be used."""

    def __init__(self, X: GatheredColumns, weights: np.ndarray, *, center: bool) -> None:
        self._inner = inner = DenseDesign(X.table, weights, center=center)
        self._features, self._place = X.features.copy(), X.place.copy()
        self.n_rows, self.n_features = X.shape
        self.nbytes = inner.nbytes
        super().__init__(self._spread_out(inner.mean), self._spread_out(inner.spread) ** 2, weights, center=center)
        self.spread = self._spread_out(inner.spread)
        self.usable = self._spread_out(inner.usable)

    def _spread_out(self, values: np.ndarray) -> np.ndarray:
        """Values of gathered columns (last axis) among zeros for all others."""
        whole = np.zeros((*values.shape[:-1], self.n_features), dtype=values.dtype)
        whole[..., self._features] = values
        return whole

    def _at(self, features: Sequence[int] | np.ndarray) -> np.ndarray:
        places = self._place[np.asarray(features, dtype=np.intp)]
        assert np.all(places >= 0), "a column that was not gathered"
        return places

    def correlate(self, target: np.ndarray) -> np.ndarray:
        return self._spread_out(self._inner.correlate(target))

    def gram(self, features: Sequence[int] | np.ndarray) -> np.ndarray:
        return self._spread_out(self._inner.gram(self._at(features)))

    def sample_gram(self, features: np.ndarray) -> np.ndarray:
        return self._inner.sample_gram(self._at(features))

    def blocks(self, features: Sequence[int] | np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        return self._inner.blocks(self._at(features))

    def products(self, left: np.ndarray) -> np.ndarray:
        return self._spread_out(self._inner.products(left))

    def squares(self, weights: np.ndarray, sums: np.ndarray | None = None) -> np.ndarray:
        known = None if sums is None else sums[:, self._features]
        return self._spread_out(self._inner.squares(weights, known))

    def scores(self, coef: Any) -> Iterator[tuple[slice, np.ndarray]]:
        return self._inner.scores(coef[self._features])

    def extent(self) -> np.ndarray:
        return self._spread_out(self._inner.extent())

    def _range(self) -> tuple[np.ndarray, np.ndarray]:
        low, high = self._inner._range()
        return self._spread_out(low), self._spread_out(high)
