"""All reasons why a table cannot be used, reported together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pauca.tables.raw_columns import THOUSANDS, RawColumn, is_formatted, parsed_share
from pauca.wording import NAMES_SHOWN, quoted

# A column of text with more levels than these, or with more than a few and more than half as many as there are rows, is
# taken for identifiers or free text.
MOST_LEVELS = 50
FEW_LEVELS = 10

# Of categories that were declared as such there may be more.
MOST_DECLARED_LEVELS = 1000

# Text of which so many levels are numbers is a column of numbers with something else in it.
MOSTLY_NUMBERS = 0.8

# What people write for values that they do not have, in lower case and without spaces around.
PLACEHOLDERS = {"", ".", "..", "?", "-", "--", "na", "n/a", "n.a.", "#n/a", "null", "missing", "unknown"}

# Text of so many different numbers and nothing else but placeholders is numbers. Fewer may well be codes, as 0, 1 and
# 2, or answers on a scale of up to five points, which are right as categories with a level for what is not known.
LEAST_NUMBERS = 6

# Code to paste lists no more kinds of text among numbers than these, and fewer columns than these.
MOST_REPLACED = 10
MOST_COLUMNS_IN_CODE = 20


class TableError(ValueError):
    """A table that cannot be used as it is.

    ``problems`` are sentences, ``missing`` the number of missing values by column, and ``columns`` all columns that
    could be left out instead.
    """

    def __init__(self, message: str, problems: Sequence[str], columns: Sequence[str], missing: dict[str, int]) -> None:
        super().__init__(message)
        self.problems = list(problems)
        self.columns = list(columns)
        self.missing = missing


@dataclass
class Problems:
    """What was found in the columns of a table, by kind."""

    dates: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    crowded: list[str] = field(default_factory=list)
    part_numbers: dict[str, list[str]] = field(default_factory=dict)
    blank: dict[str, list[str]] = field(default_factory=dict)
    """Levels that are no more than spaces, by column."""
    formatted: dict[str, str] = field(default_factory=dict)
    infinite: list[str] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)
    described: dict[str, str] = field(default_factory=dict)
    most_levels: dict[str, int] = field(default_factory=dict)
    """How many levels a crowded column may have: text a few, at most half as many as rows, and declared ones more."""
    frame: str = ""
    """The library of a table with named columns, "pandas" or "polars", for which code is told."""

    def unreadable(self, name: str, kind: str) -> None:
        """Note a column that is neither numbers nor text."""
        (self.dates if kind == "date" else self.others).append(name)

    def check_levels(self, column: RawColumn) -> None:
        """Note a column of text with levels that are formatted numbers, too many, or numbers and what is none."""
        count = len(column.levels)
        odd = [str(level) for level in column.levels if not parsed_share([level])] if column.is_text else []
        if odd and count - len(odd) >= LEAST_NUMBERS and all(_is_placeholder(level) for level in odd):
            self.part_numbers[column.name] = odd
            return
        if column.is_text and count > FEW_LEVELS:
            formatted = [str(level) for level in column.levels if is_formatted(level)]
            numbers = count - len(odd) + sum(map(is_formatted, odd))
            if formatted and count - len(odd) < MOSTLY_NUMBERS * count <= numbers:
                self.formatted[column.name] = formatted[0]
                return
        most = max(FEW_LEVELS, min(MOST_LEVELS, len(column) // 2)) if column.is_text else MOST_DECLARED_LEVELS
        if count <= most:
            blank = [level for level in odd if not level.strip()]
            if blank:
                self.blank[column.name] = blank
                places = [column.levels.index(level) for level in blank]
                rows = np.isin(column.codes, places)  # type: ignore[arg-type]
                self.described[column.name] = _rows(int(np.count_nonzero(rows)))
            return
        if column.is_text and count - len(odd) >= MOSTLY_NUMBERS * count:
            if is_formatted(odd[0]):
                self.formatted[column.name] = odd[0]
            else:
                self.part_numbers[column.name] = odd
        else:
            self.crowded.append(column.name)
            self.most_levels[column.name] = most
            self.described[column.name] = f"{count:,} values"

    def sentences(self) -> list[str]:
        """One for each kind of problem, with what to do."""
        found = []
        if self.dates:
            found.append(
                f"dates or times in {quoted(self.dates)}: turn them into numbers (days since a date, hour of the day)"
            )
        if self.crowded:
            most = min(self.most_levels.values())
            or_declare = ", or give the column the dtype category (in a shell: --categories)"
            found.append(
                f"text with too many different values to be a category in {self._listed(self.crowded)}: if they are "
                f"categories, combine them into at most {most:,}{or_declare if most < MOST_DECLARED_LEVELS else ''}; "
                "free text needs a vectoriser, identifiers are best left out"
            )
        if self.part_numbers:
            self.described |= {name: repr(odd[0]) for name, odd in self.part_numbers.items()}
            found.append(
                f"numbers mixed with other text in {self._listed(list(self.part_numbers))}: make that text missing "
                "values, or give columns of codes the dtype category (in a shell: --categories)"
            )
        if self.blank:
            found.append(
                f"blank text in {self._listed(list(self.blank))}: make it missing values, or give the column the dtype "
                "category (in a shell: --categories)"
            )
        if self.formatted:
            self.described |= {name: repr(example) for name, example in self.formatted.items()}
            unclear = next((example for example in self.formatted.values() if THOUSANDS.fullmatch(example)), "")
            found.append(
                f"formatted numbers in {self._listed(list(self.formatted))}: write them as plain numbers, without "
                "signs of currency or percent and without separators of thousands"
                + (f" (the comma of {unclear!r} may be a decimal one)" if unclear else "")
                + "; if they are codes, give the column the dtype category or name it in categorical_features "
                "(in a shell: --categories)"
            )
        if self.others:
            found.append(f"values that are neither numbers nor text in {quoted(self.others)}")
        if self.infinite:
            found.append(
                f"infinite values in {quoted(self.infinite)}: replace them by a number, or by NaN and set missing="
                "'median', or leave out those rows"
            )
        return found

    @property
    def columns(self) -> list[str]:
        """All columns with a problem other than missing values."""
        text = [*self.crowded, *self.part_numbers, *self.blank, *self.formatted]
        return [*self.dates, *text, *self.others, *self.infinite]

    def raise_if_any(self, owner: str) -> None:
        """Raise an error that tells all problems, if there are any."""
        sentences, columns = self.sentences(), self.columns
        messages = list(sentences)
        if self.missing:
            self.described |= {name: _rows(n) for name, n in self.missing.items()}
            messages.append(
                f"missing values in {self._listed(list(self.missing))}: set missing='median' to fill them in, "
                "missing='category' to make them a category of their own, or leave out those rows"
            )
        if not messages:
            return
        message = f"{owner} cannot use the table as it is:\n" + "".join(f"- {sentence}.\n" for sentence in messages)
        message += self._replacement()
        if columns and len(columns) < MOST_COLUMNS_IN_CODE:
            message += f"To leave columns out: X.drop(columns={columns!r})"
        raise TableError(message.rstrip(), sentences, columns, dict(self.missing))

    def _replacement(self) -> str:
        """Code that makes missing values of text that stands for them; empty where there is none to tell."""
        given = self.part_numbers | self.blank
        texts = sorted({text for odd in given.values() for text in odd})
        if not texts or len(texts) > MOST_REPLACED or not self.frame:
            return ""
        names = list(given) if len(given) < MOST_COLUMNS_IN_CODE else []
        if self.frame == "polars":
            code = f"X = X.with_columns(pl.col({names or 'pl.String'}).replace({texts!r}, None))"
        else:
            target = f"X[{names!r}]" if names else "X"
            code = f"{target} = {target}.replace({texts!r}, np.nan)"
        return f"To make text missing values: {code}, with missing='median' or 'category'.\n"

    def _listed(self, names: Sequence[str]) -> str:
        shown = ", ".join(f"{name!r} ({self.described[name]})" for name in names[:NAMES_SHOWN])
        return shown + (f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else "")


def _is_placeholder(level: str) -> bool:
    return level.strip().lower() in PLACEHOLDERS


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"
