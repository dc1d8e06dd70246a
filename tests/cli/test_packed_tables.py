"""Compressed tables that are made to fill the memory are refused, block by block."""

import gzip
import zlib

import pytest

from pauca.cli import table_files
from pauca.cli.console import DataError
from pauca.cli.table_files import inspect_table


def packed_zeros(megabytes):
    """A gzip file of one line of zeros, packed without holding them."""
    packer = zlib.compressobj(9, wbits=31)
    block = b"0" * (1 << 20)
    return b"".join([*(packer.compress(block) for _ in range(megabytes)), packer.flush()])


def test_a_file_of_zeros_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(table_files, "MOST_UNPACKED", 8 << 20)
    path = tmp_path / "zeros.csv.gz"
    path.write_bytes(packed_zeros(16))
    with pytest.raises(DataError, match="more than 200 times its size"):
        inspect_table(str(path))


def test_a_table_that_packs_well_is_read(tmp_path):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 100_000))
    assert inspect_table(str(path)).columns == ["a", "b"]
