"""What a fitted model has to tell, as plain values: all that the page shows is gathered here."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any

from pauca.report.formatting import count, listed
from pauca.results.path import Path

LONGEST_SETTING = 300


@dataclass(frozen=True)
class Stability:
    """How often features were chosen when rows were drawn anew."""

    frequency: dict[str, float]
    n_resamples: int
    size: int


@dataclass(frozen=True)
class Alternative:
    """A feature that could stand in for a chosen one, and what that would cost."""

    feature: str
    replacement: str
    explained_lost: float


@dataclass(frozen=True, eq=False)
class ModelData:
    """A fitted model, free of the estimator."""

    kind: str
    path: Path
    size: int
    classes: list[str] | None
    settings: dict[str, str]
    stability: Stability | None
    alternatives: list[Alternative] | None

    @property
    def noun(self) -> str:
        """What a size counts."""
        return "feature" if self.path.group_labels is None else "group"

    @property
    def candidates(self) -> int:
        """How many features, or groups, there were to choose from."""
        return self.path.n_features if self.path.group_labels is None else len(self.path.group_labels)

    @property
    def task(self) -> str:
        """What was predicted, as far as it is known, and with how many features."""
        what = f"{self.size} of {count(self.candidates, self.noun)}" if self.size else f"no {self.noun}s"
        if self.classes is not None and len(self.classes) == 2:
            return f"Telling {self.classes[1]} from {self.classes[0]} with {what}"
        if self.classes is not None:
            return f"Telling {listed(self.classes, 4)} apart with {what}"
        if self.path.output_names is not None:
            return f"Predicting {listed(self.path.output_names, 4)} with {what}"
        return f"A model with {what}"


def model_data_of(model: Any) -> ModelData:
    """The facts of a fitted estimator."""
    classes = getattr(model, "classes_", None)
    return ModelData(
        type(model).__name__,
        model.path_,
        int(model.k_),
        None if classes is None else [str(label) for label in classes],
        _settings(model),
        _stability(model),
        _alternatives(model),
    )


def _settings(model: Any) -> dict[str, str]:
    """Loss and method, and the settings that are not the usual ones."""
    usual = {name: p.default for name, p in inspect.signature(type(model).__init__).parameters.items()}
    given = model.get_params(deep=False)
    return {
        name: _written(value)
        for name, value in given.items()
        if name in ("loss", "method") or not _same(value, usual.get(name))
    }


def _same(value: Any, usual: Any) -> bool:
    plain = (str, int, float, bool)
    return value is usual or (isinstance(value, plain) and isinstance(usual, plain) and value == usual)


def _written(value: Any) -> str:
    text = value if isinstance(value, str) else getattr(value, "__name__", None) or repr(value)
    line = re.sub(r" at 0x[0-9a-fA-F]+", "", " ".join(str(text).split()))
    return line if len(line) <= LONGEST_SETTING else f"{line[:LONGEST_SETTING]} \N{HORIZONTAL ELLIPSIS}"


def _stability(model: Any) -> Stability | None:
    found = getattr(model, "stability_", None)
    if found is None:
        return None
    frequency = {str(name): float(share) for name, share in dict(found.frequency).items()}
    return Stability(frequency, int(found.n_resamples), int(found.size))


def _alternatives(model: Any) -> list[Alternative] | None:
    if not hasattr(model, "alternatives"):
        return None
    # A twin is asked, since an estimator keeps what it has found, and a report leaves the model as it is. Not a copy:
    # copies leave the data of the fit behind.
    twin = object.__new__(type(model))
    vars(twin).update(vars(model))
    try:
        found = twin.alternatives()
    except (AttributeError, RuntimeError, ValueError):  # what was kept of the fit does not suffice, as after loading
        return None
    return [Alternative(str(one["feature"]), str(one["replacement"]), float(one["explained_lost"])) for one in found]
