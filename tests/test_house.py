"""Imports go one way through the rooms of the house, and only the estimators do anything with scikit-learn."""

import ast
from pathlib import Path

import pytest

import pauca

ROOT = Path(pauca.__file__).parent
LIBRARIES = {"numpy", "scipy"}
MAY_IMPORT = {
    "model": set(),
    "version": set(),
    "warnings": set(),
    "design": {"design"},
    "losses": {"losses"},
    "units": {"units"},
    "refit": {"refit"},
    "projections": {"projections"},
    "theory": {"theory", "losses"},
    "objectives": {"objectives", "design", "losses", "units", "refit", "model"},
    "ball": {"ball", "design", "losses", "objectives", "model", "path"},
    "subset": {"subset", "objectives", "design", "losses", "refit", "units", "model"},
    "stream": {"stream", "losses", "path", "sampling"},
    "graphs": {"graphs", "model", "path", "subset", "units"},
    "sequences": {"sequences"},
    "path": {"path", "subset", "model"},
    "choice": {"choice", "path", "losses"},
    "methods": {"methods", "path", "subset"},
    "sampling": {"sampling", "design", "losses", "objectives", "refit"},
    "own": {"own", "export", "methods", "path", "subset", "units", "model", "warnings"},
    "report": {"report", "export", "path", "model", "version"},
    "export": {"export", "losses", "methods", "path", "model", "version"},
    "estimators": {
        *("estimators", "design", "losses", "units", "objectives", "subset", "path", "methods", "export", "warnings"),
        *("ball", "choice", "graphs", "model", "own", "report", "sampling", "sequences", "stream"),
    },
    "cli": {"cli", "estimators", "export", "path", "version"},
    "__main__": {"cli"},
}
OPTIONAL = {
    "path/plots/figure.py": {"matplotlib"},
    "path/plots/panels.py": {"matplotlib"},
    "path/stability.py": {"matplotlib"},
    "path/plots/stability.py": {"matplotlib"},
    "path/path.py": {"pandas", "matplotlib"},
    "report/figures.py": {"plotly"},
    "export/onnx.py": {"onnx", "skl2onnx"},
    "stream/compiler.py": {"numba"},
    "sequences/kernels.py": {"numba"},
    "cli/files.py": {"polars", "sklearn"},
    "cli/demo.py": {"sklearn"},
    **{f"cli/{name}.py": {"polars"} for name in ("predict", "problem", "tables", "target")},
}


def imported(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            yield node.module


@pytest.mark.parametrize("file", [f for f in sorted(ROOT.rglob("*.py")) if f.parent != ROOT or f.stem in MAY_IMPORT])
def test_rooms(file):
    name = file.relative_to(ROOT).as_posix()
    room = name.removesuffix(".py").split("/")[0]
    allowed = LIBRARIES | OPTIONAL.get(name, set())
    allowed |= {"sklearn", "joblib", "threadpoolctl"} if room == "estimators" else set()
    for module in imported(file):
        top, *rest = module.split(".")
        if top == "pauca":
            assert rest, f"{name} imports the whole package"
            assert rest[0] in MAY_IMPORT[room], f"{name} imports {module}"
        elif top not in __import__("sys").stdlib_module_names:
            assert top in allowed, f"{name} imports {module}"
            assert not any(part.startswith("_") for part in rest), f"{name} imports private {module}"


def test_files_are_small():
    longest = max(ROOT.rglob("*.py"), key=lambda file: len(file.read_text().splitlines()))
    assert len(longest.read_text().splitlines()) <= 350, longest
