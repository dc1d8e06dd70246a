"""Tables as files: what kind they are, which columns they have, and the rows of those that are wanted."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from pauca.cli.messages import BadData, did_you_mean
from pauca.wording import quoted

if TYPE_CHECKING:
    import polars as pl

KINDS = {
    **dict.fromkeys((".csv", ".txt", ".dat", ".tsv", ".tab"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".svm", ".svmlight", ".libsvm"), "libsvm"),
}

DELIMITERS = (",", "\t", ";", "|")
SAMPLED_LINES = 20
LONGEST_HEADER = 2**24

# What stands for a value that is not there. "None" and "?" do not: they may well be values of a column of text.
MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL"]

# Types are guessed from so many rows first; if one further down is of another type, from all. More rows here take
# longer to guess from than all rows take to read.
ROWS_TO_GUESS_FROM = 500

LIBSVM_LINE = re.compile(rb"\s*[-+0-9.eE]+(\s+(qid:)?\d+:[-+0-9.eE]+)+\s*(#.*)?$")


@dataclass(frozen=True)
class TableFile:
    """A table on disk. ``header`` is as polars reads it, ``columns`` are the names without spaces around them."""

    path: str
    kind: str
    header: list[str]
    columns: list[str]
    delimiter: str = ","
    numbered: bool = False
    """Whether there is a first column without a name, which is left out."""

    def require(self, name: str, what: str) -> None:
        """Refuse a column that is not there."""
        if name not in self.columns:
            hint = self.one_column_hint() or did_you_mean(name, self.columns)
            raise BadData(f"{self.path} has no column {name!r} {what}{hint}")

    def one_column_hint(self) -> str:
        """What to say of a table of one column, which as a rule has another delimiter; empty for others."""
        if self.kind != "csv" or len(self.columns) != 1:
            return ""
        return (
            f"; it has one column only, {self.columns[0][:80]!r}: none of comma, tab, semicolon and | stands between "
            "its columns. If another character does, name it with --delimiter"
        )


def look_at(path: str, delimiter: str | None = None) -> TableFile:
    """What kind of table a file holds, and its columns."""
    _check_file(path)
    kind = KINDS.get(os.path.splitext(path.removesuffix(".gz"))[1].lower()) or _kind_by_content(path)
    if kind == "libsvm":
        return TableFile(path, kind, [], [])
    if kind == "parquet":
        with _polars_words(path):
            header = list(polars().read_parquet_schema(_plain(path)))
    else:
        tabs = path.removesuffix(".gz").lower().endswith((".tsv", ".tab"))
        delimiter = delimiter or ("\t" if tabs else _sniffed(path))
        header = _csv_header(path, delimiter)
    names = header
    if kind == "csv" and any('"' in name for name in header):  # polars leaves quotes within names as they are written
        with _polars_words(path):
            header = polars().read_csv(path, separator=delimiter, n_rows=0).columns
    # Data frames are often written with their row numbers before, under no name.
    numbered = kind == "csv" and len(names) > 1 and not names[0].strip()
    return TableFile(path, kind, header[numbered:], _checked_names(path, names[numbered:]), delimiter or ",", numbered)


def read_frame(table: TableFile, columns: Sequence[str] | None = None, texts: Sequence[str] = ()) -> pl.DataFrame:
    """The rows of a CSV or Parquet file: some columns or all; those in ``texts`` as text, whatever they look like."""
    pl = polars()
    wanted = table.columns if columns is None else list(dict.fromkeys(columns))
    as_written = dict(zip(table.columns, table.header, strict=True))
    places = [as_written[name] for name in wanted]
    found = {name: place for place, name in enumerate(table.header, int(table.numbered))}
    numbers = sorted(found[name] for name in places)
    with _polars_words(table.path):
        if table.kind == "parquet":
            frame = pl.read_parquet(_plain(table.path), columns=numbers)
        else:
            frame = _read_csv(table, numbers, [as_written[name] for name in texts])
    frame = selected(frame, places).rename(dict(zip(places, wanted, strict=True)))
    if frame.height == 0:
        raise BadData(f"{table.path} has a header and no rows")
    return frame


def selected(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Columns by their names, whatever these are: polars takes "*" and "^...$" for patterns elsewhere."""
    return frame[list(names)] if names else polars().DataFrame()


def nameless(column: pl.Series) -> pl.Series:
    """A column under a name that is no pattern: polars looks columns up by name for most of what is done to them."""
    return column.alias("column")


def read_libsvm(table: TableFile, first_index: int | None = None) -> tuple[Any, Any, int]:
    """The matrix, the labels, and whether columns are counted from 0 or 1.

    Files do not say from where they count: a column 0 tells, and where none is seen it is 1, as the format has it. For
    predictions ``first_index`` says what the file of the fit had.
    """
    from scipy import sparse
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(table.path, zero_based=True)
    except (ValueError, OverflowError) as error:
        raise BadData(f"{table.path} cannot be read as LIBSVM: {error}") from error
    if X.shape[0] == 0:
        raise BadData(f"{table.path} has no rows")
    has_zero = bool((X.indices == 0).any())
    if has_zero and first_index == 1:
        raise BadData(f"{table.path} counts its columns from 0, and the table of the fit from 1")
    first = first_index if first_index is not None else 0 if has_zero else 1
    if first == 1:
        X = sparse.csr_matrix((X.data, X.indices - 1, X.indptr), shape=(X.shape[0], max(1, X.shape[1] - 1)))
    return X, y, first


def polars() -> Any:
    """The library that reads tables."""
    try:
        import polars
    except ImportError as error:
        raise BadData('tables are read by polars, which is not here: pip install "pauca[cli]"') from error
    return polars


def _read_csv(table: TableFile, numbers: list[int], texts: list[str]) -> pl.DataFrame:
    pl = polars()

    def read(rows_to_guess_from: int | None) -> Any:
        return pl.read_csv(
            table.path,
            columns=numbers,
            separator=table.delimiter,
            null_values=MISSING,
            infer_schema_length=rows_to_guess_from,
            schema_overrides=dict.fromkeys(texts, pl.String),
        )

    try:
        return read(ROWS_TO_GUESS_FROM)
    except pl.exceptions.ComputeError as error:
        if "could not parse" not in str(error):
            raise
        return read(None)


def _check_file(path: str) -> None:
    if os.path.isdir(path):
        raise BadData(f"{path} is a folder, not a table")
    try:
        with _opened(path) as file:
            empty = not file.read(1)
    except FileNotFoundError:
        near = os.listdir(os.path.dirname(path) or ".") if os.path.isdir(os.path.dirname(path) or ".") else []
        guess = did_you_mean(os.path.basename(path), near)
        raise BadData(f"there is no file {path}{guess if 'mean' in guess else ''}") from None
    except OSError as error:
        raise BadData(f"{path} cannot be read: {error.strerror or error}") from None
    except EOFError:
        raise BadData(f"{path} is cut short") from None
    if empty:
        raise BadData(f"{path} is empty")


def _opened(path: str) -> IO[bytes]:
    return gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")  # type: ignore[return-value]


def _plain(path: str) -> Any:
    """A path, or the content of a compressed file."""
    if not path.endswith(".gz"):
        return path
    with _opened(path) as file:
        return io.BytesIO(file.read())


def _kind_by_content(path: str) -> str:
    with _opened(path) as file:
        first = file.readline(LONGEST_HEADER)
    if first.startswith(b"PAR1"):
        return "parquet"
    return "libsvm" if LIBSVM_LINE.match(first.rstrip(b"\r\n")) else "csv"


@contextmanager
def _lines(path: str) -> Iterator[IO[str]]:
    try:
        with _opened(path) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError:
        raise BadData(
            f"{path} is not text in UTF-8; turn it into that first, such as by: iconv -f LATIN1 -t UTF-8"
        ) from None
    except (EOFError, gzip.BadGzipFile) as error:
        raise BadData(f"{path} cannot be unpacked: {error}") from None


def _sniffed(path: str) -> str:
    """The delimiter that splits the first lines into the most columns, as many in each; else in the header alone."""
    with _lines(path) as file:
        sample = [line for _ in range(SAMPLED_LINES) if (line := file.readline(LONGEST_HEADER))]

    def widths(delimiter: str) -> list[int]:
        return [len(row) for row in csv.reader(sample, delimiter=delimiter) if row]

    def rank(delimiter: str) -> tuple[bool, int]:
        found = widths(delimiter)
        return (bool(found) and min(found) == max(found) > 1, found[0] if found else 0)

    return max(DELIMITERS, key=rank)


def _csv_header(path: str, delimiter: str) -> list[str]:
    with _lines(path) as file:
        try:
            return next(row for row in csv.reader(file, delimiter=delimiter) if row)
        except StopIteration:
            raise BadData(f"{path} is empty") from None
        except csv.Error as error:
            raise BadData(f"{path}: the header cannot be read: {error}") from None


def _checked_names(path: str, header: list[str]) -> list[str]:
    names = [name.strip() for name in header]
    if "" in names:
        raise BadData(f"{path}: column {names.index('') + 1} has no name in the header; give it one")
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1] if len(set(names)) < len(names) else []
    if twice:
        raise BadData(f"{path} has several columns of one name: {quoted(twice)}; rename or remove all but one")
    return names


@contextmanager
def _polars_words(path: str) -> Iterator[None]:
    """What polars says of a bad file, in one line."""
    errors: Any = polars().exceptions.PolarsError
    try:
        yield
    except (errors, OSError, ValueError) as error:
        said = str(error).strip().split("\n")[0]
        if "utf-8" in said.lower():
            said = "it is not text in UTF-8; turn it into that first, such as by: iconv -f LATIN1 -t UTF-8"
        elif "more fields than defined" in said:
            said = "a row has more fields than the header has names"
        raise BadData(f"{path} cannot be read: {said}") from error
