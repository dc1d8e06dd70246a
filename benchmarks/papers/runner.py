"""Compute the papers' tables and figures, several at a time, and keep each when it is finished."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from time import process_time

from benchmarks.papers import ball, chains, foba, smooth_foba, stages, tradeoff
from benchmarks.papers.page import Item, draw, page, read_result, write_result
from pauca import PaucaWarning

PAPERS = (tradeoff, stages, foba, ball, smooth_foba, chains)
ITEMS: dict[str, Item] = {name: item for paper in PAPERS for name, item in paper.ITEMS.items()}

# Items run in processes of one thread each: their times are then comparable, and no core waits for another.
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def run(
    names: list[str], out: Path, data: Path, *, quick: bool = False, again: bool = False, n_jobs: int = 1
) -> tuple[Path, list[str]]:
    """Compute the items that are not there yet, draw them, and write the page of all that are there.

    Returns the page, and the items that failed; the others are finished all the same.
    """
    out.mkdir(parents=True, exist_ok=True)
    missing = [name for name in names if again or read_result(out / f"{name}.json", quick=quick) is None]
    for name in names:
        if name not in missing:
            print(f"{name}: there already", flush=True)
    failed = []
    if missing:
        print(f"{len(missing)} items, {min(n_jobs, len(missing))} at a time ...", flush=True)
    for number, (name, error, seconds) in enumerate(_computed(missing, out, data, quick, n_jobs), 1):
        ended = f"{seconds:.0f} s" if error is None else f"failed: {error}"
        print(f"[{number}/{len(missing)}] {name}: {ITEMS[name].title}, {ended}", flush=True)
        if error is not None:
            failed.append(name)
    found = {name: kept for name in ITEMS if (kept := read_result(out / f"{name}.json", quick=quick)) is not None}
    for name, (result, _) in found.items():
        if result.panels and not (out / f"{name}.png").exists():
            draw(result.panels, out / f"{name}.png")
    written = out / "results.md"
    written.write_text(page(ITEMS, found), encoding="utf-8")
    return written, failed


def _computed(
    names: list[str], out: Path, data: Path, quick: bool, n_jobs: int
) -> Iterator[tuple[str, str | None, float]]:
    """Each item as it ends: its name, its error if it failed, and the processor time it took."""
    if n_jobs == 1:
        for name in names:
            yield name, *_attempt(name, out, data, quick)
        return
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    with ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        running = {pool.submit(_attempt, name, out, data, quick): name for name in names}
        for done in as_completed(running):
            yield running[done], *done.result()


def _attempt(name: str, out: Path, data: Path, quick: bool) -> tuple[str | None, float]:
    """Compute one item and keep its result."""
    start = process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PaucaWarning)
            result = ITEMS[name].run(quick, data)
    except Exception as error:  # whatever it is, the other items go on, and it is reported
        return f"{type(error).__name__}: {error}", process_time() - start
    (out / f"{name}.png").unlink(missing_ok=True)
    write_result(out / f"{name}.json", result, quick=quick, seconds=process_time() - start)
    return None, process_time() - start
