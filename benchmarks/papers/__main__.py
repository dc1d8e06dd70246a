"""``python -m benchmarks.papers``: the papers' tables and figures; what is finished is not computed again."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from benchmarks.papers.runner import ITEMS, run

KEPT = Path(__file__).parents[2] / "docs" / "papers"


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
