"""Table files: their format, their columns, and reading the rows of some columns."""

from __future__ import annotations

import atexit
import codecs
import csv
import gzip
import io
import os
import re
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from pauca.cli.console import DataError, did_you_mean, require_file
from pauca.tables.raw_columns import parsed_share
from pauca.wording import quoted

if TYPE_CHECKING:
    import polars as pl

FORMATS = {
    **dict.fromkeys((".csv", ".txt", ".dat", ".tsv", ".tab"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".svm", ".svmlight", ".libsvm"), "libsvm"),
}

DELIMITERS = (",", "\t", ";", "|")
SAMPLED_LINES = 20
LONGEST_HEADER = 2**24

# Messages of the reader repeat the field that cannot be read, however long.
LONGEST_MESSAGE = 200

# "None" and "?" are not among them: they may be values of a column of text.
MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL"]

# Types are inferred from so many rows, and if a later row does not fit, from all. Inferring from more rows takes longer
# than reading all of them.
ROWS_TO_INFER_FROM = 500

NOT_UTF8 = "is not UTF-8 text; convert it first, for example with: iconv -f LATIN1 -t UTF-8"
UTF16 = "is UTF-16 text; convert it first, for example with: iconv -f UTF-16 -t UTF-8"
NO_TEXT = "is neither UTF-8 text nor a Parquet file; save the table as CSV or Parquet"

# A header of which more are numbers is probably a row of a table without one.
MOST_NUMBERS_AS_NAMES = 0.5
NO_NAMES = "; its first line has numbers for names: if it is a row, give --no-header"

GZIP_MAGIC = b"\x1f\x8b"

# A compressed table of more than so many bytes is refused if it is so many times as large as its file: tables shrink by
# a factor of ten or so, and files of zeros by a thousand.
MOST_UNPACKED = 1 << 30
LARGEST_RATIO = 200
UNPACKED_BLOCK = 1 << 20

LIBSVM_LINE = re.compile(rb"\s*[-+0-9.eE]+(\s+(qid:)?\d+:[-+0-9.eE]+)+\s*(#.*)?$")


@dataclass(frozen=True)
class TableFile:
    """A table on disk. ``header`` is as polars reads it, ``columns`` are the names without spaces around them."""

    path: str
    format: str
    header: list[str]
    columns: list[str]
    delimiter: str = ","
    has_index: bool = False
    """Whether there is a first column without a name, which is ignored."""
    file: str = ""
    """Where to read it, if it came through a pipe and was kept in a file."""
    has_header: bool = True

    @property
    def location(self) -> str:
        """Where to read the table."""
        return self.file or self.path

    def require(self, name: str, option: str) -> None:
        """Raise an error if there is no such column."""
        if name not in self.columns:
            hint = self.number_hint(name) or self.header_hint() or did_you_mean(name, self.columns)
            raise DataError(f"{option}: {self.path} has no column {name!r}{hint}")

    def header_hint(self) -> str:
        """The end of a message on a column that is not there, where the header itself looks wrong; empty elsewhere."""
        if self.format == "csv" and self.has_header and parsed_share(self.columns) > MOST_NUMBERS_AS_NAMES:
            return NO_NAMES
        return self.one_column_hint()

    def number_hint(self, name: str) -> str:
        """The end of a message on a column of a table without a header that is named by its number."""
        if self.has_header or not name.isdecimal() or not 0 < int(name) <= len(self.columns):
            return ""
        return f"; without a header, column {int(name)} is called {self.columns[int(name) - 1]!r}"

    def one_column_hint(self) -> str:
        """The end of a message on a table of one column, which probably has another delimiter; empty for others."""
        if self.format != "csv" or len(self.columns) != 1:
            return ""
        return (
            f"; it has only one column, {self.columns[0][:80]!r}, with the delimiters comma, tab, semicolon and |. If "
            "it has another delimiter, give it with --delimiter"
        )


def inspect_table(path: str, delimiter: str | None = None, *, has_header: bool = True) -> TableFile:
    """The format of a table file and its columns; ``-`` is standard input, and pipes are read once."""
    file = keep_stream(path)
    shown = "standard input" if path == "-" else path
    source = file or path
    _check_file(source, shown)
    format = FORMATS.get(os.path.splitext(source.removesuffix(".gz"))[1].lower()) or _detect_format(source)
    if format == "libsvm":
        return TableFile(shown, format, [], [], file=source)
    if format == "parquet":
        with _polars_errors(shown):
            header = list(polars().read_parquet_schema(_path_or_content(source)))
        return TableFile(shown, format, header, _check_names(shown, header), file=source)
    tabs = source.removesuffix(".gz").lower().endswith((".tsv", ".tab"))
    delimiter = delimiter or ("\t" if tabs else _detect_delimiter(source))
    names = header = _csv_header(source, delimiter)
    if not has_header:
        names = [f"column{number}" for number in range(1, len(header) + 1)]
        header = [f"column_{number}" for number in range(1, len(header) + 1)]  # as polars calls them
        return TableFile(shown, format, header, names, delimiter, file=source, has_header=False)
    if any('"' in name for name in header):  # polars keeps quotes within names
        with _polars_errors(shown):
            header = polars().read_csv(source, separator=delimiter, n_rows=0).columns
    # pandas writes the index as a first column without a name.
    first = int(len(names) > 1 and not names[0].strip())
    return TableFile(shown, format, header[first:], _check_names(shown, names[first:]), delimiter, bool(first), source)


def keep_stream(path: str) -> str:
    """The file in which standard input (``-``) or what comes through a pipe is kept until the end; "" for a file.

    A table is read several times: for its format, its header and its rows.
    """
    is_stream = path == "-" or (os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)))
    if not is_stream:
        return ""
    if path == "-":
        content = sys.stdin.buffer.read()
    else:
        with open(path, "rb") as stream:
            content = stream.read()
    handle, file = tempfile.mkstemp(prefix="pauca_", suffix=".gz" if content[:2] == GZIP_MAGIC else "")
    atexit.register(remove_if_there, file)
    with os.fdopen(handle, "wb") as kept:
        kept.write(content)
    return file


def remove_if_there(file: str) -> None:
    """Remove a file, if nobody else has."""
    with suppress(FileNotFoundError):
        os.remove(file)


def read_frame(table: TableFile, columns: Sequence[str] | None = None, texts: Sequence[str] = ()) -> pl.DataFrame:
    """The rows of a CSV or Parquet file: some columns or all, those in ``texts`` as text even if they hold numbers."""
    pl = polars()
    wanted = table.columns if columns is None else list(dict.fromkeys(columns))
    raw_name = dict(zip(table.columns, table.header, strict=True))
    raw_names = [raw_name[name] for name in wanted]
    index_of = {name: index for index, name in enumerate(table.header, int(table.has_index))}
    indices = sorted(index_of[name] for name in raw_names)
    with _polars_errors(table.path):
        if table.format == "parquet":
            frame = pl.read_parquet(_path_or_content(table.location), columns=indices)
        else:
            frame = _read_csv(table, indices, [raw_name[name] for name in texts])
            if not table.has_header:
                frame.columns = [table.header[index] for index in indices]
    frame = select_columns(frame, raw_names).rename(dict(zip(raw_names, wanted, strict=True)))
    if frame.height == 0:
        raise DataError(f"{table.path} has a header but no rows")
    return frame


def select_columns(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Columns by name; elsewhere polars reads names such as "*" and "^...$" as patterns."""
    return frame[list(names)] if names else polars().DataFrame()


def with_safe_name(column: pl.Series) -> pl.Series:
    """A column with a name that is no pattern: most methods of polars look the column up by its name."""
    return column.alias("column")


def read_libsvm(table: TableFile, first_index: int | None = None) -> tuple[Any, Any, int]:
    """The matrix, the labels, and whether columns are counted from 0 or 1.

    Files do not say which: it is 0 if the file has a column 0, and otherwise 1, as the format prescribes. For
    predictions, ``first_index`` is that of the training file.
    """
    from scipy import sparse
    from sklearn.datasets import load_svmlight_file

    try:
        with _unpacked(table.path):
            X, y = load_svmlight_file(table.location, zero_based=True)
    except (ValueError, OverflowError) as error:
        raise DataError(f"{table.path} cannot be read as LIBSVM: {error}") from error
    if X.shape[0] == 0:
        raise DataError(f"{table.path} has no rows")
    if not np.all(np.isfinite(y)):
        raise DataError(f"{table.path} has labels that are not finite numbers; leave out those rows")
    has_zero = bool((X.indices == 0).any())
    if has_zero and first_index == 1:
        raise DataError(f"{table.path} counts its columns from 0, but the training table from 1; renumber its columns")
    first = first_index if first_index is not None else 0 if has_zero else 1
    if first == 1:
        X = sparse.csr_matrix((X.data, X.indices - 1, X.indptr), shape=(X.shape[0], max(1, X.shape[1] - 1)))
    return X, y, first


def polars() -> Any:
    """The module polars, which reads tables."""
    try:
        import polars
    except ImportError as error:
        raise DataError("reading tables needs polars; install it with: pip install polars") from error
    return polars


def _read_csv(table: TableFile, indices: list[int], texts: list[str]) -> pl.DataFrame:
    pl = polars()

    def read(rows_to_infer_from: int | None) -> Any:
        return pl.read_csv(
            table.location,
            has_header=table.has_header,
            columns=indices,
            separator=table.delimiter,
            null_values=MISSING,
            infer_schema_length=rows_to_infer_from,
            schema_overrides=dict.fromkeys(texts, pl.String),
        )

    try:
        return read(ROWS_TO_INFER_FROM)
    except pl.exceptions.ComputeError as error:
        if "could not parse" not in str(error):
            raise
        return read(None)


def _check_file(path: str, shown: str) -> None:
    require_file(path, "a table")
    try:
        with _unpacked(path), _open(path) as file:
            empty = not file.read(1)
            if path.endswith(".gz") and _is_bomb(file, os.path.getsize(path)):
                raise DataError(
                    f"{path} unpacks to more than {MOST_UNPACKED >> 20} MB and more than {LARGEST_RATIO} times its "
                    "size, as files that are made to fill the memory do; unpack it first if it is a table"
                )
    except OSError as error:
        raise DataError(f"{shown} cannot be read: {error.strerror or error}") from None
    if empty:
        raise DataError(f"{shown} is empty")


def _is_bomb(file: IO[bytes], packed: int) -> bool:
    """Whether a compressed file holds far more than tables do; it is unpacked block by block, and none is kept."""
    most, seen = max(MOST_UNPACKED, LARGEST_RATIO * packed), 0
    while seen <= most:
        block = len(file.read(UNPACKED_BLOCK))
        if not block:
            return False
        seen += block
    return True


def _open(path: str) -> IO[bytes]:
    return gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")  # type: ignore[return-value]


def _path_or_content(path: str) -> Any:
    """A path, or the content of a compressed file."""
    if not path.endswith(".gz"):
        return path
    with _unpacked(path), _open(path) as file:
        return io.BytesIO(file.read())


def _detect_format(path: str) -> str:
    with _unpacked(path), _open(path) as file:
        first = file.readline(LONGEST_HEADER)
    if first.startswith(b"PAR1"):
        return "parquet"
    return "libsvm" if LIBSVM_LINE.match(first.rstrip(b"\r\n")) else "csv"


@contextmanager
def _lines(path: str) -> Iterator[IO[str]]:
    try:
        with _unpacked(path), _open(path) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError:
        raise DataError(f"{path} {_encoding_hint(path)}") from None


def _encoding_hint(path: str) -> str:
    """What a file is that cannot be decoded, by its first bytes."""
    with _unpacked(path), _open(path) as file:
        first = file.read(LONGEST_MESSAGE)
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return UTF16
    return NO_TEXT if b"\0" in first else NOT_UTF8


@contextmanager
def _unpacked(path: str) -> Iterator[None]:
    """Errors of a compressed file that is truncated or damaged."""
    try:
        yield
    except EOFError:
        raise DataError(f"{path} is truncated") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} cannot be unpacked: {error}") from None


def _detect_delimiter(path: str) -> str:
    """The delimiter that splits the first lines into the most columns, the same number in each, or else the header."""
    with _lines(path) as file:
        sample = [line for _ in range(SAMPLED_LINES) if (line := file.readline(LONGEST_HEADER))]

    def rank(delimiter: str) -> tuple[bool, int]:
        try:
            lengths = [len(row) for row in csv.reader(sample, delimiter=delimiter) if row]
        except csv.Error:  # a field that is longer than any name or number
            lengths = []
        return (bool(lengths) and min(lengths) == max(lengths) > 1, lengths[0] if lengths else 0)

    return max(DELIMITERS, key=rank)


def _csv_header(path: str, delimiter: str) -> list[str]:
    with _lines(path) as file:
        try:
            return next(row for row in csv.reader(_header_lines(path, file), delimiter=delimiter) if row)
        except StopIteration:
            raise DataError(f"{path} is empty") from None
        except csv.Error as error:
            raise DataError(f"{path}: the header cannot be read: {error}") from None


def _header_lines(path: str, file: IO[str]) -> Iterator[str]:
    while line := file.readline(LONGEST_HEADER):  # a line may go on for ever
        if line.endswith("\r"):  # the reader of the table would take all such lines for one
            raise DataError(
                f"{path} has lines that end in carriage returns alone; convert it first, for example with: "
                "tr '\\r' '\\n'"
            )
        yield line


def _check_names(path: str, header: list[str]) -> list[str]:
    names = [name.strip() for name in header]
    row = NO_NAMES if parsed_share(names) > MOST_NUMBERS_AS_NAMES else ""  # which may lack values, and repeat some
    if "" in names:
        raise DataError(f"{path}: column {names.index('') + 1} has no name in the header{row or '; give it one'}")
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1] if len(set(names)) < len(names) else []
    if twice:
        remedy = row or "; rename or remove all but one"
        raise DataError(f"{path} has several columns with the same name: {quoted(twice)}{remedy}")
    return names


@contextmanager
def _polars_errors(path: str) -> Iterator[None]:
    """Errors of polars in one line."""
    errors: Any = polars().exceptions.PolarsError
    try:
        yield
    except (errors, OSError, ValueError) as error:
        message = str(error).strip().split("\n")[0]
        if message.startswith("could not parse `") and message.count("`") == 1:  # a field of several lines
            message = f"a quotation mark is missing after {message.partition('`')[2]}"
        message = message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]} ..."
        if "utf-8" in message.lower():
            message = f"it {NOT_UTF8}"
        elif "more fields than defined" in message:
            message = "a row has more fields than the header has names"
        raise DataError(f"{path} cannot be read: {message}") from error
