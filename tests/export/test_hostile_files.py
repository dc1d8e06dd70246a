"""Files that are huge or nested deeply are refused in little time and memory."""

import pytest

import pauca


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b"0" * 1_000_000,
        b'{"format": "pauca model", "version": ' + b"9" * 100_000 + b"}",
        b'{"format": "pauca model", "version": 3, "size": 1e999999999}',
        b"\0" * 1_000_000,
    ],
    ids=["lists", "objects", "zeros", "a long integer", "a large exponent", "zero bytes"],
)
def test_hostile_content_is_refused(tmp_path, content):
    path = tmp_path / "model.json"
    path.write_bytes(content)
    with pytest.raises(pauca.ModelFileError):
        pauca.load(path)


def test_gigabytes_of_zeros_are_not_read(tmp_path):
    path = tmp_path / "model.json"
    with open(path, "wb") as file:
        file.truncate(1 << 36)  # takes no room on the disk
    with pytest.raises(pauca.ModelFileError, match="more than"):
        pauca.load(path)


def test_a_file_that_could_not_be_loaded_is_not_written(tmp_path, monkeypatch):
    model = pauca.SparseRegressor(k=1).fit([[1, 0], [0, 1], [2, 2]], [1, 0, 2])
    monkeypatch.setattr("pauca.export.model_file.MOST_BYTES", 100)
    with pytest.raises(pauca.ModelFileError, match="could not be loaded"):
        model.save(tmp_path / "model.json")
    assert not list(tmp_path.iterdir())
