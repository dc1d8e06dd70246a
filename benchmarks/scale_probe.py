"""The process that is measured: ``python -m benchmarks.scale_probe FOLDER TASK METHOD SOURCE WORKERS`` prints JSON.

TASK is a size, "auto" or "best" for regression, or "classes-SIZE". SOURCE is "memory", "chunks" or "dask".
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.memory_probe import memory_now, memory_peak
from pauca import SparseClassifier, SparseRegressor, scan
from pauca.design.chunks import as_chunks


def main(folder: str, task: str, method: str, source: str, workers: str = "0") -> None:
    y = np.load(Path(folder) / ("classes.npy" if task.startswith("classes") else "y.npy"))
    model = _model(task, method)
    if source == "dask":
        found = _on_cluster(Path(folder) / "X.npy", y, model, workers)
    else:
        path = str(Path(folder) / "X.npy")
        X: Any = np.load(path) if source == "memory" else scan(path)
        found = _timed(model, X, y) | {"passes": getattr(X, "passes", 0)}
    best = model.path_
    found |= {
        "peak": memory_peak(),
        "supports": [one.support.tolist() for one in best],
        "objectives": [one.objective for one in best],
        "coef": model.coef_.ravel().tolist(),
        "k": model.k_,
    }
    print(json.dumps(found))


def _model(task: str, method: str) -> Any:
    if task.startswith("classes-"):
        return SparseClassifier(k=int(task.removeprefix("classes-")), method=method)
    if task == "best":
        return SparseRegressor(method=method, selection_rule="best")
    return SparseRegressor(k="auto" if task == "auto" else int(task), method=method)


def _timed(model: Any, X: Any, y: np.ndarray) -> dict[str, float]:
    model.fit(np.random.default_rng(0).standard_normal((200, 45)), np.arange(200) % 2)  # loads what fits load
    cpu, wall = time.process_time(), time.perf_counter()
    model.fit(X, y)
    return {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}


def _on_cluster(path: Path, y: np.ndarray, model: Any, workers: str) -> dict[str, Any]:
    """A fit on so many workers of one thread each; "2-killed" kills one of them on the way."""
    # Imported here, so that they do not count in the memory of other fits.
    import dask.array as da  # noqa: PLC0415
    from distributed import Client, LocalCluster, wait  # noqa: PLC0415

    imports, count, killed = memory_now(), int(workers.partition("-")[0]), workers.endswith("killed")
    options: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with LocalCluster(n_workers=count, **options) as cluster, Client(cluster) as client:
        shape = np.load(path, mmap_mode="r").shape
        step = -(-shape[0] // 25)
        chunks = (tuple(min(step, shape[0] - start) for start in range(0, shape[0], step)), (shape[1],))
        table = da.map_blocks(_rows, str(path), step, chunks=chunks, dtype=np.load(path, mmap_mode="r").dtype).persist()
        wait(table)
        X = as_chunks(table)
        before = client.run(_use)
        if killed:
            victim = next(iter(client.run(os.getpid).values()))
            threading.Timer(0.5, os.kill, (victim, signal.SIGKILL)).start()
        found: dict[str, Any] = _timed(model, X, y)
        after = client.run(_use)
        found |= {"passes": X.passes, "imports": imports}
        shared = [worker for worker in after if worker in before]
        found["workers"] = sum(after[worker][0] - before[worker][0] for worker in shared)
        found["sent"] = sum(after[worker][1] - before[worker][1] for worker in shared)
    return found


def _rows(path: str, step: int, block_info: Any = None) -> np.ndarray:
    start = block_info[None]["array-location"][0]
    return np.array(np.load(path, mmap_mode="r")[start[0] : start[1]])


def _use(dask_worker: Any) -> tuple[float, float]:
    """Processor time of a worker, and what it has sent to others."""
    return time.process_time(), float(dask_worker.transfer_outgoing_bytes_total)


if __name__ == "__main__":
    main(*sys.argv[1:])
