"""Classifiers as sheets of points: what a fitted model and its data hand to ``scoresheets``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pauca.checks import ParameterChecks
from pauca.estimators.fitted_base import shows_progress
from pauca.model_selection.folds import make_folds
from pauca.model_selection.scoring import read_columns
from pauca.results.summary import cautions
from pauca.runs.progress import phase
from pauca.scoresheets import ScoreSheet, check_cuts, make_sheet, of_raw_table
from pauca.tables import TableEncoding
from pauca.wording import column_names, printable


class PointsMixin:
    """A fitted classifier that can be rounded to points."""

    classes_: np.ndarray
    coef_: np.ndarray
    k_: int
    loss_: Any
    path_: Any
    ridge_: float
    support_: np.ndarray
    _data: Any

    @shows_progress
    def to_points(
        self, max_points: int = 5, *, cuts: Any = None, cv: Any = 5, outcome: str | None = None
    ) -> ScoreSheet:
        """The model of two classes as a sheet of whole points that can be added up by hand.

        The features are those of the model. Their points are found by rounding coefficients at several scales and then
        changing one point or two at a time, with the scale and the constant refitted each time (as in FasterRisk: Liu
        et al. 2022). The sheet minimises what the model does, its ridge included. Points have the sign of the feature's
        coefficient, so those of a feature that is cut rise or fall from band to band as the model's risk does. The data
        of the fit are read once more, as by ``alternatives``.

        Parameters
        ----------
        max_points : int, default=5
            The most points, positive or negative, of a line: of every unit, or of a band of a feature that is cut.
        cuts : "auto", dict or None, default=None
            None: points are given for every unit of a feature, a readable number near its spread (1 for zeros and ones
            and for small whole numbers). "auto": features with more than two values are cut at up to three readable
            thresholds, and points are given above each. A dict of thresholds by name cuts these features only.
        cv : int, splitter, iterable or None, default=5
            Folds on which the sheet is compared with the model itself, and with one of the bands of features that are
            cut; None for no comparison.
        outcome : str or None, default=None
            What the sheet calls the outcome whose risk it tells, such as "dementia"; None: the second of ``classes_``.

        Returns
        -------
        ScoreSheet
            With ``summary()``, ``predict_risk(X)``, ``to_html()``, ``to_sql()``, ``to_python()``, what cutting and
            rounding cost (``held_out``) and other sheets that are nearly as good (``pool``).

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from pauca import SparseClassifier
        >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        >>> sheet = SparseClassifier(k=3).fit(X, y).to_points()
        >>> print(sheet.summary().splitlines()[1])
        worst texture         for every 5         -1
        """
        data = self._data("to_points")
        if len(self.classes_) != 2 or not hasattr(self.loss_, "probabilities"):
            raise ValueError("to_points is for two classes and a loss that models probabilities, such as 'log_loss'.")
        if data.problem.target.y.dtype.names:
            raise ValueError("to_points has no line for an offset: fit the model without one.")
        if not len(self.support_):
            raise ValueError("The model has no features, so there are no points to give.")
        check, problem = ParameterChecks("to_points"), data.problem
        outcome = check.optional_text("outcome", outcome)
        phase("finding whole points")
        names = column_names(self.path_.column_names, self.support_)
        check_cuts(cuts, names)
        found = [] if cv is None else make_folds(cv, data.y, None, data.weights, classifies=True)
        columns = read_columns(problem.X, self.support_, np.arange(len(data.weights)))
        sheet = make_sheet(
            columns,
            problem.target.y[0],
            data.weights,
            list(zip(names, self.support_.tolist(), strict=True)),
            np.sign(np.atleast_2d(self.coef_)[0, self.support_]),
            max_points=check.count("max_points", max_points),
            cuts=cuts,
            outcome=str(self.classes_[1] if outcome is None else outcome),
            folds=[(np.flatnonzero(fold.weights > 0), fold.test) for fold in found],
            ridge=self.ridge_,
        )
        warned = list(cautions(self.path_, self.k_))
        if self.path_[self.k_].diverged:
            warned.append(_separable(columns[data.weights > 0], problem.target.y[0][data.weights > 0], names))
        pool = tuple(replace(one, warnings=tuple(warned)) for one in sheet.pool)
        sheet = replace(sheet, warnings=tuple(warned), pool=pool)
        encoder = getattr(self, "encoder_", None)
        return sheet if encoder is None else self._for_raw_columns(sheet, encoder.encoding_, columns)

    def _for_raw_columns(self, sheet: ScoreSheet, encoding: TableEncoding, columns: np.ndarray) -> ScoreSheet:
        """The sheet, and the others of its pool, for the columns of a raw table."""
        data = self._data("to_points")
        counted = data.weights > 0
        masks = {place: column.missing for place, column in enumerate(data.table.raw.columns)}
        missing = {place: rows for place, rows in masks.items() if np.any(rows & counted)}
        by_column = dict(zip(self.support_.tolist(), columns.T, strict=True))
        found = [
            of_raw_table(one, encoding, missing, by_column, data.problem.target.y[0], data.weights)
            for one in (sheet, *sheet.pool)
        ]
        return replace(found[0], pool=tuple(found[1:]))


def _separable(columns: np.ndarray, y: np.ndarray, names: list[str]) -> str:
    """That points mean little where coefficients diverge, with the features that separate some rows by themselves."""
    no, yes = columns[y < 0], columns[y > 0]
    alone = (no.max(axis=0) <= yes.min(axis=0)) | (yes.max(axis=0) <= no.min(axis=0))
    which = ", ".join(printable(name) for name, separates in zip(names, alone, strict=True) if separates)
    by = f" (by {which})" if which else ""
    return (
        f"The data are separable, at least in part{by}, so the sizes of points mean little, and risks may be far too "
        "close to 0 and 1 for new rows: fit the model with a ridge, such as ridge=0.001."
    )
