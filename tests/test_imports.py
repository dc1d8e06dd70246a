"""What importing the package brings along, asked of one process that has imported nothing else."""

import json
import subprocess
import sys

import pytest
from shell import ENVIRONMENT

import pauca

PROGRAM = """
import json, sys
optional = {"numba", "matplotlib", "polars", "skl2onnx", "onnx", "zarr", "dask", "distributed"}
before = set(sys.modules)
import pauca
brought = {name.split(".")[0] for name in set(sys.modules) - before} - {"pauca"} - set(sys.stdlib_module_names)
from pauca import load
k = load(sys.argv[1]).k_
from pauca import *
from pauca.sgd.epoch_sgd import EpochSGD
from pauca.losses import SquaredError
used = optional & set(sys.modules)
sys.modules["numba"] = None
try:
    EpochSGD(2, SquaredError(), 1.0, learning_rate=1.0, first_epoch=1).learn([[1.0, 2.0]], [1.0])
except ImportError as error:
    words = str(error)
print(json.dumps([sorted(brought), k, SparseRegressor.__name__, sorted(used), words]))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What the package brings, a loaded model's size, a class, optional libraries of all names, words without numba."""
    file = tmp_path_factory.mktemp("model") / "model.json"
    pauca.SparseRegressor(k=1).fit([[1, 0], [0, 1], [2, 2]], [1, 0, 2]).save(file)
    told = subprocess.check_output([sys.executable, "-c", PROGRAM, str(file)], text=True, env=ENVIRONMENT)
    return json.loads(told)


def test_the_package_brings_no_other_library(answers):
    assert answers[0] == []


def test_load_imports_the_estimators(answers):
    assert answers[1:3] == [1, "SparseRegressor"]


def test_optional_libraries_are_imported_when_needed(answers):
    assert answers[3] == []


def test_the_absence_of_numba_is_explained(answers):
    assert answers[4] == "Learning from streams needs numba: pip install numba"


def test_every_name_is_there():
    assert set(pauca.__all__) <= set(dir(pauca))
    for name in pauca.__all__:
        assert getattr(pauca, name) is not None
    assert pauca.export.onnx.__name__ == "pauca.export.onnx"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pauca.nothing
