"""The constraints given as options, translated from raw columns to the parameters of an estimator."""

from __future__ import annotations

import csv
import fnmatch
import json
import os
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from typing import Any

from pauca.cli.console import DataError, UsageError, did_you_mean
from pauca.cli.encoding import EncodedColumn, raw_columns
from pauca.wording import quoted


def split_names(values: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """Names from options: separated by commas, unless the whole value is one name."""
    names: list[str] = []
    for text in values or ():
        names += [text] if text in known else [name.strip() for name in text.split(",") if name.strip()]
    return list(dict.fromkeys(names))


class ConstraintOptions:
    """Feature groups, costs, bounds and forced columns for the encoded columns of a model.

    ``labels`` holds the group of every encoded column. The columns of one text column are a group, and a raw column
    that is in no other group is a group of its own. ``by_name`` says whether columns have names or only indices.
    """

    def __init__(
        self, options: Namespace, encoded: list[EncodedColumn], columns: Sequence[str], *, by_name: bool = True
    ) -> None:
        self._options = options
        self._encoded = encoded
        self._columns = list(columns)
        self._by_name = by_name
        self._raw = raw_columns(encoded)
        groups = self._feature_groups()
        self.labels = [groups.get(column.raw, column.raw) for column in encoded]
        self._has_groups = bool(groups) or len(set(self.labels)) < len(encoded)
        self._whole_groups = self._has_groups and options.max_per_group is None
        if options.max_per_group is not None:
            self._check_limit(groups)

    def parameters(self) -> dict[str, Any]:
        """Parameters of an estimator."""
        options = self._options
        always, never = (split_names(names, self._columns) for names in (options.always, options.never))
        # Excluded columns were not read; the remaining names are groups or values.
        never = [name for name in never if name in self._raw or name not in self._columns]
        return {
            "feature_groups": self.labels if self._has_groups else None,
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

    def _check_limit(self, groups: dict[str, str]) -> None:
        if not groups:
            raise UsageError("--max-per-group needs --feature-groups")
        texts = [raw for raw, number in Counter(column.raw for column in self._encoded).items() if number > 1]
        if texts:
            raise DataError(
                f"--max-per-group does not work with text columns of more than two values: {quoted(texts)}; --drop them"
            )

    def _units(self, names: list[str], option: str) -> list[Any]:
        """The groups or columns that names stand for."""
        units: list[Any] = []
        for name in names:
            if self._whole_groups:
                units.append(name if name in self.labels else self.labels[self._indices(name, option)[0]])
            else:
                units += [self._key(index) for index in self._indices(name, option)]
        return list(dict.fromkeys(units))

    def _indices(self, name: str, option: str) -> list[int]:
        """The encoded columns that a raw column, or one of its values, stands for."""
        found = [index for index, column in enumerate(self._encoded) if name in (column.raw, column.name)]
        if not found:
            raise DataError(f"{option}: {name!r} is not a candidate column{did_you_mean(name, self._raw)}")
        return found

    def _key(self, index: int) -> Any:
        return self._encoded[index].name if self._by_name else index

    def _check_columns(self, names: Sequence[str], path: str) -> None:
        for name in names:
            if name not in self._columns:
                raise DataError(f"{path}: {name!r} is not a column of the table{did_you_mean(name, self._columns)}")

    def _costs(self) -> list[float] | None:
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
        missing = [column for column in self._raw if column not in costs]
        if missing:
            raise DataError(f"{path} has no cost for {quoted(missing)}; give every column a cost, possibly 0")
        # A text column is paid for once, however many columns encode it.
        remaining = dict(costs)
        return [remaining.pop(column.raw, 0.0) for column in self._encoded]

    def _bounds(self) -> Any:
        given, nonnegative = self._options.bounds or [], self._options.nonnegative
        if not given:
            return (0, None) if nonnegative else None
        bounds: dict[Any, tuple[float | None, float | None]] = {}
        if nonnegative:
            bounds = {self._key(index): (0, None) for index in range(len(self._encoded))}
        for name, (low, high) in given:
            for index in self._indices(name, "--bounds"):
                bounds[self._key(index)] = (max(low or 0.0, 0.0) if nonnegative else low, high)
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
