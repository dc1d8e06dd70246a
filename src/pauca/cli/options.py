"""The commands and options of the command line, with their help."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn

from pauca.version import __version__
from pauca.wording import closest_name

LOSSES_FOR_NUMBERS = (
    "squared_error",
    "huber",
    "absolute_error",
    "quantile",
    "poisson",
    "gamma",
    "tweedie",
    "negative_binomial",
)
LOSSES_FOR_CLASSES = ("log_loss", "hinge", "squared_hinge")
TASKS = ("regression", "classification", "ordinal", "survival")
TIES = ("efron", "breslow")
METHODS = ("exchange", "exact", "forward", "stepwise", "foba", "backward", "replacement")
CRITERIA = ("aic", "bic", "ebic")
RULES = ("1se", "best")
DEFAULT_RULE = 0.25
N_HALVES = 20

TABLES = (
    "Tables are CSV or TSV (the delimiter is detected), Parquet, or LIBSVM files, all optionally gzipped (.gz), or - "
    "for standard input. Empty fields, NA, N/A, NaN and null are missing values."
)

TEXT_COLUMNS = (
    "A column of text, such as city, becomes a 0/1 column for each of its values except the most frequent one, the "
    "baseline: city=Lyon, city=Nice. These columns are selected together or not at all, and count as one feature. "
    "Predictions are made from raw tables with the same columns; a value that was not in the training data counts as "
    "the baseline."
)

EXIT_CODES = (
    "Exit codes: 0 success, 1 invalid data, 2 invalid usage, 130 interrupted (after one Ctrl-C the model found so far "
    "is still written)."
)

NO_HEADER = "the first line of a CSV file is a row, not names; columns are called column1, column2, ..."
DELIMITER = "the character between columns; tab for a tab (default: detected)"


class OneLineParser(argparse.ArgumentParser):
    """Errors in one line, with the option that was probably meant."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong, and exit."""
        unknown = message.removeprefix("unrecognized arguments: ").split()[0] if "unrecognized" in message else ""
        near = self.nearest_option(unknown.partition("=")[0].lstrip("-")) if unknown.startswith("-") else None
        near = "explain" if "invalid choice: 'show'" in message else near  # a saved model is what one wants to see
        near = "--out" if unknown == "-o" and "--out" in self.known_options() else near
        command = f"{self.prog} COMMAND" if self._subparsers is not None else self.prog
        hint = f"; did you mean {near}?" if near else f"; {command} --help lists the options"
        self.exit(2, f"pauca: error: {message}{hint}\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; a command tells of options that it does not know itself, with what it knows."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown and self._subparsers is None:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def nearest_option(self, unknown: str) -> str | None:
        """The option that was probably meant, all without dashes, which are alike in all of them."""
        if unknown in METHODS:
            return f"--method {unknown}"
        known = {option.lstrip("-"): option for option in self.known_options()}
        near = closest_name(unknown, known)
        return known[near] if near else None

    def known_options(self) -> list[str]:
        """The options of this command and of all commands within it."""
        found: list[str] = []
        for action in self._actions:
            found += action.option_strings
            if isinstance(action, argparse._SubParsersAction):
                found += [name for one in action.choices.values() for name in one.known_options()]
        return found


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = OneLineParser(
        prog="pauca",
        description="Find the best linear model with few features, and predict with it.",
        epilog=f"{EXIT_CODES} pauca COMMAND --help lists the options of a command.",
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"pauca {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _fit(_command(commands, "fit", "fit the best models with few features", f"{TABLES} {TEXT_COLUMNS} {EXIT_CODES}"))
    _predict(
        _command(commands, "predict", "predict the rows of a table with a saved model", f"{TABLES} {TEXT_COLUMNS}")
    )
    _path(_command(commands, "path", "list the models of all sizes in a saved model", ""))
    _report(_command(commands, "report", "write a saved model as an HTML page", ""))
    _explain(_command(commands, "explain", "print a saved model as text, SQL or Python", ""))
    _demo(_command(commands, "demo", "fit, explain and predict with example data", ""))
    return top


def _command(
    commands: argparse._SubParsersAction[OneLineParser], name: str, help: str, epilog: str
) -> argparse.ArgumentParser:
    command = commands.add_parser(
        name, help=help, description=f"{help[0].upper()}{help[1:]}.", epilog=epilog, allow_abbrev=False
    )
    command.add_argument("--debug", action="store_true", help="print a traceback if there is an error")
    command.add_argument("--quiet", action="store_true", help="print only results and errors")
    return command


def _fit(fit: argparse.ArgumentParser) -> None:
    add = fit.add_argument
    add("table", help="the table: CSV, TSV, Parquet or LIBSVM")
    add("--target", metavar="COLUMN", help="the column to predict; LIBSVM files have it as their label")
    add(
        "--k",
        type=sizes,
        default="auto",
        help="the number of features: auto (default, by cross-validation), a range of sizes (1-30), or a size (10)",
    )
    add(
        "--size",
        type=_integer(0),
        metavar="K",
        help="keep the model of this size, with the ridge that scored best for it, instead of the chosen one",
    )
    add(
        "--task",
        choices=TASKS,
        help="whether the target holds numbers, classes, classes in an order, or times to an event (default: inferred "
        "from the target and the loss)",
    )
    add("--order", metavar="A,B,C", help="the classes of an ordinal task from the lowest to the highest")
    losses = (*LOSSES_FOR_NUMBERS, *LOSSES_FOR_CLASSES)
    add("--loss", choices=losses, help="the loss to minimise (default: squared_error, or log_loss for classes)")
    add("--method", choices=METHODS, default="exchange", help="the search method (default: exchange)")
    add(
        "--ridge",
        type=_ridges,
        metavar="A",
        help="the ridge on standardised columns, several (0,0.1,1) or auto to choose it (default: auto if k is chosen)",
    )
    add("--no-intercept", action="store_true", help="fit no intercept")
    add("--balanced", action="store_true", help="give all classes the same total weight")
    add("--out", metavar="MODEL.json", help="write the model to this file, for pauca predict and pauca.load")
    add("--report", metavar="REPORT.html", help="write an HTML report to this file")
    add(
        "--stability",
        type=_integer(0),
        metavar="N",
        help=f"for the report, repeat the search on N random halves of the rows (default: {N_HALVES}; 0 for none)",
    )
    add(
        "--nested",
        action="store_true",
        help="for the report, measure the predictions by folds in which size and ridge are chosen again, so that the "
        "figures are not optimistic; takes as many fits as there are folds",
    )
    add(
        "--certify",
        type=_number(0, above=True),
        metavar="S",
        help="after the fit, spend up to S seconds on proving the models to be best; losses other than squared_error "
        "need --ridge",
    )
    add("--json", action="store_true", help="print one JSON object instead of the summary")
    _survival_options(fit.add_argument_group("survival"))
    _points_options(fit.add_argument_group("points"))
    _table_options(fit.add_argument_group("table"))
    _constraint_options(fit.add_argument_group("constraints"))
    _selection_options(fit.add_argument_group("choice of the size"))


def _survival_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--time", metavar="COLUMN", help="the time of the event, or when the row was last seen; instead of --target")
    add("--event", metavar="COLUMN", help="whether the event was seen: true and false, or 1 and 0")
    add("--event-value", metavar="V", help="where --event is coded otherwise: its value in rows whose event was seen")
    add("--entry", metavar="COLUMN", help="when each row came under observation (default: all from the start)")
    add("--strata", metavar="COLUMN", help="each value of this column has a baseline hazard of its own")
    add("--ties", choices=TIES, help="how events at the same time are counted (default: efron)")


def _points_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--points", metavar="SHEET.html", help="write the model of two classes as a printable sheet of whole points")
    add("--max-points", type=_integer(1), default=5, metavar="N", help="the most points of a line (default: 5)")
    add("--cuts", action="store_true", help="give points above readable thresholds, instead of points for every unit")


def _table_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--delimiter", type=delimiter, metavar="C", help=DELIMITER)
    add("--no-header", action="store_true", help=NO_HEADER)
    add("--drop", action="append", metavar="A,B", help="columns to ignore")
    add("--categories", action="append", metavar="A,B", help="columns of numbers that are codes of categories")
    add(
        "--missing",
        choices=("drop-rows", "median", "category"),
        help="drop rows with missing values; replace them by the median of the column (text: by the most frequent "
        "value), in predictions too; or make them a category of their own; by default missing values are an error",
    )
    add("--sample-weight", metavar="COLUMN", help="the column with the weight of each row")
    add(
        "--exposure",
        metavar="COLUMN",
        help="the column that the mean of each row is proportional to, such as the time at risk; predictions are then "
        "rates, unless they are given an exposure too",
    )
    add("--offset", metavar="COLUMN", help="the column with a known part of the score of each row")
    add("--row-groups", metavar="COLUMN", help="rows with the same value in this column stay in the same fold")


def _constraint_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--always", action="append", metavar="A,B", help="columns that every model must use")
    add("--never", action="append", metavar="A,B", help="columns that no model may use; they are not read")
    add(
        "--feature-groups",
        metavar="FILE|PATTERNS",
        help="columns that are selected together or not at all: a CSV file with lines COLUMN,GROUP, a JSON object, or "
        "patterns such as 'acc_*,gyro=g?_*'; all other columns are single",
    )
    add("--max-per-group", type=_integer(1), metavar="M", help="instead, select at most M columns of each group")
    add(
        "--costs",
        metavar="FILE",
        help="what columns cost: a CSV file with lines COLUMN,COST, or a JSON object; others cost 1",
    )
    add("--budget", type=_number(0), metavar="B", help="the largest total cost of a model")
    add(
        "--bounds",
        action="append",
        type=bounds,
        metavar="COLUMN=LOW:HIGH",
        help="bounds of a coefficient; either may be left out; may be repeated",
    )
    add("--nonnegative", action="store_true", help="no coefficient may be negative")


def _selection_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--cv", type=_integer(2), metavar="N", help="number of cross-validation folds (default: 5)")
    add(
        "--selection-rule",
        type=_rule,
        default=DEFAULT_RULE,
        metavar="C",
        help="the smallest model within C standard errors of the best (default: 0.25); 1se: within one; best: the best",
    )
    add("--scoring", metavar="NAME", help="a scorer of scikit-learn, such as roc_auc (default: the share explained)")
    add("--criterion", choices=CRITERIA, help="choose by an information criterion instead of cross-validation")
    add("--time-limit", type=_number(0, above=True), metavar="S", help="stop after S seconds, keep what was found")
    add("--n-jobs", type=int, metavar="N", help="number of parallel folds; -1: one per core (default: 1)")
    add(
        "--memory",
        type=_bytes,
        default="4G",
        metavar="SIZE",
        help="Parquet files that take more than this, such as 500M, are read in chunks of rows (default: 4G)",
    )


def _predict(predict: argparse.ArgumentParser) -> None:
    add = predict.add_argument
    add("model", help="a model file written by pauca fit --out or model.save")
    add("table", help="a table with the columns that the model uses; order and other columns do not matter")
    add("--out", metavar="FILE", help="write the predictions to this file (.csv, .tsv or .parquet) instead of stdout")
    add("--proba", action="store_true", help="add the probability of every class")
    add("--size", type=_integer(0), metavar="K", help="predict with the model of another size")
    add("--keep", action="append", metavar="A,B", help="columns of the table to copy to the output, such as a key")
    add("--exposure", metavar="COLUMN", help="the column with the exposure of each row (default: 1)")
    add("--offset", metavar="COLUMN", help="the column with the offset of each row (default: 0)")
    add("--times", type=_times, metavar="T,U", help="add the probabilities that the event has not happened by these")
    add("--strata", metavar="COLUMN", help="the stratum of each row, where the model has strata")
    add("--delimiter", type=delimiter, metavar="C", help=DELIMITER)
    add("--no-header", action="store_true", help=NO_HEADER)
    add(
        "--missing",
        choices=("error", "blank"),
        default="error",
        help="for missing values in columns the model uses: stop with an error (default), or leave the predictions of "
        "those rows blank. A model fitted with --missing median replaces them by the medians of the training data",
    )


def _path(path: argparse.ArgumentParser) -> None:
    path.add_argument("model", help="a model file")
    path.add_argument("--size", type=_integer(0), metavar="K", help="print only this size, with all its features")
    path.add_argument("--json", action="store_true", help="print JSON")


def _report(report: argparse.ArgumentParser) -> None:
    report.add_argument("model", help="a model file")
    report.add_argument("--out", metavar="REPORT.html", help="the page to write (default: the model's name with .html)")
    report.add_argument("--size", type=_integer(0), metavar="K", help="the model of another size")
    report.add_argument("--title", help="what to write above the page")


def _explain(explain: argparse.ArgumentParser) -> None:
    explain.add_argument("model", help="a model file")
    explain.add_argument("--size", type=_integer(0), metavar="K", help="the model of another size")
    form = explain.add_mutually_exclusive_group()
    form.add_argument("--sql", metavar="TABLE", help="print SQL that selects predictions from TABLE or SCHEMA.TABLE")
    form.add_argument("--python", action="store_true", help="print a Python module that imports only math")
    explain.add_argument("--exposure", metavar="COLUMN", help="in SQL and Python, the name of the exposure")
    explain.add_argument("--offset", metavar="COLUMN", help="in SQL and Python, the name of the offset")


def _demo(demo: argparse.ArgumentParser) -> None:
    demo.add_argument("--into", default="pauca_demo", metavar="FOLDER", help="the folder to write to (pauca_demo)")


def sizes(text: str) -> str | int | range:
    """``auto``, a size, or a range of sizes such as ``1-30``."""
    if text == "auto":
        return text
    first, dash, last = text.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()) or int(last or first) < max(1, int(first)):
        raise argparse.ArgumentTypeError(
            f"{text!r} is invalid; expected auto, a size such as 10, or a range such as 1-30"
        )
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
        raise argparse.ArgumentTypeError(f"{text!r} is invalid; expected COLUMN=LOW:HIGH, such as dose=0:3 or age=0:")
    return name, ends


def delimiter(text: str) -> str:
    """A single character; ``tab`` for a tab."""
    character = {"tab": "\t", "\\t": "\t", "space": " "}.get(text, text)
    if len(character) != 1 or ord(character) > 127:
        raise argparse.ArgumentTypeError(f"{text!r} is invalid; expected a single character, or tab")
    return character


def _integer(least: int) -> Callable[[str], int]:
    def integer(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is invalid; expected an integer of at least {least}")
        return int(text)

    return integer


def _rule(text: str) -> str | float:
    return text if text in RULES else _number(0)(text)


def _ridges(text: str) -> str | float | list[float]:
    if text == "auto":
        return text
    values = [_number(0)(part) for part in text.split(",")]
    return values[0] if len(values) == 1 else values


def _times(text: str) -> list[float]:
    return [_number(0)(part) for part in text.split(",")]


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)B?", text.strip(), re.IGNORECASE)
    size = float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " ") if found else 0.0
    if size < 1 << 20:
        raise argparse.ArgumentTypeError(f"{text!r} is invalid; expected a size of at least 1M, such as 500M or 4G")
    return int(size)


def _number(least: float, *, above: bool = False) -> Callable[[str], float]:
    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value < math.inf or (above and value == least):
            raise argparse.ArgumentTypeError(
                f"{text!r} is invalid; expected a number {'above' if above else 'of at least'} {least:g}"
            )
        return value

    return number
