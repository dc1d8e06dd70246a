"""Imports go one way through the layers, and each room uses only the libraries it is there for."""

import ast
import sys
from pathlib import Path

import pytest

import pauca

ROOT = Path(pauca.__file__).parent

# From the ground up: a room may import itself and the rooms of the rows above it, nothing else.
LAYERS = (
    ("tolerances", "wording", "checks", "derivative_check", "warnings", "version", "model", "threads", "clock"),
    ("compiled",),
    ("design", "losses", "projections", "solvers"),
    ("constraints", "tables", "theory", "statistics"),
    ("objectives",),
    ("subsets",),
    ("relaxations",),
    ("runs",),
    ("methods", "results"),
    ("model_selection", "export"),
    ("report", "scoresheets"),
    ("estimators",),
    ("l1", "graphical", "sparsification", "custom", "survival", "ordinal"),
    ("crf", "sgd"),
    ("loading",),
    ("cli",),
    ("__init__", "__main__"),
)
NAMES_ARE_GIVEN = {ROOT / "compiled.py", ROOT / "losses/compiled_curves.py"}
ROOMS = [room for layer in LAYERS for room in layer]

LIBRARIES = {"numpy", "scipy"}
FACES = {"estimators", "model_selection", "l1", "graphical", "sparsification", "survival", "ordinal", "crf", "sgd"}
"""Rooms that speak scikit-learn."""
OPTIONAL = {
    "design": {"polars", "zarr", "dask", "distributed", "pandas"},
    "results": {"matplotlib", "pandas"},
    "runs": {"rich", "tqdm"},
    "export": {"onnx", "skl2onnx"},
    "threads": {"threadpoolctl"},
    "losses": {"numba", "llvmlite"},
    "objectives": {"numba"},
    "subsets": {"numba"},
    "sgd": {"numba"},
    "relaxations": {"numba"},
    "crf": {"numba"},
    "ordinal": {"numba"},
    "cli": {"polars", "sklearn"},
    "survival": {"matplotlib"},
}


def imported(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            yield node.module
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            # Names of modules of kernels are imported by ``compiled``.
            if name in {"import_module", "__import__", "Kernels", "LossKernels"} and file not in NAMES_ARE_GIVEN:
                yield from _by_string(file, node.args[0])


def _by_string(file, argument):
    """The module of an import by string: the whole name, or what an f-string begins with."""
    if isinstance(argument, ast.JoinedStr):
        argument = argument.values[0]
    assert isinstance(argument, ast.Constant), f"{file}: an import whose module cannot be read"
    yield argument.value.rstrip(".")


def room_of(file):
    return file.relative_to(ROOT).as_posix().removesuffix(".py").split("/")[0]


@pytest.mark.parametrize("file", sorted(ROOT.rglob("*.py")), ids=lambda file: file.relative_to(ROOT).as_posix())
def test_imports_go_one_way(file):
    room = room_of(file)
    layer = next(place for place, rooms in enumerate(LAYERS) if room in rooms)
    below = {other for rooms in LAYERS[:layer] for other in rooms}
    for module in imported(file):
        top, *rest = module.split(".")
        if top == "pauca":
            assert rest or room in {"__init__", "loading"}, f"{file} imports the whole package"
            assert not rest or rest[0] in below | {room}, f"{file} imports {module}"
        elif top not in sys.stdlib_module_names:
            allowed = LIBRARIES | OPTIONAL.get(room, set()) | ({"sklearn", "joblib"} if room in FACES else set())
            assert top in allowed, f"{file} imports {module}"
            assert not any(part.startswith("_") for part in rest), f"{file} imports private {module}"


def test_every_room_has_a_layer():
    assert sorted(ROOMS) == sorted({room_of(file) for file in ROOT.rglob("*.py")})


def test_files_are_one_idea():
    longest = max(ROOT.rglob("*.py"), key=lambda file: len(file.read_text(encoding="utf-8").splitlines()))
    assert len(longest.read_text(encoding="utf-8").splitlines()) <= 500, longest
