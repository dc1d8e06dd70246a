"""All reasons why a table cannot be used, reported together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

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
    part_numbers: dict[str, str] = field(default_factory=dict)
    formatted: dict[str, str] = field(default_factory=dict)
    infinite: list[str] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)
    described: dict[str, str] = field(default_factory=dict)
    most_levels: dict[str, int] = field(default_factory=dict)
    """How many levels a crowded column may have: text a few, at most half as many as rows, and declared ones more."""

    def unreadable(self, name: str, kind: str) -> None:
        """Note a column that is neither numbers nor text."""
        (self.dates if kind == "date" else self.others).append(name)

    def check_levels(self, column: RawColumn) -> None:
        """Note a column of text with too many levels to be a category, or with levels that are formatted numbers."""
        count = len(column.levels)
        if column.is_text and count > FEW_LEVELS:
            formatted = [str(level) for level in column.levels if is_formatted(level)]
            numbers = sum(bool(parsed_share([level])) or is_formatted(level) for level in column.levels)
            if formatted and parsed_share(column.levels) < MOSTLY_NUMBERS <= numbers / count:
                self.formatted[column.name] = formatted[0]
                return
        most = max(FEW_LEVELS, min(MOST_LEVELS, len(column) // 2)) if column.is_text else MOST_DECLARED_LEVELS
        if count <= most:
            return
        if column.is_text and parsed_share(column.levels) >= MOSTLY_NUMBERS:
            odd = next(level for level in column.levels if not parsed_share([level]))
            (self.formatted if is_formatted(odd) else self.part_numbers)[column.name] = str(odd)
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
        for name, odd in self.part_numbers.items():
            found.append(f"numbers mixed with text such as {odd!r} in {name!r}: make these missing values")
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
        return [*self.dates, *self.crowded, *self.part_numbers, *self.formatted, *self.others, *self.infinite]

    def raise_if_any(self, owner: str) -> None:
        """Raise an error that tells all problems, if there are any."""
        sentences, columns = self.sentences(), self.columns
        messages = list(sentences)
        if self.missing:
            self.described |= {name: f"{n:,} row{'' if n == 1 else 's'}" for name, n in self.missing.items()}
            messages.append(
                f"missing values in {self._listed(list(self.missing))}: set missing='median' to fill them in, "
                "missing='category' to make them a category of their own, or leave out those rows"
            )
        if not messages:
            return
        message = f"{owner} cannot use the table as it is:\n" + "".join(f"- {sentence}.\n" for sentence in messages)
        if columns:
            message += f"To leave columns out: X.drop(columns={columns!r})" if len(columns) < 20 else ""
        raise TableError(message.rstrip(), sentences, columns, dict(self.missing))

    def _listed(self, names: Sequence[str]) -> str:
        shown = ", ".join(f"{name!r} ({self.described[name]})" for name in names[:NAMES_SHOWN])
        return shown + (f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else "")
