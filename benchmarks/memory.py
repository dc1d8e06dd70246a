"""What a fit takes beyond X itself, measured in a process that does nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy import sparse

from benchmarks.problems import Problem, Shape, autoregressive, bytes_of
from benchmarks.report import Figure

ROOT = Path(__file__).resolve().parent.parent
DENSE = (Shape(2000, 10000, 50), Shape(100_000, 500, 30))
MEGABYTE = 1e6


def memory(quick: bool) -> Iterator[Figure]:
    """Dense data: at most a quarter of X or 200 MB, whichever is larger."""
    for shape in DENSE:
        problem = autoregressive(shape, rho=0.5, snr=5.0, seed=0)
        size = bytes_of(problem.X) / MEGABYTE
        yield Figure(f"dense {shape}", "X itself", size, unit=" MB", digits=0)
        for method in ("forward", "exchange") if quick else ("forward", "foba", "exchange"):
            above = peak_above_X(problem, shape.k, method) / MEGABYTE
            yield Figure(f"dense {shape}, {method}", "peak above X", above, max(size / 4, 200), unit=" MB", digits=0)


def peak_above_X(problem: Problem, k: int | str, method: str) -> int:  # noqa: N802
    """Highest memory of a process that fits, less what it held with X in memory before the fit, in bytes.

    ``k`` may be a range such as "1-30", from which the size is chosen in two threads.
    """
    with TemporaryDirectory() as folder:
        save(problem, Path(folder))
        command = [sys.executable, "-m", "benchmarks.memory_probe", folder, str(k), method]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return int(done.stdout)


def save(problem: Problem, folder: Path) -> None:
    """Write the arrays of a problem; plain arrays are read back without a temporary copy."""
    X = problem.X
    arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr} if sparse.issparse(X) else {"X": X}
    for name, array in {**arrays, "y": problem.y}.items():
        np.save(folder / f"{name}.npy", array)


def load(folder: Path) -> Problem:
    """Read a problem back."""
    arrays = {file.stem: np.load(file) for file in folder.glob("*.npy")}
    y = arrays.pop("y")
    X = arrays["X"] if "X" in arrays else _csc(len(y), **arrays)
    return Problem(X, y)


def _csc(n: int, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> sparse.csc_array:
    return sparse.csc_array((data, indices, indptr), shape=(n, len(indptr) - 1))
