"""Commands as a shell runs them, on a table of houses."""

import json
import os
from pathlib import Path

import numpy as np
import polars as pl

import pauca
from pauca.cli import main

# The package under test, also where a test is in another folder.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(pauca.__file__).parents[1])}


CITIES = ["Paris", "Paris", "Lyon", "Nice", "Paris", "Lyon"]


def houses(n=120, seed=0):
    """A table with numbers, text and truth values, and a price that follows from some of them."""
    rng = np.random.default_rng(seed)
    city = [CITIES[i] for i in rng.integers(0, len(CITIES), n)]
    area, age, noise = rng.uniform(20, 200, n), rng.integers(0, 90, n), rng.normal(size=n)
    garden = rng.random(n) < 0.4
    offset = {"Paris": 100.0, "Lyon": 20.0, "Nice": 60.0}
    price = 3 * area - age + np.array([offset[c] for c in city]) + 30 * garden + rng.normal(size=n)
    return pl.DataFrame(
        {"area": area, "age": age, "noise": noise, "city": city, "garden": garden, "price": price.round(2)}
    )


def run(capsys, *argv):
    """Exit code, stdout and stderr."""
    capsys.readouterr()
    code = main([str(word) for word in argv])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


def error_of(capsys, *argv, code=1):
    """The one line of an error."""
    found, out, err = run(capsys, *argv)
    lines = [line for line in err.splitlines() if "error" in line]
    assert found == code, err
    assert out == ""
    assert len(lines) == 1
    assert lines[0].startswith("pauca: error: " if code == 1 or "pauca: error" in err else "pauca ")
    return lines[0]


def fitted(capsys, *argv):
    """The JSON record of a fit."""
    code, out, err = run(capsys, "fit", *argv, "--json")
    assert code == 0, err
    assert out.count("\n") == 1
    return json.loads(out)


def predictions(out):
    return [float(line.split(",")[0]) for line in out.splitlines()[1:]]
