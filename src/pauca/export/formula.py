"""A fitted linear model as a formula: all that the writers of SQL, Python and ONNX need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pauca.losses import resolve
from pauca.results.path import Path
from pauca.tables import Term


class FittedLinearModel(Protocol):
    """The attributes of an estimator that a formula is made from; a classifier also has ``classes_``."""

    loss: Any
    path_: Path
    k_: int


@dataclass(frozen=True, eq=False)
class Formula:
    """Linear scores ``coef @ x[columns] + intercept``, and how they become predictions.

    Conventions
    -----------
    columns, names : indices and names of the used columns; column 3 of a table without names is called ``x3``
    coef, intercept : shapes (C, m) and (C,)
    outputs : C names of the outputs, or None for a single output without a name
    classes : labels as plain Python values, or None; with two classes C is 1
    terms : how the used columns come from those of a raw table; for a table of numbers each is the column itself
    thresholds : ascending, between classes in an order; the link is "cumulative" then
    link : "identity", "exp", "inverse" or "log_hazard" for regressors; "log_loss", "softmax", or None without
        probabilities, for classifiers
    offset, exposure : names of columns that are added to the scores, or that predictions are multiplied by
    """

    columns: list[int]
    names: list[str]
    coef: np.ndarray
    intercept: np.ndarray
    outputs: list[str] | None
    classes: list[Any] | None
    link: str | None
    terms: list[Term]
    thresholds: np.ndarray | None = None
    offset: str | None = None
    exposure: str | None = None

    @property
    def is_raw(self) -> bool:
        """Whether some column is not simply a number of the table."""
        return any(term != Term(term.raw, term.raw) for term in self.terms)


def formula_of(model: FittedLinearModel, *, offset: str | None = None, exposure: str | None = None) -> Formula:
    """The formula of a fitted estimator at its chosen size, with columns of an offset or an exposure."""
    path, chosen = model.path_, model.path_[model.k_]
    classes = getattr(model, "classes_", None)
    thresholds = getattr(model, "thresholds_", None)
    if thresholds is not None:
        link: str | None = "cumulative"
    else:
        link = _regression_link(model.loss) if classes is None else _class_link(model.loss, len(classes))
    names, encoder = path.names(model.k_), getattr(model, "encoder_", None)
    terms = [Term(name, name) for name in names]
    if encoder is not None:
        terms = [encoder.encoding_.terms[column] for column in chosen.support]
    if exposure is not None and link != "exp":
        raise ValueError("exposure is for models whose score is the logarithm of the mean, such as loss='poisson'.")
    if offset is not None and (
        exposure is not None or thresholds is not None or (classes is not None and len(classes) > 2)
    ):
        raise ValueError("offset is for numbers and for two classes, and not beside exposure.")
    return Formula(
        columns=chosen.support.tolist(),
        names=names,
        coef=np.atleast_2d(chosen.coef),
        intercept=np.atleast_1d(chosen.intercept),
        outputs=path.output_names,
        classes=None if classes is None else [_plain_label(label) for label in classes.tolist()],
        link=link,
        terms=terms,
        thresholds=thresholds,
        offset=offset,
        exposure=exposure,
    )


def _regression_link(loss_setting: Any) -> str:
    loss = resolve(loss_setting, classes=False)
    link = loss.link_of("prediction")
    if link not in {"identity", "exp", "inverse", "log_hazard"}:
        raise ValueError(
            f'{loss!r} has its own method "prediction", which cannot be exported. If it is one of the known links, '
            'declare it in the class of the loss: link = "identity", "exp" or "inverse".'
        )
    return link


def _class_link(loss_setting: Any, n_classes: int) -> str | None:
    """The link to probabilities, or None if it cannot be exported: classes follow from the scores alone."""
    link = resolve(loss_setting, classes=True).for_classes(n_classes).link_of("probabilities")
    return link if link == ("log_loss" if n_classes == 2 else "softmax") else None


def _plain_label(label: Any) -> Any:
    if isinstance(label, bool | int | float | str):
        return label
    raise ValueError(f"The class {label!r} cannot be exported: classes must be numbers or strings.")
