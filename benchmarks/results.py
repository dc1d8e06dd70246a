"""Runs that are kept: one small JSON file each, and two of them side by side."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

from benchmarks.report import Figure, lines

FOLDER = Path(__file__).resolve().parent / "results"
COLUMNS = ("section", "problem", "figure", "old", "new", "new / old", "")

# What repeats itself this well counts as the same.
SAME = 1.1


class Row(NamedTuple):
    """One figure of one section, as it is kept."""

    section: str
    problem: str
    figure: str
    measured: float
    unit: str = ""
    better: str = "?"

    @classmethod
    def of(cls, section: str, figure: Figure) -> Row:
        """Keep a figure; its target, or else its unit, says in which direction it is better."""
        better = "low" if figure.limit is not None or figure.unit.strip() in {"s", "ms", "MB"} else "?"
        return cls(
            section, figure.problem, figure.name, figure.measured, figure.unit, "high" if figure.at_least else better
        )

    @property
    def label(self) -> tuple[str, str, str]:
        """What the same figure is called in another run."""
        return self.section, self.problem, self.figure


def keep(measured: Mapping[str, Iterable[Figure]], quick: bool, versions: Mapping[str, str]) -> Path:
    """Write a run to a file of its own and return its path."""
    now = datetime.now(UTC)
    run = {
        "date": now.isoformat(timespec="seconds"),
        "commit": _commit(),
        "versions": {"python": platform.python_version(), **versions},
        "processor": _processor(),
        "threads": max((pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"), default=None),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,  # well above the threads: a busy machine
        "quick": quick,
        "rows": [Row.of(section, figure)._asdict() for section, figures in measured.items() for figure in figures],
    }
    sections = "-".join(measured) if len(measured) <= 3 else f"{len(measured)}-sections"
    FOLDER.mkdir(exist_ok=True)
    file = FOLDER / f"{now:%Y-%m-%d-%H%M%S}-{sections}.json"
    # One row to a line, so that what changed is seen at a glance.
    text = json.dumps(run | {"rows": []}, indent=1)
    rows = ",\n  ".join(map(json.dumps, run["rows"]))
    file.write_text(text.replace('"rows": []', f'"rows": [\n  {rows}\n ]') + "\n", encoding="utf-8")
    return file


def compare(old: Path, new: Path) -> Iterator[str]:
    """Lines of a table of two kept runs, after a word on what else is not the same in them."""
    before, after = (json.loads(file.read_text(encoding="utf-8")) for file in (old, new))
    for what in ("processor", "threads", "quick", "versions"):
        if before[what] != after[what]:
            yield f"Not the same {what}: {_differing(before[what], after[what])}"
    yield from ratios(*([Row(**row) for row in run["rows"]] for run in (before, after)))


def ratios(old: Iterable[Row], new: Iterable[Row]) -> Iterator[str]:
    """Lines of a table of new figures over old ones by label, then the labels that only one of the two has."""
    before, after = ({row.label: row for row in rows} for rows in (old, new))
    yield ""
    yield from lines(COLUMNS, [_cells(row, after[label]) for label, row in before.items() if label in after])
    for which, rows, others in (("old", before, after), ("new", after, before)):
        for label in rows.keys() - others.keys():
            yield f"Only in the {which} run: {' | '.join(label)}"


def _cells(old: Row, new: Row) -> tuple[str, ...]:
    ratio = new.measured / old.measured if old.measured else float("nan")
    worse = {"low": ratio > SAME, "high": ratio < 1 / SAME}.get(new.better, False)
    better = {"low": ratio < 1 / SAME, "high": ratio > SAME}.get(new.better, False)
    figures = (f"{row.measured:.4g}{row.unit}" for row in (old, new))
    return *new.label, *figures, f"{ratio:.3f}", "WORSE" if worse else "better" if better else ""


def _differing(old: Any, new: Any) -> str:
    if not isinstance(old, dict):
        return f"{old}, {new}"
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return ", ".join(f"{name} {old.get(name)} and {new.get(name)}" for name in names)


def _commit() -> str | None:
    """Commit of this checkout, with a plus where files were changed since."""
    try:
        hashed, changed = (
            subprocess.run(["git", *words], cwd=FOLDER.parent, check=True, capture_output=True, text=True).stdout
            for words in (["rev-parse", "--short=12", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return hashed.strip() + ("+" if changed else "")


def _processor() -> str:
    """Name of the processor; Python knows it on few systems, Linux tells it in a file."""
    about = Path("/proc/cpuinfo")
    if about.exists():
        for line in about.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
