"""What was noteworthy about the fit of a tagger."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import Any

from pauca.estimators.checks import listed
from pauca.estimators.remarks import ended, fewer
from pauca.estimators.tagger.sensors import Idle


def tag_remarks(tagger: Any, idle: Idle) -> Iterator[str]:
    """What the user should know of a fit and cannot see from its numbers; as a rule nothing."""
    path, model = tagger.path_, tagger.path_[tagger.k_]
    by_weight, n_labels = tagger.unit == "weight", len(tagger.classes_)
    names = (tagger.names_ if len(tagger.names_) else None) if path.group_labels is None else path.group_labels
    chosen = set((model.units // n_labels if by_weight else model.units).tolist())
    copies = sorted(copy for copy, sensor in idle.copies.items() if sensor in chosen)
    if idle.constant:
        yield f"Constant sensors were left out: {listed(names, idle.constant)}."
    if copies:
        yield f"Sensors that are copies of chosen ones were left out: {listed(names, copies)}."
    n_units = path.n_features if path.group_labels is None else len(path.group_labels)
    if isinstance(tagger.k, numbers.Integral) and tagger.k_ < tagger.k:
        yield from fewer(tagger, f"{tagger.unit}s", n_units)
    if path.choice is not None and path.choice.chosen == 0:
        yield "No sensor helps on sequences held out: transitions alone do as well as can be told."
    n_idle = (len(idle.constant) + len(idle.copies)) * (n_labels if by_weight else 1)
    yield from ended(path, n_units - n_idle)
    if not model.converged:
        yield "The refit did not come to its end: the weights may be off. Set a larger ridge."
