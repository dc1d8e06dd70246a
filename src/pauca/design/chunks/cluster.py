"""Dask arrays and frames: the rows stay on the workers, and only sums travel. The only module that imports Dask."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any, TypeVar

import dask
import dask.array as da
import numpy as np

from pauca.design.chunks.base import ChunkError, Chunks, check_chunk, part_of
from pauca.design.chunks.chunk_sums import Sums, add
from pauca.threads import blas_threads
from pauca.wording import quoted

# Results of so many chunks are added up at a time. The tree depends on the chunks alone, so that the same sums are
# taken in the same order on any number of workers.
FAN_IN = 8

# Without a cluster so many chunks are worked on before their results are passed on.
CHUNKS_AT_ONCE = 16

T = TypeVar("T")


class DaskChunks(Chunks):
    """A Dask array or frame; its chunks of rows are the chunks that are summed."""

    def __init__(self, array: Any, names: Sequence[str] | None = None) -> None:
        if array.ndim != 2:
            raise ChunkError(f"X must have two dimensions; this array has {array.ndim}.")
        lengths = array.chunks[0]
        if any(np.isnan(length) for length in lengths):
            raise ChunkError("The sizes of X's chunks are not known. Call X.compute_chunk_sizes() first.")
        if 0 in lengths:
            raise ChunkError(f"Chunk {lengths.index(0)} of X has no rows. Leave it out, or join it to another.")
        super().__init__(array.shape[0], array.shape[1], array.dtype, names)
        # A kernel sees all columns of its rows.
        self._array = array if array.numblocks[1] == 1 else array.rechunk({1: -1})
        ends = np.cumsum(lengths)
        self._slices = [slice(int(end - length), int(end)) for end, length in zip(ends, lengths, strict=True)]

    @classmethod
    def of(cls, X: Any) -> DaskChunks:
        """The chunks of an array, or the partitions of a frame."""
        if not hasattr(X, "columns"):
            return cls(X)
        other = [str(name) for name, dtype in X.dtypes.items() if np.dtype(object) == dtype or dtype.kind not in "biuf"]
        if other:
            raise ChunkError(
                f"Columns that do not hold numbers: {quoted(other)}. Encode them as numbers or leave them out."
            )
        names = [str(name) for name in X.columns]
        dtypes = set(X.dtypes)
        if len(dtypes) > 1 or not all(isinstance(dtype, np.dtype) for dtype in dtypes):
            X = X.map_partitions(_as_floats, meta=_as_floats(X._meta))
        # Lengths of partitions are not known before they are read.
        return cls(X.to_dask_array(lengths=True), names)

    def map(
        self, kernel: Callable[..., T], *args: Any, beside: Sequence[Any] = (), features: np.ndarray | None = None
    ) -> Iterator[tuple[slice, T]]:
        """What a kernel returns for every chunk, with the rows of the chunk; one round of the cluster."""
        self.passes += 1
        yield from zip(self._slices, self._results(kernel, args, beside, features), strict=True)

    def sum(
        self,
        kernel: Callable[..., Sums],
        *args: Any,
        beside: Sequence[Any] = (),
        merge: Callable[[Sums, Sums], Sums] = add,
    ) -> Sums:
        """What a kernel returns, added up over all chunks on the workers; one round of the cluster."""
        self.passes += 1
        with _clear_errors():
            place = _Placing(self._array)
            parts = self._tasks(place, kernel, args, beside, None)
            while len(parts) > 1:
                groups = [parts[start : start + FAN_IN] for start in range(0, len(parts), FAN_IN)]
                parts = [place.submit(_merged, group, merge) for group in groups]
            return tuple(_writable(one) for one in place.result(parts[0]))

    def first(self, kernel: Callable[..., T], *args: Any) -> T:
        """What a kernel returns for the first chunk alone."""
        with _clear_errors():
            place = _Placing(self._array)
            found: T = place.result(self._tasks(place, kernel, args, (), None, only=1)[0])
            return found

    def _results(self, kernel: Any, args: Any, beside: Sequence[Any], features: np.ndarray | None) -> Iterator[Any]:
        with _clear_errors():
            place = _Placing(self._array)
            yield from place.results(self._tasks(place, kernel, args, beside, features))

    def _tasks(
        self,
        place: _Placing,
        kernel: Any,
        args: Any,
        beside: Sequence[Any],
        features: np.ndarray | None,
        only: int | None = None,
    ) -> list[Any]:
        shared = place.shared((kernel, features, args, self.n_features, self.dtype))
        return [
            place.on_block(number, _on_chunk, number, tuple(part_of(one, rows) for one in beside), shared)
            for number, rows in enumerate(self._slices[:only])
        ]

    def _read(self, features: np.ndarray | None) -> Iterator[np.ndarray]:
        """Chunks on this machine, for who cannot send chunk_sums."""
        yield from self._results(_chunk_itself, (), (), features)


def _as_floats(part: Any) -> Any:
    """A partition in double precision, with NaN where a value is missing."""
    return type(part)(part.to_numpy(dtype=np.float64, na_value=np.nan), index=part.index, columns=part.columns)


class _Placing:
    """Where tasks run: on the workers that hold the chunks, or as one graph of delayed calls."""

    def __init__(self, array: Any) -> None:
        self._client, self._futures, self._workers = _persisted(array)
        self._blocks = array.to_delayed().ravel().tolist() if self._client is None else []

    def shared(self, value: Any) -> Any:
        """What all tasks are given, once."""
        if self._client is not None:
            return value
        return dask.delayed(value, pure=False, traverse=False)

    def on_block(self, number: int, function: Callable[..., Any], *args: Any) -> Any:
        """A task on a chunk."""
        if self._client is None:
            return dask.delayed(function, pure=False)(self._blocks[number], *args)
        # Should the worker that has the chunk be gone, any other computes it again.
        where = {"workers": self._workers[number], "allow_other_workers": True} if self._workers[number] else {}
        return self._client.submit(function, self._futures[number], *args, pure=False, **where)

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        """A task on results of others."""
        if self._client is None:
            return dask.delayed(function, pure=False)(*args)
        return self._client.submit(function, *args, pure=False)

    def result(self, task: Any) -> Any:
        """The result of a task."""
        return task.compute() if self._client is None else task.result()

    def results(self, tasks: list[Any]) -> Iterator[Any]:
        """The results of tasks, in their order."""
        for start in range(0, len(tasks), CHUNKS_AT_ONCE):
            some = tasks[start : start + CHUNKS_AT_ONCE]
            if self._client is None:
                yield from dask.compute(*some)
            else:
                for task in some:
                    yield task.result()


def _persisted(array: Any) -> tuple[Any, list[Any], list[list[str]]]:
    """The client, the futures of all chunks in memory of its workers, and where they are; nothing without them."""
    try:
        from distributed import futures_of
    except ImportError:
        return None, [], []
    found = {future.key: future for future in futures_of(array)}
    keys = [block.key for block in array.to_delayed().ravel().tolist()] if found else []
    if not keys or not all(key in found for key in keys):
        return None, [], []
    futures = [found[key] for key in keys]
    client = futures[0].client
    where = client.who_has(futures)
    return client, futures, [list(where.get(key, ())) for key in keys]


def _on_chunk(block: Any, number: int, beside: tuple[Any, ...], shared: tuple[Any, ...]) -> Any:
    """Run a kernel on a chunk; sums must not depend on how many threads a worker has."""
    kernel, features, args, width, dtype = shared
    block = block if hasattr(block, "toarray") else np.asarray(block)
    check_chunk(block, number, width, dtype)
    with blas_threads.single():
        found = kernel(block if features is None else block[:, features], *beside, *args)
        return list(found) if isinstance(found, Iterator) else found


def _chunk_itself(block: np.ndarray) -> np.ndarray:
    return block


def _merged(parts: list[Sums], merge: Callable[[Sums, Sums], Sums]) -> Sums:
    total = tuple(_writable(one) for one in parts[0])
    for part in parts[1:]:
        total = merge(total, part)
    return total


def _writable(value: Any) -> Any:
    """A copy of an array: results may be shared with others."""
    return value.copy() if isinstance(value, np.ndarray) else value


class _clear_errors:  # noqa: N801 - used like a function
    """What is wrong with a cluster, in words."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if error is None or isinstance(error, ChunkError):
            return
        lost = isinstance(error, CancelledError) or type(error).__module__.startswith("distributed")
        if lost or isinstance(error, TimeoutError):
            raise ChunkError(
                "The cluster lost chunks of X that cannot be computed again, or went away. Nothing was fitted. Data "
                "sent by client.scatter are lost with their worker: load X on the workers (da.from_zarr, "
                f"dd.read_parquet, persist) instead. ({type(error).__name__}: {error})"
            ) from error


def map_rows(X: Any, function: Callable[[Any], np.ndarray], dtype: Any, columns: Sequence[Any] | None) -> Any:
    """A lazy array, or series or frame, of what a function returns for every chunk of rows.

    ``columns`` are the names of its columns; None for one number a row.
    """
    if hasattr(X, "columns"):
        return X.map_partitions(_as_pandas, function, columns, meta=_as_pandas(X._meta, None, columns, dtype))
    array = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
    if columns is None:
        return array.map_blocks(function, dtype=dtype, drop_axis=1, meta=np.empty(0, dtype=dtype))
    chunks = (array.chunks[0], (len(columns),))
    return array.map_blocks(function, dtype=dtype, chunks=chunks, meta=np.empty((0, 0), dtype=dtype))


def _as_pandas(
    part: Any, function: Callable[[Any], np.ndarray] | None, columns: Sequence[Any] | None, dtype: Any = None
) -> Any:
    import pandas as pd

    shape = (0,) if columns is None else (0, len(columns))
    values = np.empty(shape, dtype=dtype) if function is None or not len(part) else function(part)
    if columns is None:
        return pd.Series(values, index=part.index)
    return pd.DataFrame(values, index=part.index, columns=list(columns))


def one_row(X: Any) -> Any:
    """A row of zeros with the columns of an array or a frame."""
    if not hasattr(X, "columns"):
        return np.zeros((1, X.shape[1]))
    import pandas as pd

    return pd.DataFrame(np.zeros((1, len(X.columns))), columns=list(X.columns))


def as_array(values: Any, *, lengths: bool) -> Any:
    """One value for every row as a lazy array, whatever it is; ``lengths`` of partitions take a round to find."""
    if hasattr(values, "to_dask_array"):
        return values.to_dask_array(lengths=lengths or None)
    return values if hasattr(values, "compute") else da.from_array(np.asarray(values))
