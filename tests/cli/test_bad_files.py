"""Tables that are broken lead to an error in words, never to one of a library or of Python."""

import gzip

import pytest

from pauca.cli import main

ROWS = "a,b,y\n" + "".join(f"{i},{i * i % 7},{i % 3}.5\n" for i in range(30))


def packed(text, keep=1.0):
    whole = gzip.compress(text.encode())
    return whole[: int(keep * len(whole))]


def damaged(text):
    content = bytearray(gzip.compress(text.encode()))
    content[20:30] = b"\xff" * 10
    return bytes(content)


BAD = {
    "table.csv.gz": packed(ROWS * 50, 0.7),
    "short.csv.gz": packed(ROWS, 0.2),
    "damaged.csv.gz": damaged(ROWS * 50),
    "no_gzip.csv.gz": ROWS.encode(),
    "libsvm.svm.gz": packed("".join(f"{i % 2} 1:{i}.5 3:2\n" for i in range(500)), 0.6),
    "long.csv": ("a,b,y\n" + "x" * 140_000 + ",1,2\n" + "1,2,3\n" * 20).encode(),
    "infinite.csv": ROWS.replace("0.5\n", "inf\n").encode(),
    "infinite_classes.csv": ("a,y\n" + "1,inf\n2,1\n3,2\n" * 10).encode(),
    "infinite.svm": b"inf 1:2 2:3\n1 1:3 2:5\n" * 10,
    "nul.csv": b"a,b,y\n\0\0\0,1,2\n" * 5,
    "latin.csv": "größe,y\n1,2\n3,4\n".encode("latin-1"),
    "ragged.csv": b"a,b,y\n1,2\n3,4,5,6\n",
    "header.csv": b"a,b,y\n",
    "parquet.parquet": b"PAR1" + b"\0" * 40,
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.filterwarnings("ignore")
def test_broken_tables_are_errors_in_words(name, tmp_path, capsys):
    path = tmp_path / name
    path.write_bytes(BAD[name])
    target = [] if ".svm" in name else ["--target", "y"]
    code = main(["fit", str(path), *target, "--k", "1", "--cv", "2"])
    error = capsys.readouterr().err
    assert "--debug" not in error, error  # which is for errors that nobody has prepared
    assert "Traceback" not in error
    if name not in ("long.csv", "nul.csv"):
        assert code != 0, error


def test_a_compressed_table_is_read(tmp_path):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(packed(ROWS))
    assert main(["fit", str(path), "--target", "y", "--k", "1", "--quiet"]) == 0
