"""The constraints given as options, translated from raw columns to the parameters of an estimator."""

from __future__ import annotations

import csv
import fnmatch
import json
import math
import os
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pauca.cli.console import DataError, UsageError, did_you_mean
from pauca.constraints.parsing import DEFAULT_COST
from pauca.wording import closest_name, quoted


def split_names(values: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """Names from options: separated by commas, unless the whole value is one name."""
    names: list[str] = []
    for text in values or ():
        names += [text] if text in known else [name.strip() for name in text.split(",") if name.strip()]
    return list(dict.fromkeys(names))


class ConstraintOptions:
    """Feature groups, costs, bounds and forced columns for the candidate columns of a table.

    ``candidates`` are the columns there are to choose from, ``columns`` all columns of the table. ``by_name`` says
    whether columns have names or only indices.
    """

    def __init__(
        self, options: Namespace, candidates: Sequence[str], columns: Sequence[str], *, by_name: bool = True
    ) -> None:
        self._options = options
        self._columns = list(columns)
        self._by_name = by_name
        self._raw = list(candidates)
        self._groups = self._feature_groups()
        if options.max_per_group is not None and not self._groups:
            raise UsageError("--max-per-group needs --feature-groups")
        self._whole_groups = bool(self._groups) and options.max_per_group is None

    def parameters(self) -> dict[str, Any]:
        """Parameters of an estimator."""
        options = self._options
        always, never = (split_names(names, self._columns) for names in (options.always, options.never))
        # Excluded columns were not read; the remaining names are groups or values.
        never = [name for name in never if name in self._raw or name not in self._columns]
        return {
            "feature_groups": {self._key(name): label for name, label in self._groups.items()} or None,
            "max_per_group": options.max_per_group,
            "always": self._units(always, "--always") or None,
            "never": self._units(never, "--never") or None,
            "costs": self._costs(),
            "budget": options.budget,
            "bounds": self._bounds(),
        }

    def _feature_groups(self) -> dict[str, str]:
        """The group of every raw column that is in one."""
        text = self._options.feature_groups
        if text is None:
            return {}
        groups = self._groups_from_file(text) if os.path.isfile(text) else self._groups_from_patterns(text)
        labels = set(groups.values())
        for column in self._raw:
            if column not in groups and column in labels:
                raise DataError(
                    f"--feature-groups: group {column!r} has the name of a column that is not in it; rename the group"
                )
        return groups

    def _groups_from_file(self, path: str) -> dict[str, str]:
        groups: dict[str, str] = {}
        for pair in self._pairs(path):
            if isinstance(pair.value, bool) or not isinstance(pair.value, str | int | float) or pair.value == "":
                raise DataError(f"{pair.place}: the group of {pair.column!r} is not a name: {pair.value!r}")
            groups[pair.column] = str(pair.value)
        return {column: group for column, group in groups.items() if column in self._raw}

    def _pairs(self, path: str) -> list[Pair]:
        """The pairs of a file, each about another column of the table; a header is left out."""
        pairs = read_pairs(path)
        if pairs and self._is_header(pairs[0]):
            pairs = pairs[1:]
        if not pairs:
            raise DataError(f"{path} names no columns; expected lines of two fields, a column and a value")
        known: dict[str, Pair] = {}
        for pair in pairs:
            if pair.column not in self._columns:
                hint = did_you_mean(pair.column, self._columns)
                raise DataError(f"{pair.place}: {pair.column!r} is not a column of the table{hint}")
            if pair.column in known:
                values = f"{known[pair.column].value!r} and {pair.value!r}"
                raise DataError(f"{pair.place}: {pair.column!r} is there for the second time, with {values}")
            known[pair.column] = pair
        return pairs

    def _is_header(self, pair: Pair) -> bool:
        """Whether a first line is a header; a misspelt column is none, nor is a line with a number."""
        if pair.line is None or pair.column in self._columns or closest_name(pair.column, self._columns):
            return False
        return _number(pair.value) is None

    def _groups_from_patterns(self, text: str) -> dict[str, str]:
        groups: dict[str, str] = {}
        for item in text.split(","):
            name, _, pattern = item.strip().rpartition("=")
            matching = fnmatch.filter(self._raw, pattern)
            if not matching:
                raise DataError(f"--feature-groups: {pattern!r} is not a file, and no column matches it as a pattern")
            twice = [column for column in matching if column in groups]
            if twice:
                raise DataError(
                    f"--feature-groups: {quoted(twice)} is in two groups, {groups[twice[0]]!r} and {name or pattern!r}"
                )
            groups |= dict.fromkeys(matching, name or pattern)
        return groups

    def _units(self, names: list[str], option: str) -> list[Any]:
        """The groups or columns that names stand for; a value of a text column stands for the column."""
        if self._whole_groups:
            labels = set(self._groups.values())
            units = [
                name if name in labels else self._groups.get(self._candidate(name, option), name) for name in names
            ]
        else:
            units = [self._key(self._candidate(name, option)) for name in names]
        return list(dict.fromkeys(units))

    def _candidate(self, name: str, option: str) -> str:
        """A candidate column, or that of a value such as ``city=Lyon``."""
        found = name if name in self._raw else name.partition("=")[0]
        if found not in self._raw:
            raise DataError(f"{option}: {name!r} is not a candidate column{did_you_mean(name, self._raw)}")
        return found

    def _key(self, name: str) -> Any:
        return name if self._by_name else self._raw.index(name)

    def _costs(self) -> dict[Any, float] | None:
        path = self._options.costs
        if path is None:
            return None
        costs: dict[str, float] = {}
        for pair in self._pairs(path):
            cost = _number(pair.value)
            if cost is None:
                raise DataError(f"{pair.place}: the cost of {pair.column!r} is not a number: {pair.value!r}")
            costs[pair.column] = cost
        if self._whole_groups:
            return self._costs_of_groups(costs)
        return {self._key(column): cost for column, cost in costs.items() if column in self._raw}

    def _costs_of_groups(self, costs: dict[str, float]) -> dict[Any, float]:
        """What every group costs: the sum of its columns."""
        totals: dict[Any, float] = {}
        for column in self._raw:
            label = self._groups.get(column, column)
            totals[label] = totals.get(label, 0.0) + costs.get(column, DEFAULT_COST)
        return totals

    def _bounds(self) -> Any:
        given, nonnegative = self._options.bounds or [], self._options.nonnegative
        if not given:
            return (0, None) if nonnegative else None
        bounds: dict[Any, tuple[float | None, float | None]] = {}
        if nonnegative:
            bounds = {self._key(name): (0, None) for name in self._raw}
        for name, (low, high) in given:
            column = self._candidate(name, "--bounds")
            key = self._key(column) if column == name else name
            bounds[key] = (max(low or 0.0, 0.0) if nonnegative else low, high)
        return bounds


@dataclass(frozen=True)
class Pair:
    """A column and its value, and where they stand in a file; JSON has no lines."""

    path: str
    column: str
    value: Any
    line: int | None = None

    @property
    def place(self) -> str:
        """The file and the line, for errors."""
        return self.path if self.line is None else f"{self.path}, line {self.line}"


def read_pairs(path: str) -> list[Pair]:
    """Pairs of a column and a value: a JSON object, or lines of CSV."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if text.lstrip().startswith("{"):
        try:
            # As pairs: a dict would keep the last of several values of a column.
            pairs = json.loads(text, object_pairs_hook=list)
        except ValueError as error:
            raise DataError(f"{path} is not valid JSON: {error}") from None
        return [Pair(path, column, value) for column, value in pairs]
    delimiter = next((mark for mark in ",;\t" if mark in text.partition("\n")[0]), ",")
    reader = csv.reader(text.splitlines(), delimiter=delimiter)
    found = []
    for row in reader:
        if not row:
            continue
        if len(row) != 2:
            raise DataError(f"{path}: line {reader.line_num} has {len(row)} fields; expected two, a column and a value")
        found.append(Pair(path, row[0].strip(), row[1].strip(), reader.line_num))
    return found


def _number(value: Any) -> float | None:
    """A finite number, or one written as text; None for all else."""
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
