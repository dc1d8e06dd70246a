"""The words of the command line: every command, every option, and its help."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

from pauca.version import __version__

LOSSES_FOR_NUMBERS = ("squared_error", "huber", "absolute_error", "quantile", "poisson")
LOSSES_FOR_CLASSES = ("log_loss", "hinge", "squared_hinge")
METHODS = ("exchange", "forward", "foba", "backward")
CRITERIA = ("aic", "bic", "ebic")
RULES = ("1se", "best")

TABLES = (
    "Tables are CSV or TSV (the delimiter is found out), Parquet, or LIBSVM files, each also packed by gzip (.gz). "
    "Empty fields, NA, N/A, NaN and null are missing values."
)

TEXT_COLUMNS = (
    "A column of text, such as city, becomes a column of zeros and ones for each of its values but the most frequent, "
    "the baseline: city=Lyon, city=Nice. They are chosen together or not at all, and count as one feature. Predictions "
    "are made from the raw table by the same names; a value the fit has not seen counts as the baseline."
)

EXIT_CODES = "Exit codes: 0 done, 1 bad data, 2 wrong usage, 130 interrupted (Ctrl-C once still writes what was found)."


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="pauca",
        description="The best linear model with few features, from a table to predictions.",
        epilog=f"{EXIT_CODES} pauca COMMAND --help says more of a command.",
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"pauca {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _fit(_command(commands, "fit", "find the best models with few features", f"{TABLES} {TEXT_COLUMNS} {EXIT_CODES}"))
    _predict(_command(commands, "predict", "predictions of a saved model for a table", f"{TABLES} {TEXT_COLUMNS}"))
    _path(_command(commands, "path", "the models of all sizes in a saved model", ""))
    _explain(_command(commands, "explain", "a saved model in words, SQL or Python", ""))
    _demo(_command(commands, "demo", "fit, explain and predict with a table that comes along", ""))
    return top


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, help: str, epilog: str
) -> argparse.ArgumentParser:
    made = commands.add_parser(
        name, help=help, description=f"{help[0].upper()}{help[1:]}.", epilog=epilog, allow_abbrev=False
    )
    made.add_argument("--debug", action="store_true", help="show where in the program an error came from")
    made.add_argument("--quiet", action="store_true", help="say nothing but the answer and errors")
    return made


def _fit(fit: argparse.ArgumentParser) -> None:
    fit.add_argument("table", help="the table: CSV, TSV, Parquet or LIBSVM")
    fit.add_argument("--target", metavar="COLUMN", help="the column to foretell; LIBSVM files have it as their label")
    fit.add_argument(
        "--k", type=sizes, default="auto", help="auto (the default, by cross-validation), a size such as 10, or 1-30"
    )
    fit.add_argument(
        "--task",
        choices=("regression", "classification"),
        help="numbers or classes; guessed from the target and the loss if not given",
    )
    fit.add_argument("--loss", choices=(*LOSSES_FOR_NUMBERS, *LOSSES_FOR_CLASSES), help="what is minimised")
    fit.add_argument("--method", choices=METHODS, default="exchange", help="how models are sought (exchange)")
    fit.add_argument("--ridge", type=_number(0), default=0.0, metavar="W", help="weight of the squared coefficients")
    fit.add_argument("--no-intercept", action="store_true", help="leave the intercept out")
    fit.add_argument("--balanced", action="store_true", help="give all classes the same weight")
    fit.add_argument("--out", metavar="MODEL.json", help="write the model here, for pauca predict and pauca.load")
    fit.add_argument("--report", metavar="REPORT.html", help="write a report here; needs the extra [report]")
    fit.add_argument(
        "--stability",
        type=_whole(0),
        default=20,
        metavar="N",
        help="searches on N random halves of the rows, for the report (default 20; 0 for none)",
    )
    fit.add_argument("--json", action="store_true", help="print one JSON object instead of the summary")

    table = fit.add_argument_group("the table")
    table.add_argument("--delimiter", type=delimiter, metavar="C", help="what stands between columns; tab for a tab")
    table.add_argument("--drop", action="append", metavar="A,B", help="columns to leave out")
    table.add_argument("--categories", action="append", metavar="A,B", help="columns of numbers that are mere codes")
    table.add_argument(
        "--missing",
        choices=("drop-rows", "median"),
        help="leave out rows with missing values, or fill them with the column's median, which the model remembers for "
        "predictions (text: with its most frequent value); they are refused if this is not given",
    )
    table.add_argument("--weights", metavar="COLUMN", help="the column that says how much each row counts")
    table.add_argument("--rows-of", metavar="COLUMN", help="rows alike in this column stay together in folds")

    wishes = fit.add_argument_group("what may be chosen")
    wishes.add_argument("--always", action="append", metavar="A,B", help="columns that are in every model")
    wishes.add_argument("--never", action="append", metavar="A,B", help="columns that are in none")
    wishes.add_argument(
        "--groups",
        metavar="FILE|PATTERNS",
        help="columns chosen together or not at all: a file with a column and its group on each line (CSV) or a JSON "
        "object, or patterns such as 'acc_*,gyro=g?_*'; other columns stay by themselves",
    )
    wishes.add_argument("--max-per-group", type=_whole(1), metavar="M", help="groups only limit how many are chosen")
    wishes.add_argument("--costs", metavar="FILE", help="prices: a column and its price on each line, or a JSON object")
    wishes.add_argument("--budget", type=_number(0), metavar="B", help="the largest total price")
    wishes.add_argument(
        "--bounds",
        action="append",
        type=bounds,
        metavar="COLUMN=LOW:HIGH",
        help="limits of a coefficient, either of them optional; may be given several times",
    )
    wishes.add_argument("--nonnegative", action="store_true", help="no coefficient may be negative")

    choice = fit.add_argument_group("how the size is chosen")
    choice.add_argument("--cv", type=_whole(2), metavar="N", help="number of folds (5)")
    choice.add_argument(
        "--selection-rule", choices=RULES, default="1se", help="the smallest within a standard error, or the best"
    )
    choice.add_argument("--scoring", metavar="NAME", help="a scorer of scikit-learn, such as roc_auc")
    choice.add_argument("--criterion", choices=CRITERIA, help="an information criterion instead of folds")
    choice.add_argument("--time-limit", type=_number(0, above=True), metavar="S", help="seconds; keeps what was found")
    choice.add_argument("--jobs", type=int, metavar="N", help="folds at a time; -1 for one on each core")


def _predict(predict: argparse.ArgumentParser) -> None:
    predict.add_argument("model", help="a model that pauca fit --out or model.save has written")
    predict.add_argument("table", help="a table with the columns the model uses, in any order, and any others")
    predict.add_argument("--out", metavar="FILE", help="write here (.csv, .tsv or .parquet) and not on the terminal")
    predict.add_argument("--proba", action="store_true", help="the probabilities of the classes, too")
    predict.add_argument("--size", type=_whole(0), metavar="K", help="predict with the model of another size")
    predict.add_argument(
        "--keep", action="append", metavar="A,B", help="columns of the table to hand on, such as a key"
    )
    predict.add_argument("--delimiter", type=delimiter, metavar="C", help="what stands between columns; tab for a tab")
    predict.add_argument(
        "--missing",
        choices=("refuse", "blank"),
        default="refuse",
        help="what to do with missing values the model has nothing to fill with: refuse them (the default), or leave "
        "the predictions of those rows blank. A model fitted with --missing median fills them with the medians of "
        "the fit",
    )


def _path(path: argparse.ArgumentParser) -> None:
    path.add_argument("model", help="a model file")
    path.add_argument("--size", type=_whole(0), metavar="K", help="this size alone")
    path.add_argument("--json", action="store_true", help="as JSON")


def _explain(explain: argparse.ArgumentParser) -> None:
    explain.add_argument("model", help="a model file")
    explain.add_argument("--size", type=_whole(0), metavar="K", help="the model of another size")
    form = explain.add_mutually_exclusive_group()
    form.add_argument("--sql", metavar="TABLE", help="the model as SQL that selects from TABLE or SCHEMA.TABLE")
    form.add_argument(
        "--python", action="store_true", help="the model as a Python module that imports nothing but math"
    )


def _demo(demo: argparse.ArgumentParser) -> None:
    demo.add_argument("--into", default="pauca_demo", metavar="FOLDER", help="where to write (pauca_demo)")


def sizes(text: str) -> str | int | range:
    """``auto``, a size, or a range of sizes such as ``1-30``."""
    if text == "auto":
        return text
    first, dash, last = text.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()) or int(last or first) < max(1, int(first)):
        raise argparse.ArgumentTypeError(f"{text!r} is neither auto, a size such as 10, nor sizes such as 1-30")
    return range(int(first), int(last) + 1) if dash else int(first)


def bounds(text: str) -> tuple[str, tuple[float | None, float | None]]:
    """``dose=0:3`` as a name and its bounds."""
    name, equals, pair = text.rpartition("=")
    low, colon, high = pair.partition(":")
    try:
        ends = (float(low) if low else None, float(high) if high else None)
    except ValueError:
        ends = (math.nan, None)
    if not (name and equals and colon) or any(end is not None and math.isnan(end) for end in ends):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form COLUMN=LOW:HIGH, such as dose=0:3 or age=0:")
    return name, ends


def delimiter(text: str) -> str:
    """A single character; ``tab`` for a tab."""
    found = {"tab": "\t", "\\t": "\t", "space": " "}.get(text, text)
    if len(found) != 1 or ord(found) > 127:
        raise argparse.ArgumentTypeError(f"{text!r} is not a single character; tab stands for a tab")
    return found


def _whole(least: int) -> Callable[[str], int]:
    def whole(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
        return int(text)

    return whole


def _number(least: float, *, above: bool = False) -> Callable[[str], float]:
    def number(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not least <= found < math.inf or (above and found == least):
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a number {'above' if above else 'of at least'} {least:g}"
            )
        return found

    return number
