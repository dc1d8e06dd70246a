"""How good the predictions are: figures with intervals, a table of right and wrong, a calibration curve."""

from __future__ import annotations

from math import isfinite, log

from pauca.report.drawing import Drawing, Margins
from pauca.report.formatting import NONE, SPACE, Markup, joined, number, percent, short_number, table, tag
from pauca.report.model_data import ModelData
from pauca.results.evaluation import FIT, Evaluation
from pauca.results.plots import BLUE, INK
from pauca.statistics.classification_metrics import Calibration, ClassConfusion, Interval, Share

SLOPE = (
    "The calibration slope is 1 if predicted risks differ between rows as much as they should; below 1, high risks are "
    "predicted too high and low ones too low."
)
CALIBRATION = "Calibration: predicted probability against what happened, in bins of about as many rows each"

# Labels of more letters would leave the calibration chart at its right.
LONGEST_LABEL = 46

# A page does not know whether Python or a shell wrote it.
NESTED_HINT = (
    "Figures without this bias come from nested folds (in Python report(..., nested=True), in a shell pauca fit "
    "--report PAGE.html --nested) or a test set (in "
    "Python report(..., X_test, y_test))."
)

NOT_MEASURED = (
    "Predictions were not measured for this page, since the rows of the fit are not at hand: files of models hold no "
    "rows. In Python, report(..., X_test, y_test) measures them on test rows; so does a report that is written "
    "where the model is fitted."
)
KEPT = (
    "Optimistic: these figures were kept when the model was fitted. The rows that they were measured on were held out "
    "of the fit, but had a part in choosing the size or the ridge. New rows will be predicted worse."
)
# Classes that are crossed with the predicted ones in a table.
MOST_CROSSED = 20

NAMES = {
    "auc": "AUC",
    "accuracy": "Accuracy",
    "brier": "Brier score",
    "log_loss": "Log loss",
    "concordance": "Concordance",
    "d2": "D²: share of the deviance explained",
    "r2": "R²: share of the variance explained",
    "rmse": "Root mean squared error",
    "mae": "Mean absolute error",
}


def performance(data: ModelData) -> Markup:
    """The section; where nothing could be measured, what was known when the model was fitted."""
    found = data.evaluation
    if found is None:
        return _not_measured(data) if data.measurable and data.size else Markup("")
    notes = [" ".join([found.message, *([NESTED_HINT] if found.optimistic else [])]), *_how_to_read(found)]
    notes += [f"{reason[0].upper()}{reason[1:]}." for reason in found.not_measured]
    text = tag(
        "div",
        tag("h2", "How good are the predictions?"),
        *(
            tag("p", note, class_="caution" if found.optimistic and not place else "note")
            for place, note in enumerate(notes)
        ),
    )
    parts = [_figures(found), _right_and_wrong(found)]
    if found.calibration is not None:
        parts.append(_calibration(found, found.calibration, data.event))
    return tag("section", text, tag("div", *parts), class_="split performance")


def _not_measured(data: ModelData) -> Markup:
    """Why there are no figures of this page's own, and those that the file of the model has."""
    notes = [tag("p", NOT_MEASURED, class_="note")]
    choice = data.path.choice
    kept = {} if choice is None or not choice.is_of(data.size) else choice.held_out
    listed = Markup("")
    if kept:
        notes.insert(0, tag("p", KEPT, class_="caution"))
        rows = [[*_named(name, value)] for name, value in kept.items() if name in NAMES]
        listed = table("Figures of the fit, on held-out rows", ["Figure", "Value"], rows)
    text = tag("div", tag("h2", "How good are the predictions?"), *notes)
    return tag("section", text, tag("div", listed), class_="split performance")


def _named(name: str, value: float) -> tuple[str, str]:
    return NAMES[name], f"{value:.3f}" if name in ("auc", "accuracy", "brier", "concordance") else number(value, 4)


def headline_figures(found: Evaluation) -> list[tuple[str, str]]:
    """The main figures, for the top of the page."""
    where = "rows of the fit" if found.rows == FIT else "held-out rows" if found.n_folds else "test rows"
    how = f"{where}, optimistic" if found.optimistic else where
    if found.concordance is not None:
        return [(f"concordance ({how})", f"{found.concordance.value:.3f}")]
    if found.ranking is not None:
        assert found.accuracy is not None
        return [(f"AUC ({how})", f"{found.ranking.auc:.3f}"), (f"accuracy ({how})", percent(found.accuracy.value))]
    if found.accuracy is not None:
        return [(f"accuracy ({how})", percent(found.accuracy.value))]
    if found.errors is None:
        return []
    if found.errors.d2 is not None:
        return [(f"D² ({how})", number(found.errors.d2, 3))]
    return [(f"R² ({how})", number(found.errors.r2, 3))]


def _how_to_read(found: Evaluation) -> list[str]:
    if found.concordance is not None:
        return [
            "Concordance is the share of pairs of rows whose events come in the predicted order: 0.5 is a coin, 1 is "
            "perfect.",
            SLOPE,
            "Intervals (95 %) show the uncertainty from a sample of this many rows, nothing else.",
        ]
    if found.errors is not None and found.n_folds:
        compare = "R² compares" if found.errors.d2 is None else "R² and D² compare"
        return [
            f"{compare} the error of all held-out rows with that of their own mean. Explained on held-out "
            "rows, where the page has it, compares the loss of the model with that of a constant that was found, as "
            "the model was, without these rows. So they differ: a little as a rule, and much where rows are few."
        ]
    if found.confusion is None:
        return _about_log_loss(found)
    assert found.classes is not None
    what = "probability" if found.brier is not None else "score"
    notes = [
        f"{found.classes[1]} is predicted where its {what} is at least {short_number(found.threshold or 0.0)}, the "
        "threshold of this page. The figures hold only if it was not chosen by looking at them.",
        f"AUC is the chance that a row of {found.classes[1]} gets a higher {what} than one of {found.classes[0]}: 0.5 "
        "is a coin, 1 is perfect.",
        *_no_better_than_a_constant(found),
    ]
    if found.brier is not None:
        assert found.class_counts is not None
        share = found.class_counts[1] / found.n_rows
        constant = share * (1 - share)
        notes.append(
            "The Brier score is the mean squared difference between probability and outcome: 0 is perfect, "
            f"{constant:.3f} is what a constant probability gets here."
        )
    notes += _about_log_loss(found)
    if found.calibration_slope is not None:
        notes.append(
            f"{SLOPE} The intercept is what log-odds lack to be right on average: above 0 "
            f"{found.classes[1]} is more frequent than predicted."
        )
    notes.append("Intervals (95 %) show the uncertainty from a sample of this many rows, nothing else.")
    return notes


def _about_log_loss(found: Evaluation) -> list[str]:
    """What the log loss is, and what probabilities get that know the shares of the classes alone."""
    if found.log_loss is None or found.class_counts is None:
        return []
    shares = [count / found.n_rows for count in found.class_counts if count]
    constant = -sum(share * log(share) for share in shares)
    return [
        "The log loss is minus the mean logarithm of the probability given to the class that came true: 0 is perfect, "
        f"{constant:.3f} is what the shares of the classes get here, and sure predictions that are wrong raise it most."
    ]


def _no_better_than_a_constant(found: Evaluation) -> list[str]:
    """A sentence where the predicted classes are right no more often than one class for all rows would be."""
    assert found.classes is not None
    assert found.class_counts is not None
    assert found.accuracy is not None
    most = max(found.class_counts)
    if found.accuracy.count > most:
        return []
    name = found.classes[found.class_counts.index(most)]
    how = "no more than" if found.accuracy.count == most else "less than"
    return [
        f"At this threshold {percent(found.accuracy.value)} of the rows are predicted right, {how} by always "
        f"predicting {name}, the more frequent class ({percent(most / found.n_rows)}): look at AUC and the "
        "probabilities instead, or choose another threshold beforehand."
    ]


def _figures(found: Evaluation) -> Markup:
    rows: list[list[str]] = []
    if found.concordance is not None:
        rows.append(
            ["Concordance", f"{found.concordance.value:.3f}", _interval(found.concordance.interval(), "{:.3f}")]
        )
    if found.ranking is not None:
        rows.append(["AUC", f"{found.ranking.auc:.3f}", _interval(found.ranking.interval(), "{:.3f}")])
    if found.accuracy is not None:
        rows.append(["Accuracy", *_share(found.accuracy)])
    if found.confusion is not None:
        assert found.classes is not None
        first, second = found.classes
        rows.append([f"Sensitivity: rows of {second} predicted as such", *_share(found.confusion.sensitivity)])
        rows.append([f"Specificity: rows of {first} predicted as such", *_share(found.confusion.specificity)])
        rows.append([f"Of those predicted {second}, right", *_share(found.confusion.predictive_value, predicted=True)])
        right = _share(found.confusion.negative_predictive_value, predicted=True)
        rows.append([f"Of those predicted {first}, right", *right])
    if found.brier is not None:
        rows.append(["Brier score", f"{found.brier:.3f}", ""])
    if found.log_loss is not None:
        rows.append([NAMES["log_loss"], f"{found.log_loss:.3f}", ""])
    if found.calibration_slope is not None:
        rows.append(["Calibration slope", number(found.calibration_slope, 3), ""])
    if found.calibration_intercept is not None:
        rows.append(["Calibration intercept", number(found.calibration_intercept, 3), ""])
    if found.errors is not None:
        rows += [] if found.errors.d2 is None else [[NAMES["d2"], number(found.errors.d2, 3), ""]]
        rows.append([NAMES["r2"], number(found.errors.r2, 3), ""])
        rows.append(["Root mean squared error", number(found.errors.rmse, 4), ""])
        rows.append(["Mean absolute error", number(found.errors.mae, 4), ""])
    heads = ["Figure", "Value", *(["95 % interval"] if found.errors is None else [])]
    events = "" if found.n_events is None else f" with {found.n_events} events"
    return table(f"Figures of {found.n_rows} rows{events}", heads, [row[: len(heads)] for row in rows])


def _share(share: Share, *, predicted: bool = False) -> list[str]:
    """A share and its interval; ``predicted`` says that it is one of the rows predicted to be of a class."""
    if not share.of:
        return ["none was predicted so" if predicted else NONE, NONE]
    value = f"{percent(share.value)} ({share.count} of {share.of})"
    return [value, _interval(share.interval(), "{:.1%}").replace("%", f"{SPACE}%")]


def _interval(interval: Interval, form: str) -> str:
    return " to ".join(form.format(end) for end in interval)


def _right_and_wrong(found: Evaluation) -> Markup:
    if found.class_confusion is not None:
        return _by_class(found, found.class_confusion)
    if found.confusion is None:
        return Markup("")
    assert found.classes is not None
    first, second = found.classes
    cells = found.confusion
    body = [
        [f"{second} (events)", str(cells.true_positive), str(cells.false_negative)],
        [first, str(cells.false_positive), str(cells.true_negative)],
    ]
    heads = ["Class of the row", f"Predicted {second}", f"Predicted {first}"]
    return table("Right and wrong at the threshold", heads, body)


def _by_class(found: Evaluation, cells: ClassConfusion) -> Markup:
    """How every class fares, and which are taken for which."""
    assert found.classes is not None
    head, *body = found.class_table()
    parts = [table("Right and wrong by class", [name.capitalize() for name in head], body)]
    if len(found.classes) <= MOST_CROSSED:
        names = found.classes
        counts = [
            [name, *(str(many) if many else "" for many in row)]
            for name, row in zip(names, cells.counts.tolist(), strict=True)
        ]
        crossed = table("Rows by class (down) and by predicted class (across)", ["Class", *names], counts)
        parts.append(tag("details", tag("summary", "Which classes are taken for which"), crossed))
    return joined(parts)


def _calibration(found: Evaluation, curve: Calibration, of_times: str) -> Markup:
    """The curve as a drawing and as a table."""
    if found.classes is not None:
        event, were, briefly = found.classes[1], f"Were {found.classes[1]}", "of the second class"
    else:
        horizon = f"by time {short_number(found.horizon or 0.0)}"
        event, were, briefly = f"{of_times} {horizon}", f"Had {of_times} {horizon} (estimated)", horizon
    labels = (f"predicted probability of {event}", f"probability of {event}", f"predicted probability {briefly}")
    label = next((one for one in labels if len(one) <= LONGEST_LABEL), labels[-1])
    chart = tag("div", _drawing(curve, label), role="img", class_="chart", aria_label=CALIBRATION)
    rows = [
        [percent(float(predicted), 1), f"{percent(float(observed), 1)} ({seen} of {rows})", _percents(interval)]
        for predicted, observed, rows, seen, interval in zip(
            curve.predicted, curve.observed, curve.n_rows, curve.n_events, curve.intervals(), strict=True
        )
    ]
    heads = ["Predicted", were, "95 % interval"]
    listed = tag("details", tag("summary", "The numbers of the calibration curve"), table("Calibration", heads, rows))
    caption = tag("figcaption", tag("span", "Calibration"), tag("span", "dots on the line: probabilities are right"))
    return joined([tag("figure", caption, chart), listed])


def _percents(interval: Interval) -> str:
    return " to ".join(percent(end, 0) for end in interval) if isfinite(interval[0]) else "unknown"


def _drawing(curve: Calibration, label: str) -> Markup:
    drawing = Drawing(343, 330, (0.0, 1.0), (0.0, 1.0), Margins(left=50, top=28, right=18, bottom=46))
    shares = (0.0, 0.25, 0.5, 0.75, 1.0)
    drawing.axes(label, "share observed", x_ticks=shares, y_ticks=shares, y_text="{:.0%}".format)
    drawing.line([(0.0, 0.0), (1.0, 1.0)], INK, width=1, dash="4 4")
    for predicted, interval in zip(curve.predicted.tolist(), curve.intervals(), strict=True):
        if isfinite(interval[0]):
            drawing.line([(predicted, interval[0]), (predicted, interval[1])], BLUE, width=1.5)
    seen = list(zip(curve.predicted.tolist(), curve.observed.tolist(), strict=True))
    drawing.line(seen, BLUE)
    drawing.dots(seen, BLUE, [f"{percent(p)} predicted, {percent(o)} observed" for p, o in seen], radius=4)
    return drawing.svg()
