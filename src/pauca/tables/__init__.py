"""Raw tables, with text, categories and missing values, as columns of numbers."""

from pauca.tables.encoding import ColumnEncoding, TableEncoding, Term
from pauca.tables.errors import TableError
from pauca.tables.raw_table import RawTable, needs_encoding, read_table

__all__ = ["ColumnEncoding", "RawTable", "TableEncoding", "TableError", "Term", "needs_encoding", "read_table"]
