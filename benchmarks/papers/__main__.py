"""``python -m benchmarks.papers``: the papers' tables and figures; what is finished is not computed again."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
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
KEPT = Path(__file__).parents[2] / "docs" / "papers"

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


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.add_argument("items", nargs="*", metavar="item", help=f"all by default, or {', '.join(ITEMS)}")
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="folder with libsvm/, small/, ..")
    parser.add_argument("--out", type=Path, default=Path("papers_output"), metavar="FOLDER", help="where results go")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="items at a time; all cores by default")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs")
    parser.add_argument("--again", action="store_true", help="compute finished items again")
    parser.add_argument("--keep", action="store_true", help="copy the page and the pictures to docs/papers")
    options = parser.parse_args()
    if unknown := set(options.items) - set(ITEMS):
        parser.error(f"no such item: {', '.join(sorted(unknown))}; there are {', '.join(ITEMS)}")
    if not options.data.is_dir():
        parser.error(f"--data takes a folder, and {options.data} is none")
    written, failed = run(
        options.items or list(ITEMS), options.out, options.data,
        quick=options.quick, again=options.again, n_jobs=max(1, options.jobs),
    )  # fmt: skip
    if options.keep:
        KEPT.mkdir(exist_ok=True)
        for file in (written, *options.out.glob("*.png")):
            shutil.copy(file, KEPT / file.name)
    print(written)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
