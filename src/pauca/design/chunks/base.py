"""A table as chunks of rows: what is computed on it are sums over chunks, and every reading of it is counted."""

from __future__ import annotations

import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import issparse

from pauca.design.chunks.chunk_sums import Sums, add, take

# The memory that reading and what is kept of a table may take, and the share of it that one chunk takes: one chunk is
# worked on, one waits, one is read, and each may be converted; sums and arrays of one entry a row need room as well.
DEFAULT_MEMORY = 1 << 29
CHUNK_SHARE = 32

T = TypeVar("T")


class ChunkError(ValueError):
    """A chunk that cannot be used, or a table that changed while it was read."""


class Chunks(ABC):
    """A table of numbers read in chunks of rows, in their order.

    A kernel is a function of a chunk and of what lies beside it (targets, weights) that returns plain arrays, or yields
    them one after the other where all of them would take much memory; it can be sent to another process. Nothing of the
    size of the table is ever held.

    Attributes
    ----------
    n_rows, n_features : int
    dtype : numpy.dtype
    names : list of str or None
        Names of the columns.
    memory : int
        Bytes that may be held at a time.
    passes : int
        How often the table was read from its first row to its last.
    """

    def __init__(
        self, n_rows: int, n_features: int, dtype: Any, names: Sequence[str] | None = None, memory: int = DEFAULT_MEMORY
    ) -> None:
        self.n_rows, self.n_features = int(n_rows), int(n_features)
        self.dtype = np.dtype(dtype)
        self.names = None if names is None else [str(name) for name in names]
        self.memory = memory
        self.passes = 0
        if not self.n_features or not self.n_rows:
            raise ChunkError(f"X is a table of {self.n_rows} rows and {self.n_features} columns; there is no data.")
        check_numeric(self.dtype)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.n_rows, self.n_features

    @property
    def ndim(self) -> int:
        """Always two."""
        return 2

    @property
    def nbytes(self) -> int:
        """Bytes of the whole table."""
        return self.n_rows * self.n_features * self.dtype.itemsize

    @property
    def rows_per_chunk(self) -> int:
        """Rows of a chunk, as the memory allows."""
        return max(1, self.memory // (CHUNK_SHARE * 8 * self.n_features))

    def __len__(self) -> int:
        return self.n_rows

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError(
            f"{self!r} is read in chunks and never held in memory as a whole. SparseRegressor, SparseClassifier and "
            "streams take it as it is, on its own: not behind scikit-learn's transformers, and not in its "
            "cross-validation."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.n_rows:,} rows and {self.n_features:,} columns, {self.dtype}>"

    @abstractmethod
    def _read(self, features: np.ndarray | None) -> Iterator[np.ndarray]:
        """Chunks of rows from the first to the last, all columns or some."""

    def map(
        self, kernel: Callable[..., T], *args: Any, beside: Sequence[Any] = (), features: np.ndarray | None = None
    ) -> Iterator[tuple[slice, T]]:
        """What a kernel returns for every chunk, with the rows of the chunk; one pass.

        It is called with the chunk (of the columns ``features``, if they are given), with the part of every array
        ``beside`` that belongs to its rows (the last axis; None stays None), and with ``args``.
        """
        if features is not None and not len(features):  # rows without columns, which frames do not have, are not read
            blocks = iter([(slice(0, self.n_rows), np.empty((self.n_rows, 0), dtype=self.dtype))])
        else:
            self.passes += 1
            blocks = self._checked(features)
        for rows, block in blocks:
            yield rows, kernel(block, *(part_of(one, rows) for one in beside), *args)

    def sum(
        self,
        kernel: Callable[..., Sums],
        *args: Any,
        beside: Sequence[Any] = (),
        merge: Callable[[Sums, Sums], Sums] = add,
    ) -> Sums:
        """What a kernel returns, added up over all chunks; one pass. ``merge`` adds to its first argument."""
        total: Sums | None = None
        for _, part in self.map(kernel, *args, beside=beside):
            total = part if total is None else merge(total, part)
            del part  # not to be held while the next one is made
        assert total is not None
        return total

    def first(self, kernel: Callable[..., T], *args: Any) -> T:
        """What a kernel returns for the first chunk alone."""
        return kernel(next(self._checked(None))[1], *args)

    def columns(self, features: Sequence[int] | np.ndarray) -> np.ndarray:
        """Some columns as they are, one to a row: shape (b, n), in the dtype of the table."""
        chosen = np.asarray(features, dtype=np.intp)
        gathered = np.empty((len(chosen), self.n_rows), dtype=self.dtype)
        for rows, block in self.map(take, features=chosen):
            gathered[:, rows] = block.T
        return gathered

    def _read_once(self, features: np.ndarray | None) -> Iterator[np.ndarray]:
        """The same where columns are asked for more than once: a frame has every name once."""
        if features is None or len(np.unique(features)) == len(features):
            return self._read(features)
        distinct, places = np.unique(features, return_inverse=True)
        return (block[:, places] for block in self._read(distinct))

    def _checked(self, features: np.ndarray | None) -> Iterator[tuple[slice, np.ndarray]]:
        """Chunks with the rows they hold; an error where they are not what the table promised."""
        start, seen, width = 0, 0, self.n_features if features is None else len(features)
        for number, block in enumerate(self._read_once(features)):
            check_chunk(block, number, width, self.dtype)
            seen = start + len(block)
            if seen > self.n_rows:
                break
            yield slice(start, seen), block
            start = seen
        if seen != self.n_rows:
            raise ChunkError(
                f"X had {self.n_rows:,} rows when it was opened and now has {'more' if seen > self.n_rows else seen}: "
                "it changed, or it can only be read once. Nothing was fitted; open it again."
            )


def part_of(beside: Any, rows: slice) -> Any:
    """The part of an array of one entry per row (its last axis), or of each of several, that belongs to some rows."""
    if isinstance(beside, tuple):
        return tuple(part_of(one, rows) for one in beside)
    return None if beside is None else beside[..., rows]


def check_numeric(dtype: np.dtype[Any]) -> None:
    """Raise an error for columns that are no numbers."""
    if dtype.kind not in "biuf":
        raise ChunkError(f"X holds {dtype}, and must hold numbers. Encode other columns as numbers, or leave them out.")


def check_chunk(block: Any, number: int, width: int, dtype: np.dtype[Any]) -> None:
    """Raise an error for a chunk that is not a table of the same columns as the others."""
    if issparse(block):
        raise ChunkError(
            f"Chunk {number} of X is sparse. Sparse tables are fitted in memory (a scipy CSR or CSC matrix); larger "
            "ones by StreamRegressor and StreamClassifier, chunk by chunk."
        )
    if not isinstance(block, np.ndarray) or block.ndim != 2:
        raise ChunkError(f"Chunk {number} of X is no table of two dimensions but {type(block).__name__}.")
    if block.shape[1] != width:
        raise ChunkError(f"Chunk {number} of X has {block.shape[1]} columns, and the chunks before it have {width}.")
    if not len(block):
        raise ChunkError(f"Chunk {number} of X has no rows. Leave it out, or join it to another.")
    if block.dtype != dtype:
        raise ChunkError(
            f"Chunk {number} of X holds {block.dtype}, and the first one {dtype}. Convert them to one type."
        )


def read_ahead(chunks: Iterator[T]) -> Iterator[T]:
    """The same items, the next of which is made by another thread in the meantime."""
    waiting: queue.Queue[tuple[bool, Any]] = queue.Queue(maxsize=1)
    stopped = threading.Event()

    def put(item: tuple[bool, Any]) -> None:
        while not stopped.is_set():
            try:
                waiting.put(item, timeout=0.1)
                return
            except queue.Full:
                continue

    def work() -> None:
        try:
            for item in chunks:
                put((True, item))
                if stopped.is_set():
                    return
            put((False, None))
        except BaseException as error:  # raised where the items are used
            put((False, error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while True:
            more, item = waiting.get()
            if more:
                yield item
            elif item is not None:
                raise item
            else:
                return
    finally:
        stopped.set()
