"""Tables larger than memory, and Dask: passes, processor time and peak memory beside the same fits in memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.report import Figure

ROOT = Path(__file__).resolve().parent.parent
MEGABYTE = 1e6

# Rows are written in pieces of about this many numbers.
WRITTEN_NUMBERS = 1 << 24


def scale(quick: bool) -> Iterator[Figure]:
    """Squared error on a file of 8 GB (quick: 400 MB), classes on 1,000,000 x 500, and a cluster of Dask."""
    yield from squared(100_000 if quick else 2_000_000)
    yield from wide(5_000 if quick else 50_000)
    yield from classes(50_000 if quick else 1_000_000)
    yield from cluster(40_000 if quick else 400_000)


def squared(n_rows: int) -> Iterator[Figure]:
    """Forward, exchange and the choice of k on a file, and in memory."""
    with TemporaryDirectory() as folder:
        write_problem(Path(folder), n_rows, 500, np.float64)
        label = f"squared {n_rows} x 500, "
        for method in ("forward", "exchange"):
            memory, chunks = (probe(folder, "30", method, source) for source in ("memory", "chunks"))
            yield Figure(f"{label}{method}, k=30", "passes", chunks["passes"], 2, digits=0)
            yield Figure(f"{label}{method}, k=30", "processor time / in memory", chunks["cpu"] / memory["cpu"], 5)
            yield Figure(f"{label}{method}, k=30", "peak", chunks["peak"] / MEGABYTE, 512, unit=" MB", digits=0)
            yield Figure(
                f"{label}{method}, k=30", "coefficients differ by", difference(chunks, memory), 1e-10, digits=14
            )
        memory = probe(folder, "auto", "exchange", "memory")
        for task, passes in (("best", 1), ("auto", 2)):
            chunks = probe(folder, task, "exchange", "chunks")
            yield Figure(f"{label}k chosen, {task}", "passes", chunks["passes"], passes, digits=0)
            yield Figure(f"{label}k chosen, {task}", "processor time / in memory", chunks["cpu"] / memory["cpu"], 1)
            yield Figure(f"{label}k chosen, {task}", "peak", chunks["peak"] / MEGABYTE, 512, unit=" MB", digits=0)
        yield Figure(f"{label}k chosen, auto", "coefficients differ by", difference(chunks, memory), 1e-10, digits=14)


def wide(n_rows: int) -> Iterator[Figure]:
    """Forward and exchange where not all products of columns fit."""
    with TemporaryDirectory() as folder:
        write_problem(Path(folder), n_rows, 20_000, np.float64)
        label = f"squared {n_rows} x 20000, "
        for method in ("forward", "exchange"):
            memory, chunks = (probe(folder, "30", method, source) for source in ("memory", "chunks"))
            yield Figure(f"{label}{method}, k=30", "passes", chunks["passes"], 4, digits=0)
            yield Figure(f"{label}{method}, k=30", "processor time / in memory", chunks["cpu"] / memory["cpu"], 5)
            yield Figure(f"{label}{method}, k=30", "peak", chunks["peak"] / MEGABYTE, 512, unit=" MB", digits=0)
            yield Figure(
                f"{label}{method}, k=30", "coefficients differ by", difference(chunks, memory), 1e-10, digits=14
            )


def classes(n_rows: int) -> Iterator[Figure]:
    """Two classes in single precision."""
    with TemporaryDirectory() as folder:
        write_problem(Path(folder), n_rows, 500, np.float32)
        for method, passes in (("forward", 6), ("exchange", 12)):
            label = f"log loss {n_rows} x 500, {method}, k=20"
            memory, chunks = (probe(folder, "classes-20", method, source) for source in ("memory", "chunks"))
            yield Figure(label, "passes", chunks["passes"], passes, digits=0)
            yield Figure(label, "peak", chunks["peak"] / MEGABYTE, 1000, unit=" MB", digits=0)
            yield Figure(label, "processor time / in memory", chunks["cpu"] / memory["cpu"])
            above = max(b / a - 1 for a, b in zip(memory["objectives"], chunks["objectives"], strict=True))
            yield Figure(label, "objective above memory's", above, 1e-3, digits=6)
            same = memory["supports"] == chunks["supports"]
            yield Figure(label, "sizes with another support", 0 if same else 1, 0 if method == "forward" else None)


def cluster(n_rows: int) -> Iterator[Figure]:
    """Dask on one machine: 1, 2 and 4 workers, and one of two killed."""
    with TemporaryDirectory() as folder:
        write_problem(Path(folder), n_rows, 500, np.float32)
        memory = probe(folder, "30", "exchange", "memory")
        found = {workers: probe(folder, "30", "exchange", "dask", workers) for workers in ("2", "1", "4", "2-killed")}
        label, two = f"Dask, squared {n_rows} x 500 float32, k=30", found["2"]
        differ = sum(one["coef"] != two["coef"] for one in found.values())
        yield Figure(label, "fits with other bits (1, 4 workers, one killed)", differ, 0, digits=0)
        yield Figure(label, "coefficients differ from memory by", difference(two, memory), 1e-10, digits=14)
        yield Figure(label, "bytes sent / X", two["sent"] / (4 * 500 * n_rows), 0.05, digits=4)
        yield Figure(label, "workers' processor time / in memory", two["workers"] / memory["cpu"], 5)
        beyond = (two["peak"] - two["imports"]) / MEGABYTE
        yield Figure(label, "peak of the driver, beyond its imports", beyond, 200, unit=" MB", digits=0)
        memory, two = (probe(folder, "classes-20", "forward", *how) for how in (("memory",), ("dask", "2")))
        label = f"Dask, log loss {n_rows} x 500 float32, forward, k=20"
        yield Figure(label, "wall time / in memory", two["wall"] / memory["wall"], 3)
        yield Figure(label, "other supports than in memory", memory["supports"] != two["supports"], 0, digits=0)


def probe(folder: str, *arguments: str) -> dict[str, Any]:
    """What a process that does one fit says of it."""
    environment = os.environ | {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")}
    command = [sys.executable, "-m", "benchmarks.scale_probe", folder, *arguments]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def difference(one: dict[str, Any], other: dict[str, Any]) -> float:
    """The largest difference of two sets of coefficients, relative to the largest of them."""
    a, b = np.array(one["coef"]), np.array(other["coef"])
    return float(np.abs(a - b).max() / np.abs(b).max())


def write_problem(folder: Path, n_rows: int, n_features: int, dtype: Any) -> None:
    """Correlated neighbours, 30 of which matter: X, a target with noise, and classes, written piece by piece."""
    rng = np.random.default_rng(0)
    coef = np.zeros(n_features)
    coef[rng.choice(n_features, 30, replace=False)] = rng.choice([-1, 1], 30) * rng.uniform(0.2, 1, 30)
    X = np.lib.format.open_memmap(folder / "X.npy", mode="w+", dtype=dtype, shape=(n_rows, n_features))
    scores = np.empty(n_rows)
    step = max(1, WRITTEN_NUMBERS // n_features)
    for start in range(0, n_rows, step):
        block = rng.standard_normal((min(step, n_rows - start), n_features), dtype=np.float32)
        block[:, 1:] += 0.7 * block[:, :-1]
        X[start : start + len(block)] = block
        scores[start : start + len(block)] = block @ coef
    del X
    np.save(folder / "y.npy", scores + scores.std() * rng.standard_normal(n_rows))
    np.save(folder / "classes.npy", (scores + rng.logistic(size=n_rows) > 0).astype(np.int8))


if __name__ == "__main__":
    for figure in scale(quick="--quick" in sys.argv):
        print(figure, flush=True)
