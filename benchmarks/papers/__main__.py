"""``python -m benchmarks.papers``: the papers' tables and figures; what is finished is not computed again."""

from __future__ import annotations

import argparse
import shutil
import warnings
from pathlib import Path
from time import perf_counter

from benchmarks.papers import ball, chains, foba, smooth_foba, stages, tradeoff
from benchmarks.papers.page import Item, draw, page, read_result, write_result
from pauca import PaucaWarning

PAPERS = (tradeoff, stages, foba, ball, smooth_foba, chains)
ITEMS: dict[str, Item] = {name: item for paper in PAPERS for name, item in paper.ITEMS.items()}
KEPT = Path(__file__).parents[2] / "docs" / "papers"


def run(names: list[str], out: Path, data: Path, *, quick: bool = False, again: bool = False) -> Path:
    """Compute the items that are not there yet, draw them, and write the page of all that are there; returns it."""
    out.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(names, 1):
        file = out / f"{name}.json"
        if not again and read_result(file, quick=quick) is not None:
            print(f"[{number}/{len(names)}] {name}: there already", flush=True)
            continue
        print(f"[{number}/{len(names)}] {name}: {ITEMS[name].title} ...", flush=True)
        start = perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PaucaWarning)
            result = ITEMS[name].run(quick, data)
        (out / f"{name}.png").unlink(missing_ok=True)
        write_result(file, result, quick=quick, seconds=perf_counter() - start)
        print(f"    {perf_counter() - start:.0f} s", flush=True)
    found = {name: kept for name in ITEMS if (kept := read_result(out / f"{name}.json", quick=quick)) is not None}
    for name, (result, _) in found.items():
        if result.panels and not (out / f"{name}.png").exists():
            draw(result.panels, out / f"{name}.png")
    written = out / "results.md"
    written.write_text(page(ITEMS, found), encoding="utf-8")
    return written


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.add_argument("items", nargs="*", metavar="item", help=f"all by default, or {', '.join(ITEMS)}")
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="folder with libsvm/, small/, ..")
    parser.add_argument("--out", type=Path, default=Path("papers_output"), metavar="FOLDER", help="where results go")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs")
    parser.add_argument("--again", action="store_true", help="compute finished items again")
    parser.add_argument("--keep", action="store_true", help="copy the page and the pictures to docs/papers")
    options = parser.parse_args()
    if unknown := set(options.items) - set(ITEMS):
        parser.error(f"no such item: {', '.join(sorted(unknown))}; there are {', '.join(ITEMS)}")
    written = run(options.items or list(ITEMS), options.out, options.data, quick=options.quick, again=options.again)
    if options.keep:
        KEPT.mkdir(exist_ok=True)
        for file in (written, *options.out.glob("*.png")):
            shutil.copy(file, KEPT / file.name)
    print(written)


if __name__ == "__main__":
    main()
