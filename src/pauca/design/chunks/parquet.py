"""Parquet files and lazy frames, read in batches by polars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pauca.design.chunks.base import DEFAULT_MEMORY, ChunkError, Chunks, read_ahead
from pauca.design.chunks.sources import FileStamps
from pauca.wording import quoted

if TYPE_CHECKING:
    import polars as pl


def open_files(paths: list[str], target: str | None, columns: Sequence[str] | None, memory: int) -> Any:
    """The columns of Parquet files, one below the other, in chunks, and the target where one is named."""
    import polars as pl

    first: dict[str, Any] | None = None
    for path in paths:
        try:
            schema = dict(pl.read_parquet_schema(path))
        except (pl.exceptions.PolarsError, OSError) as error:
            raise ChunkError(f"{path} cannot be read as a Parquet file: {error}") from error
        first = schema if first is None else first
        _check_same(path, schema, paths[0], first)
    return open_frame(pl.scan_parquet(paths, glob=False), target, columns, memory, paths)


def _check_same(path: str, schema: dict[str, Any], first_path: str, first: dict[str, Any]) -> None:
    """Raise an error for a file whose columns or types are not those of the first one."""
    lost, more = [name for name in first if name not in schema], [name for name in schema if name not in first]
    if lost or more:
        words = [f"lacks {quoted(lost)}"] * bool(lost) + [f"has {quoted(more)} besides"] * bool(more)
        raise ChunkError(f"{path} has other columns than {first_path}: it {' and '.join(words)}.")
    other = next((name for name in first if schema[name] != first[name]), None)
    if other is not None:
        raise ChunkError(
            f"{path} holds {schema[other]} in the column {other!r}, and {first_path} {first[other]}. Convert them to "
            "one type."
        )


def open_frame(
    frame: pl.LazyFrame, target: str | None, columns: Sequence[str] | None, memory: int, paths: Sequence[str] = ()
) -> Any:
    """The columns of a lazy frame in chunks, and the target where one is named."""
    schema = list(frame.collect_schema())
    names = [name for name in schema if name != target] if columns is None else list(columns)
    missing = [name for name in (*names, target) if name is not None and name not in schema]
    if missing:
        raise ChunkError(f"There are no such columns: {quoted(missing)}.")
    X = FrameChunks(select_columns(frame, names), memory, paths)
    if target is None:
        return X
    return X, select_columns(frame, [target]).collect().to_series().to_numpy()


class FrameChunks(Chunks):
    """The rows of a lazy frame of polars; only the columns that are requested are read."""

    def __init__(self, frame: pl.LazyFrame, memory: int = DEFAULT_MEMORY, paths: Sequence[str] = ()) -> None:
        import polars as pl

        schema = frame.collect_schema()
        other = [name for name, dtype in schema.items() if not (dtype.is_numeric() or dtype == pl.Boolean)]
        if other:
            raise ChunkError(
                f"Columns that do not hold numbers: {quoted(other)}. Encode them as numbers, or leave them out: "
                "scan(..., columns=[...]) names the columns to choose from."
            )
        # Single precision is kept, and holds truth values and short integers as well.
        narrow = {pl.Float32, pl.Boolean, pl.Int8, pl.UInt8, pl.Int16, pl.UInt16}
        self._narrow = all(dtype in narrow for dtype in schema.values())
        self._frame, self._stamps = frame, FileStamps(paths)
        n_rows = int(frame.select(pl.len()).collect().item())
        super().__init__(n_rows, len(schema), np.float32 if self._narrow else np.float64, list(schema), memory)

    def _read(self, features: np.ndarray | None) -> Iterator[np.ndarray]:
        self._stamps.check()
        return read_ahead(self._blocks(features))

    def _blocks(self, features: np.ndarray | None) -> Iterator[np.ndarray]:
        """Chunks of a fixed number of rows, filled from batches of any number: sums then do not depend on those."""
        assert self.names is not None
        names = self.names if features is None else [self.names[j] for j in features]
        step, filled = self.rows_per_chunk, 0
        block = np.empty((step, len(names)), dtype=self.dtype, order="F")
        for batch in self._batches(names, step):
            rest = batch
            while rest.height:
                some = rest.slice(0, step - filled)
                self._fill(block[filled : filled + some.height], some)
                rest, filled = rest.slice(some.height), filled + some.height
                if filled == step:
                    yield block
                    block, filled = np.empty_like(block), 0
        if filled:
            yield block[:filled]

    def _batches(self, names: list[str], step: int) -> Iterator[Any]:
        import polars as pl

        try:
            yield from select_columns(self._frame, names).collect_batches(chunk_size=step, maintain_order=True)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise ChunkError(f"X cannot be read any more: {error}") from error

    def _fill(self, block: np.ndarray, batch: Any) -> None:
        """Write the columns of a batch into a block; missing values become NaN, which the checks of X name."""
        import polars as pl

        dtype = pl.Float32 if self._narrow else pl.Float64
        for place, column in enumerate(batch.get_columns()):
            block[:, place] = column.cast(dtype).to_numpy()


def select_columns(frame: pl.LazyFrame, names: Sequence[str]) -> pl.LazyFrame:
    """Columns by their names, also where polars would read a name as a pattern."""
    import polars as pl

    return frame.select(pl.selectors.by_name(*names))
