"""Parquet files larger than the memory that a fit may take: their columns are read in chunks of rows."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pauca.cli.console import DataError, UsageError, count
from pauca.cli.table_files import TableFile, polars
from pauca.wording import quoted

if TYPE_CHECKING:
    import polars as pl


def lazy_frame(table: TableFile) -> pl.LazyFrame:
    """The columns of a Parquet file by their names without spaces around them."""
    pl = polars()
    frame = pl.scan_parquet(table.location, glob=False)
    return frame.rename(dict(zip(table.header, table.columns, strict=True)))


def is_too_large(table: TableFile, columns: Sequence[str], memory: int) -> bool:
    """Whether some columns of a table would take more than so many bytes as numbers."""
    if table.format != "parquet" or table.location.endswith(".gz"):  # what is packed as a whole is unpacked as a whole
        return False
    rows = int(lazy_frame(table).select(polars().len()).collect().item())
    return 8 * rows * len(columns) > memory


def read_in_chunks(
    table: TableFile, features: Sequence[str], others: Sequence[str], options: Namespace
) -> tuple[Any, pl.DataFrame]:
    """The features of a table in chunks, and its target and other columns of rows in memory."""
    from pauca.design.chunks import ChunkError
    from pauca.design.chunks.parquet import open_frame

    for option in ("categories", "missing"):
        if getattr(options, option) is not None:
            raise UsageError(
                f"--{option} needs the whole table, and {table.path} is larger than --memory; encode or fill its "
                "columns first, or allow more memory"
            )
    frame, pl = lazy_frame(table), polars()
    given = frame.select(pl.selectors.by_name(*dict.fromkeys(others))).collect()
    for column in given.get_columns():
        if column.null_count():
            raise DataError(
                f"the column {column.name!r} has {count(column.null_count(), 'missing value')}; leave out those rows"
            )
    if not features:
        raise DataError(f"{table.path} has no candidate columns besides the target")
    text = [name for name, dtype in frame.collect_schema().items() if name in features and dtype == pl.String]
    if text:
        raise DataError(
            f"{table.path} is larger than --memory, so it is read in chunks, and columns of text cannot be encoded: "
            f"{quoted(text)}. Encode them first, --drop {','.join(text[:5])}, or allow more memory"
        )
    try:
        return open_frame(frame, None, list(features), options.memory, [table.path]), given
    except ChunkError as error:
        raise DataError(f"{table.path}: {error}") from error
