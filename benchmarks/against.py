"""``python -m benchmarks.against CHECKOUT SECTION...``: this tree and an older one, taking turns on the same machine.

Each tree runs its own benchmarks on its own source, in processes of its own, so that names may differ between the two;
figures are matched by what they are called. The best of several runs of each counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from benchmarks.report import Figure
from benchmarks.results import Row, ratios

ROOT = Path(__file__).resolve().parent.parent

# Runs in either tree, and takes of the older one no more than that it has sections that yield figures.
PROGRAM = """
import json, sys, time, warnings
from pathlib import Path
source, name, quick, threads, data, processor_time = json.loads(sys.argv[1])
if processor_time:
    time.perf_counter = time.process_time  # before any benchmark takes it from there
from threadpoolctl import threadpool_limits
import pauca
from benchmarks.__main__ import ON_REAL_DATA, SECTIONS
if not Path(pauca.__file__).resolve().is_relative_to(source):
    sys.exit(f"{pauca.__file__} is not in {source}")
warnings.simplefilter("ignore")
with threadpool_limits(threads, user_api="blas"):
    figures = SECTIONS[name](quick) if name in SECTIONS else ON_REAL_DATA[name](quick, Path(data))
    json.dump([figure._asdict() for figure in figures], sys.stdout)
"""


def main() -> None:
    options = _options()
    trees = {"old": options.checkout.resolve(), "new": ROOT}
    runs: dict[str, list[list[Row]]] = {"old": [], "new": []}
    for number in range(options.rounds):
        # Whoever comes second finds the machine warm: the two take turns at that as well.
        for which in ("old", "new") if number % 2 == 0 else ("new", "old"):
            rows = [row for section in options.sections for row in _run(trees[which], section, options)]
            runs[which].append(rows if which == "new" else [_renamed(row, options.rename) for row in rows])
            print(f"round {number + 1} of {options.rounds}: {which} done", file=sys.stderr, flush=True)
    print("\n".join(ratios(*(map(_best, zip(*runs[which], strict=True)) for which in ("old", "new")))))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.against", description="Figures of this tree over those of an older one."
    )
    parser.add_argument("checkout", type=Path, help="root of the older tree, with its own benchmarks/ and src/")
    parser.add_argument("sections", nargs="+", metavar="section", help="see python -m benchmarks --help")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="runs of each tree; the best of them counts")
    parser.add_argument("--quick", action="store_true", help="as in python -m benchmarks")
    parser.add_argument("--threads", type=int, metavar="N", help="as in python -m benchmarks")
    parser.add_argument(
        "--processor-time",
        action="store_true",
        help="measure that instead of time, with --threads 1, on a machine that is busy with something else",
    )
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="as in python -m benchmarks")
    parser.add_argument(
        "--rename",
        action="append",
        default=[],
        metavar="OLD=NEW",
        help="what is called OLD in the old tree's tables is called NEW in ours; may be given several times",
    )
    return parser.parse_args()


def _run(tree: Path, section: str, options: argparse.Namespace) -> list[Row]:
    """Figures of one section in a process that knows this tree alone."""
    source = tree / "src"
    data = None if options.data is None else str(options.data.resolve())
    arguments = json.dumps([str(source), section, options.quick, options.threads, data, options.processor_time])
    environment = os.environ | {"PYTHONPATH": str(source)}
    command = [sys.executable, "-c", PROGRAM, arguments]
    done = subprocess.run(command, cwd=tree, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"Section {section} of {tree} came to no end.")
    return [Row.of(section, Figure(**figure)) for figure in json.loads(done.stdout.splitlines()[-1])]


def _renamed(row: Row, renames: list[str]) -> Row:
    for rename in renames:
        old, _, new = rename.partition("=")
        row = row._replace(problem=row.problem.replace(old, new), figure=row.figure.replace(old, new))
    return row


def _best(rows: tuple[Row, ...]) -> Row:
    """Of the same figure in several runs, the best; the middle one where nobody knows which is better."""
    choose = {"low": min, "high": max}.get(rows[0].better, median)
    return rows[0]._replace(measured=choose([row.measured for row in rows]))


if __name__ == "__main__":
    main()
