"""A table and a model of the command line."""

import pytest
from shell import houses

from pauca.cli import main


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    houses().write_csv("houses.csv")
    return tmp_path


@pytest.fixture
def model(table, capsys):
    assert main(["fit", "houses.csv", "--target", "price", "--k", "4", "--out", "model.json", "--quiet"]) == 0
    capsys.readouterr()
    return "model.json"
