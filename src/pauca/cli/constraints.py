"""The constraints given as options, translated from raw columns to the parameters of an estimator."""

from __future__ import annotations

import csv
import fnmatch
import json
import os
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from pauca.cli.console import DataError, UsageError, did_you_mean
from pauca.constraints.parsing import DEFAULT_COST
from pauca.wording import quoted


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
        pairs = read_pairs(path)
        if pairs and pairs[0][0] not in self._columns:
            pairs = pairs[1:]  # a header
        self._check_columns([column for column, _ in pairs], path)
        return {column: str(group) for column, group in pairs if column in self._raw}

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

    def _check_columns(self, names: Sequence[str], path: str) -> None:
        for name in names:
            if name not in self._columns:
                raise DataError(f"{path}: {name!r} is not a column of the table{did_you_mean(name, self._columns)}")

    def _costs(self) -> dict[Any, float] | None:
        path = self._options.costs
        if path is None:
            return None
        costs: dict[str, float] = {}
        for number, (column, cost) in enumerate(read_pairs(path)):
            try:
                costs[column] = float(cost)
            except (TypeError, ValueError):
                if number:  # not a header
                    raise DataError(f"{path}: the cost of {column!r} is not a number: {cost!r}") from None
        self._check_columns(list(costs), path)
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


def read_pairs(path: str) -> list[tuple[str, Any]]:
    """Pairs of a column and a value: a JSON object, or lines of CSV."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if text.lstrip().startswith("{"):
        try:
            return list(json.loads(text).items())
        except ValueError as error:
            raise DataError(f"{path} is not valid JSON: {error}") from None
    delimiter = next((mark for mark in ",;\t" if mark in text.partition("\n")[0]), ",")
    rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines(), delimiter=delimiter) if row]
    for number, row in enumerate(rows, 1):
        if len(row) != 2:
            raise DataError(f"{path}: line {number} has {len(row)} fields; expected two, a column and a value")
    return [(row[0], row[1]) for row in rows]
