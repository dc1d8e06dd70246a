"""A fitted model as a formula: what the writers of SQL, Python and ONNX need to know of it, and no more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pauca.losses import resolve


@dataclass(frozen=True, eq=False)
class Formula:
    """Scores ``coef @ x[columns] + intercept``, and what they stand for.

    Conventions
    -----------
    columns, names : indices and names of the used columns; ``x3`` stands for column 3 of a table without names
    coef, intercept : shapes (C, m) and (C,)
    outputs : C names of what is predicted, or None for a single number without a name
    classes : labels as plain Python values, or None; C is 1 where there are two
    link : "identity" or "exp" for numbers; "log_loss", "softmax" or None, if there are no probabilities, for classes
    """

    columns: list[int]
    names: list[str]
    coef: np.ndarray
    intercept: np.ndarray
    outputs: list[str] | None
    classes: list[Any] | None
    link: str | None


def formula_of(estimator: Any) -> Formula:
    """The formula of a fitted estimator with a ``path_``, a ``loss`` and perhaps ``classes_``."""
    path, size = estimator.path_, estimator.k_
    model = path[size]
    classes = getattr(estimator, "classes_", None)
    return Formula(
        columns=model.support.tolist(),
        names=path.names(size),
        coef=np.atleast_2d(model.coef),
        intercept=np.atleast_1d(model.intercept),
        outputs=path.output_names,
        classes=None if classes is None else [_plain(label) for label in classes.tolist()],
        link=_link_to_numbers(estimator.loss) if classes is None else _link_to_classes(estimator.loss, len(classes)),
    )


def _link_to_numbers(given: Any) -> str:
    loss = resolve(given, classes=False)
    link = loss.link_of("prediction")
    if link not in {"identity", "exp"}:
        raise ValueError(
            f"{loss!r} turns scores into predictions by a function of its own. To have it written in another language, "
            f'say which beside its method "prediction": link = "identity" or link = "exp".'
        )
    return link


def _link_to_classes(given: Any, n_classes: int) -> str | None:
    """The link, if it is one that can be written; classes are told by the scores alone."""
    link = resolve(given, classes=True).for_classes(n_classes).link_of("probabilities")
    return link if link == ("log_loss" if n_classes == 2 else "softmax") else None


def _plain(label: Any) -> Any:
    if isinstance(label, bool | int | float | str):
        return label
    raise ValueError(
        f"The class {label!r} is neither a number nor a string, and cannot be written in another language."
    )
