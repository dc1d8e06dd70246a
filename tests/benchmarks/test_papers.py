"""Every item of the papers runs at tiny sizes, on made-up files of the right shape, and is not computed twice."""

import gzip
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

pytest.importorskip("matplotlib")
pytest.importorskip("numba")


@pytest.fixture(scope="module")
def papers():
    sys.path.insert(0, str(Path(__file__).parents[2]))
    try:
        from benchmarks.papers import runner as module
    finally:
        sys.path.pop(0)
    return module


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder like that of the real data, with few rows; items that need more of it are left out when quick."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    for name in ("small", "libsvm"):
        (folder / name).mkdir()
    X = rng.standard_normal((90, 13)) * 10 ** rng.uniform(-1, 2, 13)
    table = np.column_stack([X, X @ (0.1 / X.std(axis=0)) + 20 + rng.standard_normal(90)])
    np.savetxt(folder / "small/boston_house_prices.csv", table, delimiter=",", header="90,13\nnames", comments="")
    radar = rng.uniform(-1, 1, (90, 34))
    lines = [",".join([*(f"{x:.4f}" for x in row), "g" if row[3] > 0 else "b"]) for row in radar]
    (folder / "small/ionosphere.csv").write_text("\n".join(lines))
    for part in ("", ".t"):
        X = (rng.random((200, 123)) < 0.3).astype(float)
        y = np.where(X[:, 0] + X[:, 1] + rng.standard_normal(200) > 0.6, 1, -1)
        dump_svmlight_file(X, y, str(folder / f"libsvm/a1a{part}.gz.txt"), zero_based=False)
        text = (folder / f"libsvm/a1a{part}.gz.txt").read_bytes()
        (folder / f"libsvm/a1a{part}.gz").write_bytes(gzip.compress(text))
    return folder


def test_all_items_run_and_resume(papers, data, tmp_path, capsys):
    names = list(papers.ITEMS)
    written, failed = papers.run(names, tmp_path, data, quick=True)
    page = written.read_text(encoding="utf-8")
    capsys.readouterr()
    assert not failed
    for name in names:
        assert f"## {papers.ITEMS[name].title}" in page
        assert (tmp_path / f"{name}.json").exists()
    for picture in tmp_path.glob("*.png"):
        assert f"({picture.name})" in page
    before = {file.name: file.stat().st_mtime_ns for file in tmp_path.glob("*.json")}
    again = papers.run(names, tmp_path, data, quick=True)[0].read_text(encoding="utf-8")
    assert capsys.readouterr().out.count("there already") == len(names)
    assert again == page
    assert before == {file.name: file.stat().st_mtime_ns for file in tmp_path.glob("*.json")}


def test_the_page_on_papers_names_every_item(papers):
    page = (Path(__file__).parents[2] / "docs" / "papers.md").read_text(encoding="utf-8")
    named = {name for command in re.findall(r"benchmarks\.papers ([^`]*)`", page) for name in command.split()}
    assert named == set(papers.ITEMS)
