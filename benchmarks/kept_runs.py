"""Runs that are kept as they finish, so that a long section goes on where it was cut off."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

FOLDER = "PREDICTION_RUNS"
"""Name of the environment variable with the folder to keep runs in; without it nothing is kept.

There is a file for each method. Delete that of pauca when its rules have changed.
"""


def kept_run(method: str, key: str, run: Callable[[], tuple[float, ...]]) -> tuple[float, ...]:
    """What a run has found before, or finds now."""
    if FOLDER not in os.environ:
        return run()
    known = known_runs(method)
    if key not in known:
        known[key] = run()
        file = _file(method)
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps([key, *known[key]]) + "\n")
    return known[key]


@cache
def known_runs(method: str) -> dict[str, tuple[float, ...]]:
    """The runs of a method that are kept, by what was run."""
    file = _file(method)
    if not file.exists():
        return {}
    return {key: tuple(values) for key, *values in map(json.loads, file.read_text(encoding="utf-8").splitlines())}


def _file(method: str) -> Path:
    return Path(os.environ[FOLDER]) / f"{method.replace(' ', '_')}.jsonl"
