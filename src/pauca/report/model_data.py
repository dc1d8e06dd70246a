"""All that the page shows of a fitted model, as plain values collected from the estimator once, and as table rows."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from pauca.export.formula import Formula, formula_of
from pauca.losses import resolve
from pauca.report.formatting import MANY_NUMBERS, count, enumerate_names, number, percent, short_number
from pauca.report.survival_curves import BaselineHazard, SurvivalCurves, baseline_hazard
from pauca.results.alternatives import Alternatives
from pauca.results.data_summary import DataSummary
from pauca.results.evaluation import Evaluation
from pauca.results.inference import Inference
from pauca.results.path import Path
from pauca.results.stability import Stability
from pauca.results.summary import NOT_COMPUTED, largest_of, notes_on_loss

LONGEST_SETTING = 300
# Tables have a column for each of so many outputs or classes; the page says so where there are more.
MOST_OUTPUTS = 30


class FittedEstimator(Protocol):
    """What the report reads of an estimator; it may also have ``classes_``, ``stability_`` and ``alternatives()``."""

    path_: Path
    k_: int
    get_params: Callable[..., dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Findings:
    """What was found with the data of the fit or with test rows; None for what was not."""

    evaluation: Evaluation | None = None
    inference: Inference | None = None
    test_survival: SurvivalCurves | None = None
    """Of groups of test rows."""


@dataclass(frozen=True, eq=False)
class ModelData:
    """A fitted model without the estimator."""

    estimator: str
    path: Path
    size: int
    classes: list[str] | None
    parameters: dict[str, str]
    stability: Stability | None
    alternatives: Alternatives | None
    survival: SurvivalCurves | None = None
    """Of groups of the rows of the fit."""
    predicts_scores: bool = False
    """Whether a linear score is the prediction itself."""
    formula: Formula | None = None
    """None where the prediction has none that can be written down."""
    findings: Findings = field(default_factory=Findings)
    data_summary: DataSummary | None = None
    """What is known of the data of the fit."""
    measurable: bool = False
    """Whether predictions can be measured where there are rows."""
    known_part: str | None = None
    """What was given of the scores in the fit: an offset, an exposure, or nothing."""
    dispersion: float | None = None
    """That of negative binomial counts."""
    explained_of: str = ""
    """What shares explained are shares of, such as the variance; nothing where that is not known."""
    event: str = "the event"
    """What happens at the times of a model of times to an event."""
    baseline: BaselineHazard | None = None
    """Of a model of times to an event."""

    @property
    def evaluation(self) -> Evaluation | None:
        """How good the predictions are."""
        return self.findings.evaluation

    @property
    def inference(self) -> Inference | None:
        """How sure the coefficients are."""
        return self.findings.inference

    @property
    def predicts_hazard(self) -> bool:
        """Whether it is a model of times until an event."""
        return self.formula is not None and self.formula.link == "log_hazard"

    @property
    def noun(self) -> str:
        """What a size counts."""
        return self.path.counted

    @property
    def chosen(self) -> str:
        """What was done to have this size."""
        return "chosen" if self.path.choice is not None and self.path.choice.is_of(self.size) else "given"

    @property
    def part(self) -> str:
        """What has a coefficient: a term of a raw table, a column of one where all are numbers, or a feature."""
        if self.path.encoding is None:
            return "feature"
        return "term" if self.path.has_parts(self.size) else "column"

    @property
    def n_drawn(self) -> int:
        """How many columns have a coefficient in some model of the path."""
        return len({int(column) for model in self.path for column in model.support})

    @property
    def candidates(self) -> int:
        """The number of features, or groups, to select from."""
        return self.path.n_features if self.path.group_labels is None else len(self.path.group_labels)

    @property
    def headline(self) -> str:
        """What is predicted, as far as it is known, and with how many features."""
        what = f"{self.size} of {count(self.candidates, self.noun)}" if self.size else f"no {self.noun}s"
        if self.classes is not None and len(self.classes) == 2:
            return f"Classifying {self.classes[1]} against {self.classes[0]} with {what}"
        if self.classes is not None:
            return f"Classifying {enumerate_names(self.classes, 4)} with {what}"
        if self.path.output_names is not None:
            return f"Predicting {enumerate_names(self.path.output_names, 4)} with {what}"
        if self.predicts_hazard:
            return f"Time until {self.event} with {what}"
        return f"A model with {what}"

    @property
    def about_predictions(self) -> list[str]:
        """How counts vary, and what predictions leave out, where the fit knew more of the rows."""
        return notes_on_loss(self.dispersion, self.known_part)

    def unit_names(self, size: int) -> list[str]:
        """Names of the selected features, or groups, in the model of one size."""
        path = self.path
        return path.names(size) if path.group_labels is None else [str(label) for label in path.groups(size)]


def model_data_of(model: FittedEstimator, findings: Findings | None = None) -> ModelData:
    """The data of a fitted estimator."""
    classes = getattr(model, "classes_", None)
    signature = inspect.signature(type(model).__init__).parameters
    return ModelData(
        type(model).__name__,
        model.path_,
        int(model.k_),
        None if classes is None else [str(label) for label in classes],
        _shown_parameters(model.get_params(deep=False), {name: p.default for name, p in signature.items()}),
        getattr(model, "stability_", None),
        _from_training_data(model, "alternatives"),
        survival=_from_training_data(model, "risk_groups"),
        predicts_scores=classes is None and _has_identity_link(getattr(model, "loss", None)),
        formula=_formula(model),
        findings=findings or Findings(),
        data_summary=getattr(model, "_data_summary", lambda: None)(),
        measurable=hasattr(model, "evaluate"),
        known_part=getattr(model, "known_part_", None),
        dispersion=getattr(model, "dispersion_", None),
        baseline=baseline_hazard(model),
        explained_of=getattr(model, "_explained_of", str)(),
    )


def with_class_names(data: ModelData, names: list[str]) -> ModelData:
    """The same model with other names of its classes, in their order."""
    path, found = data.path, data.findings
    if path.two_classes is not None:
        path = replace(path, two_classes=names)
    elif path.output_names is not None:
        path = replace(path, output_names=names)
    inference = found.inference
    if inference is not None and inference.outputs is not None and data.path.output_names is not None:
        renamed = dict(zip(data.path.output_names, names, strict=True))
        inference = replace(inference, outputs=[renamed[one] for one in inference.outputs])
    evaluation = None if found.evaluation is None else replace(found.evaluation, classes=names)
    return replace(
        data,
        path=path,
        classes=names,
        formula=None if data.formula is None else replace(data.formula, classes=list(names)),
        findings=replace(found, evaluation=evaluation, inference=inference),
    )


def _formula(model: Any) -> Formula | None:
    if not hasattr(model, "predict") or not hasattr(model, "loss"):
        return None
    try:
        return formula_of(model)
    except ValueError:  # a loss of the user's own with a link of its own, or classes that are neither text nor number
        return None


def _has_identity_link(loss: Any) -> bool:
    return loss is not None and resolve(loss, classes=False).link_of("prediction") in {"identity", "log_hazard"}


@dataclass(frozen=True)
class Layout:
    """The column heads of the tables, and how many columns at the left hold names."""

    heads: list[str]
    n_names: int


def layout(path: Path, sizes: Sequence[int]) -> Layout:
    """The columns of the tables of some sizes, which are the same for all of these."""
    grouped = path.has_parts(*sizes)
    outputs = ["Coefficient"] if path.output_names is None else path.output_names[:MOST_OUTPUTS]
    cost = [] if path.prices is None else ["Cost"]
    names = [path.counted.capitalize(), "Feature" if path.encoding is None else "Term"]
    heads = [*(names if grouped else names[:1]), *outputs, "Importance", *cost]
    return Layout(heads, 2 if grouped else 1)


def table_rows(path: Path, size: int, sizes: Sequence[int], most: int | None = None) -> list[list[str]]:
    """The cells of at most so many features, the most important first, and of the intercept, as ``layout`` has them.

    The first row of a group holds its importance and cost. Of large groups only the largest coefficients are there.
    """
    model = path[size]
    null = path[0].objective
    coef = np.atleast_2d(model.coef)[:MOST_OUTPUTS]
    intercept = np.atleast_1d(model.intercept)[:MOST_OUTPUTS]
    names = dict(zip(model.support.tolist(), path.names(size), strict=True))
    positions = {column: position for position, column in enumerate(model.support.tolist())}
    labels = path.group_labels if path.has_parts(*sizes) else None
    digits = 5 if len(coef) < MANY_NUMBERS else 3
    cells = []
    for index in np.argsort(-model.importance, kind="stable"):
        unit = int(model.units[index])
        importance = percent(float(model.importance[index]) / null, 2) if null > 0 else percent(0.0)
        if np.isnan(model.importance[index]):
            importance = NOT_COMPUTED
        cost = [] if path.prices is None else [short_number(float(path.prices[unit]))]
        label = [] if labels is None else [str(labels[unit])]
        columns = path.columns_of(size, unit)
        shown = columns
        if len(coef) == 1:  # "What each term does" has all of one output
            shown = largest_of(columns, coef[:, [positions[column] for column in columns]])
        for column in shown:
            numbers = [number(value, digits) for value in coef[:, positions[column]].tolist()]
            cells.append([*label, names[column], *numbers, importance, *cost])
            importance, cost = "", [""] * len(cost)
        if len(shown) < len(columns):
            cells.append([*label, f"and {len(columns) - len(shown)} more", "", "", *cost])
    blank = [""] * (0 if path.prices is None else 1)
    if model.free is not None:
        return cells[:most]
    last = ["(intercept)", *(number(value, digits) for value in intercept.tolist()), "", *blank]
    return [*cells[:most], [*([] if labels is None else [""]), *last]]


def _shown_parameters(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, str]:
    """Loss and method, and the parameters that differ from their defaults."""
    return {
        name: _parameter_text(value)
        for name, value in given.items()
        if name in ("loss", "method") or not _is_default(value, defaults.get(name))
    }


def _is_default(value: Any, default: Any) -> bool:
    plain = (str, int, float, bool)
    return value is default or (isinstance(value, plain) and isinstance(default, plain) and value == default)


def _parameter_text(value: Any) -> str:
    text = value if isinstance(value, str) else getattr(value, "__name__", None) or repr(value)
    line = re.sub(r" at 0x[0-9a-fA-F]+", "", " ".join(str(text).split()))
    return line if len(line) <= LONGEST_SETTING else f"{line[:LONGEST_SETTING]} \N{HORIZONTAL ELLIPSIS}"


def _from_training_data(model: FittedEstimator, method: str) -> Any:
    """What a method finds on the training data; None where there is no such method, or the data are gone."""
    if not hasattr(model, method):
        return None
    # Called on a shallow copy, since an estimator stores what it finds and a report must not change the model. Not
    # copy.copy: it drops the training data.
    clone = object.__new__(type(model))
    vars(clone).update(vars(model))
    try:
        return getattr(clone, method)()
    except (AttributeError, RuntimeError, ValueError):  # the training data are gone, as after loading
        return None
