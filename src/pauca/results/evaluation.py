"""How good the predictions of a model are on rows, and whether these rows had a part in choosing it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pauca.statistics.classification_metrics import (
    Calibration,
    ClassConfusion,
    Confusion,
    Interval,
    Ranking,
    Share,
    brier_score,
    calibration,
    confusion,
    log_loss,
    ranking,
)
from pauca.statistics.concordance import Concordance
from pauca.statistics.logistic_calibration import calibration_intercept, calibration_slope
from pauca.statistics.regression_metrics import RegressionErrors, regression_errors
from pauca.wording import aligned

if TYPE_CHECKING:
    from pandas import DataFrame

TEST, FIT, NESTED = "test", "fit", "nested"
NESTED_SIZE, FOLDS, CHOOSING = "nested_size", "folds", "choosing"

# A calibration curve has as many bins as there are so many rows for: the share of fewer says little.
ROWS_OF_A_BIN = 20
MOST_BINS = 10


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """How good the predictions of a model are on some rows, each of which counts once.

    Attributes
    ----------
    rows : {"test", "fit", "nested", "nested_size", "folds", "choosing"}
        Where the rows come from: given for the purpose; given, but those of the fit, which is optimistic; held out of
        fits that chose everything anew; held out of fits that chose all but the size anew, which was set by hand, as by
        ``at``; held out of fits with a size and ridges that were set beforehand; held out of fits with the size and
        ridges that were chosen with the help of these very rows, which is optimistic.
    n_rows : int
    n_folds : int
        How many folds held rows out; 0 for test rows.
    classes : list of str or None
    class_counts : list of int or None
        Rows of each class.
    accuracy : Share or None
        Rows whose class is predicted right.
    threshold : float or None
        From which probability, or score, on the second of two classes is predicted.
    confusion : Confusion or None
        Of two classes, at the threshold; the second is the positive one.
    class_confusion : ClassConfusion or None
        Of more classes: ``class_confusion.counts`` has a row for every class and a column for every predicted one.
    ranking : Ranking or None
        Of two classes: the area under the ROC curve.
    brier : float or None
    log_loss : float or None
        Where there are probabilities of classes: minus the mean logarithm of that of each row's class. Below that of
        the classes' shares alone, the features help.
    calibration : Calibration or None
        Where there are probabilities of two classes, or of an event by the horizon.
    errors : RegressionErrors or None
        Of numbers.
    concordance : Concordance or None
        Of times to an event: the share of pairs of rows whose events come in the predicted order.
    calibration_slope : float or None
        Of times to an event, and of probabilities of two classes: the coefficient of the predictions, or of their
        log-odds, in a model of their own. Below 1 they are too extreme.
    calibration_intercept : float or None
        Of probabilities of two classes: what must be added to the log-odds so that they are right on average
        (calibration in the large). Above 0 the second class is more frequent than predicted.
    horizon : float or None
        Of times to an event: the time that the calibration is about.
    n_events : int or None
        Of times to an event: rows whose event was seen.
    not_measured : list of str
        What could not be measured, or not on all rows, and why.
    fold_choices : list of list of str
        The features, or groups, that were chosen without the rows of each fold.
    score : float or None
        Of nested folds: what sizes are compared by, the share explained on held-out rows or the score of ``scoring``.
    """

    rows: str
    n_rows: int
    n_folds: int = 0
    classes: list[str] | None = None
    class_counts: list[int] | None = None
    accuracy: Share | None = None
    threshold: float | None = None
    confusion: Confusion | None = None
    class_confusion: ClassConfusion | None = None
    ranking: Ranking | None = None
    brier: float | None = None
    log_loss: float | None = None
    calibration: Calibration | None = None
    errors: RegressionErrors | None = None
    concordance: Concordance | None = None
    calibration_slope: float | None = None
    calibration_intercept: float | None = None
    horizon: float | None = None
    n_events: int | None = None
    not_measured: list[str] = field(default_factory=list)
    fold_choices: list[list[str]] = field(default_factory=list)
    score: float | None = None

    @property
    def optimistic(self) -> bool:
        """Whether the rows had a part in the fit, or in choosing size or ridge."""
        return self.rows in {FIT, CHOOSING}

    @property
    def message(self) -> str:
        """Where the rows come from, in words."""
        folds = f"{self.n_folds}-fold cross-validation"
        return {
            TEST: f"Measured on {self.n_rows} test rows. They must not be rows of the fit.",
            FIT: f"Measured on {self.n_rows} rows. These are the rows of the fit: figures are optimistic, and new rows "
            "will be predicted worse.",
            NESTED: f"Measured by nested {folds} on {self.n_rows} rows: for every fold the features, the size and the "
            "ridge were chosen again without the rows that were then predicted.",
            NESTED_SIZE: f"Measured by nested {folds} on {self.n_rows} rows: for every fold the features and the ridge "
            "were chosen again without the rows that were then predicted. The size was set by hand: if these rows had "
            "a part in that, the figures are optimistic.",
            FOLDS: f"Measured by {folds} on {self.n_rows} rows: for every fold the features were chosen again without "
            "the rows that were then predicted; size and ridge were given, not chosen.",
            CHOOSING: f"Optimistic: measured by {folds} on {self.n_rows} rows that also had a part in choosing the "
            "size or the ridge. New rows will be predicted worse, and much worse where rows are few and columns many.",
        }[self.rows]

    @property
    def hint(self) -> str:
        """How to have it measured without a bias, where there is one."""
        return "nested=True, or test rows, give figures without this bias." if self.optimistic else ""

    def table(self) -> list[dict[str, Any]]:
        """Records with the keys figure, value, lower and upper: 95 % intervals for what a sample of rows may miss."""
        found = [_record(name, value, interval) for name, value, interval in self._figures()]
        return [record for record in found if np.isfinite(record["value"])]

    def to_frame(self) -> DataFrame:
        """The table as a pandas frame indexed by figure."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError('to_frame needs pandas; install it with: pip install "pauca[frames]"') from error
        return pd.DataFrame(self.table()).set_index("figure")

    def summary(self) -> str:
        """The table and where its rows come from, as text."""
        cells, records = [["", "value", "95 % interval"]], self.table()
        for record in records:
            has_interval = record["lower"] is not None
            interval = f"{record['lower']:.4g} to {record['upper']:.4g}" if has_interval else ""
            cells.append([record["figure"].replace("_", " "), f"{record['value']:.4g}", interval])
        if all(record["lower"] is None for record in records):
            cells = [row[:2] for row in cells]
        message = f"{self.message} {self.hint}".rstrip()
        about = [*self._class_lines(), *self._about_classes(), *self._about_numbers(), *self._about_times()]
        about += self.not_measured
        return "\n".join([*aligned(cells, left=1), "", *about, message])

    def _about_classes(self) -> list[str]:
        """Which of two classes the figures at the threshold are about."""
        if self.confusion is None or self.classes is None:
            return []
        other, event = self.classes
        intercept = (
            []
            if self.calibration_intercept is None
            else [f"calibration intercept: 0 is ideal; above 0, {event!r} is more frequent than predicted"]
        )
        return [
            *self._about_slope(),
            *intercept,
            f"sensitivity and predictive value: of class {event!r}; specificity and negative predictive value: of "
            f"class {other!r}",
        ]

    def _about_numbers(self) -> list[str]:
        """What numbers that were held out are compared with."""
        if self.errors is None or self.rows not in {CHOOSING, NESTED}:
            return []
        names, verb = ("r2", "compares") if self.errors.d2 is None else ("d2 and r2", "compare")
        return [
            f"{names} {verb} with the mean of these very rows; what summary() calls explained on held-out rows, with a "
            "constant found without them"
        ]

    def _about_times(self) -> list[str]:
        """How to read the figures of times to an event."""
        found = []
        if self.concordance is not None:
            found.append(
                "concordance: the share of pairs of rows whose events come in the predicted order; 0.5 is chance"
            )
            found += self._about_slope()
        return [*found, *self._about_horizon()]

    def _about_slope(self) -> list[str]:
        if self.calibration_slope is None:
            return []
        return ["calibration slope: 1 is ideal; below 1, high risks are predicted too high and low ones too low"]

    def _about_horizon(self) -> list[str]:
        """Predicted and observed risks of an event by the horizon, in groups from low to high risk."""
        curve = self.calibration
        if self.horizon is None or curve is None:
            return []
        cells = [["predicted", "observed", "95 % interval", "rows"]]
        for predicted, observed, rows, interval in zip(
            curve.predicted, curve.observed, curve.n_rows, curve.intervals(), strict=True
        ):
            ends = " to ".join(f"{100 * end:.0f} %" for end in interval) if np.isfinite(interval[0]) else "unknown"
            cells.append([f"{100 * predicted:.1f} %", f"{100 * observed:.1f} %", ends, str(rows)])
        head = f"risk of an event by time {self.horizon:g}, in groups of rows from low to high risk:"
        return ["", head, *aligned(cells, left=0), ""]

    def class_table(self) -> list[list[str]]:
        """For every class of more than two: rows, those found, predictions that are right, and the usual mistake."""
        found, names = self.class_confusion, self.classes
        if found is None or names is None:
            return []
        body = []
        for code, name in enumerate(names):
            recall, precision, wrong = found.recall(code), found.precision(code), found.mistaken_for(code)
            mistake = "" if wrong is None else f"{names[wrong[0]]} ({wrong[1]} row{'' if wrong[1] == 1 else 's'})"
            shares = [f"{100 * share.value:.1f} %" if share.of else "none" for share in (recall, precision)]
            body.append([name, str(recall.of), *shares, mistake])
        return [["class", "rows", "predicted as such", "of those predicted, right", "most often taken for"], *body]

    def _class_lines(self) -> list[str]:
        table = self.class_table()
        return [*aligned(table, left=1), ""] if table else []

    def __repr__(self) -> str:
        return self.summary()

    def _figures(self) -> list[tuple[str, float, Interval | None]]:
        found: list[tuple[str, float, Interval | None]] = []
        if self.concordance is not None:
            found.append(("concordance", self.concordance.value, self.concordance.interval()))
        if self.ranking is not None:
            found.append(("auc", self.ranking.auc, self.ranking.interval()))
        if self.accuracy is not None:
            found.append(("accuracy", self.accuracy.value, self.accuracy.interval()))
        if self.confusion is not None:
            names = ("sensitivity", "specificity", "predictive_value", "negative_predictive_value")
            shares: list[Share] = [getattr(self.confusion, name) for name in names]
            found += [(name, share.value, share.interval()) for name, share in zip(names, shares, strict=True)]
        if self.brier is not None:
            found.append(("brier", self.brier, None))
        if self.log_loss is not None:
            found.append(("log_loss", self.log_loss, None))
        if self.calibration_slope is not None:
            found.append(("calibration_slope", self.calibration_slope, None))
        if self.calibration_intercept is not None:
            found.append(("calibration_intercept", self.calibration_intercept, None))
        if self.errors is not None:
            found += [] if self.errors.d2 is None else [("d2", self.errors.d2, None)]
            found += [(name, getattr(self.errors, name), None) for name in ("r2", "rmse", "mae")]
        return found


def _record(name: str, value: float, interval: Interval | None) -> dict[str, Any]:
    lower, upper = (None, None) if interval is None else interval
    return {"figure": name, "value": value, "lower": lower, "upper": upper}


def evaluate_numbers(
    y: np.ndarray, predicted: np.ndarray, rows: str, n_folds: int = 0, d2: float | None = None
) -> Evaluation:
    """The evaluation of predicted numbers, shapes (n,) or (n, C)."""
    return Evaluation(rows, len(y), n_folds, errors=regression_errors(y, predicted, d2))


def evaluate_classes(
    codes: np.ndarray,
    scores: np.ndarray,
    classes: list[str],
    rows: str,
    *,
    threshold: float = 0.5,
    probabilities: bool = True,
    n_folds: int = 0,
) -> Evaluation:
    """The evaluation of classes.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        The class of every row, counted from 0.
    scores : ndarray of shape (n,) or (n, classes)
        Of two classes the probability or score of the second, of more those of all.
    probabilities : bool
        Whether scores are probabilities.
    """
    counts = np.bincount(codes, minlength=len(classes)).tolist()
    about: dict[str, Any] = {"n_folds": n_folds, "classes": classes, "class_counts": counts}
    if probabilities:
        about["log_loss"] = log_loss(codes, scores if scores.ndim == 2 else np.column_stack([1.0 - scores, scores]))
    if scores.ndim == 2:
        table = ClassConfusion.of(codes, scores.argmax(axis=1), len(classes))
        return Evaluation(rows, len(codes), accuracy=table.accuracy, class_confusion=table, **about)
    positive = codes == 1
    at_threshold = confusion(positive, scores >= threshold)
    n_bins = min(MOST_BINS, len(codes) // ROWS_OF_A_BIN)
    curve = calibration(positive, scores, n_bins) if probabilities and n_bins > 1 else None
    return Evaluation(
        rows,
        len(codes),
        accuracy=at_threshold.accuracy,
        threshold=threshold,
        confusion=at_threshold,
        ranking=ranking(positive, scores),
        brier=brier_score(positive, scores) if probabilities else None,
        calibration=curve,
        calibration_slope=calibration_slope(positive, scores) if probabilities else None,
        calibration_intercept=calibration_intercept(positive, scores) if probabilities else None,
        **about,
    )
