"""What the options say of columns, turned from the names of the raw table into what estimators take."""

from __future__ import annotations

import csv
import fnmatch
import json
import os
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from typing import Any

from pauca.cli.messages import BadData, BadUsage, did_you_mean
from pauca.cli.tables import Part
from pauca.wording import quoted


def split_names(given: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """Names from options: separated by commas, unless all of it is one name."""
    names: list[str] = []
    for text in given or ():
        names += [text] if text in known else [name.strip() for name in text.split(",") if name.strip()]
    return list(dict.fromkeys(names))


class ColumnConstraints:
    """Groups, prices, bounds and forced columns for the columns of a model.

    ``labels`` says the group of every column of the model. A column of text with several columns of its own is a group,
    and a raw column that is in no other group is one by itself.
    """

    def __init__(self, options: Namespace, parts: list[Part], columns: Sequence[str], *, named: bool = True) -> None:
        self._options = options
        self._parts = parts
        self._columns = list(columns)
        self._named = named
        self._raw = list(dict.fromkeys(part.column for part in parts))
        given = self._given_groups()
        self.labels = [given.get(part.column, part.column) for part in parts]
        several = len(set(self.labels)) < len(parts)
        self._groups = bool(given) or several
        self._whole = self._groups and options.max_per_group is None
        if options.max_per_group is not None:
            self._check_limit(given)

    def settings(self) -> dict[str, Any]:
        """Parameters of an estimator."""
        options = self._options
        always, never = (split_names(wish, self._columns) for wish in (options.always, options.never))
        # Columns that are never in were not read; what is left of them are groups.
        never = [name for name in never if name in self._raw or name not in self._columns]
        return {
            "feature_groups": self.labels if self._groups else None,
            "max_per_group": options.max_per_group,
            "always": self._units(always, "--always") or None,
            "never": self._units(never, "--never") or None,
            "costs": self._costs(),
            "budget": options.budget,
            "bounds": self._bounds(),
        }

    def _given_groups(self) -> dict[str, str]:
        given = self._options.groups
        if given is None:
            return {}
        found = self._groups_from_file(given) if os.path.isfile(given) else self._groups_from_patterns(given)
        labels = set(found.values())
        for column in self._raw:
            if column not in found and column in labels:
                raise BadData(
                    f"--groups: a group is called {column!r}, as is a column that is not in it; rename the group"
                )
        return found

    def _groups_from_file(self, path: str) -> dict[str, str]:
        pairs = read_pairs(path)
        if pairs and pairs[0][0] not in self._columns:
            pairs = pairs[1:]  # a header
        return {
            self._known(column, path): str(group) for column, group in pairs if self._known(column, path) in self._raw
        }

    def _groups_from_patterns(self, text: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for item in text.split(","):
            name, _, pattern = item.strip().rpartition("=")
            matching = fnmatch.filter(self._raw, pattern)
            if not matching:
                raise BadData(f"--groups: {pattern!r} is neither a file nor a pattern that matches any column")
            twice = [column for column in matching if column in found]
            if twice:
                raise BadData(f"--groups: {quoted(twice)} is in {found[twice[0]]!r} and in {name or pattern!r}")
            found |= dict.fromkeys(matching, name or pattern)
        return found

    def _check_limit(self, given: dict[str, str]) -> None:
        if not given:
            raise BadUsage("--max-per-group needs --groups, which says the group of every column")
        whole = [column for column, count in Counter(part.column for part in self._parts).items() if count > 1]
        if whole:
            raise BadData(f"columns of text with more than two values cannot go with --max-per-group: {quoted(whole)}")

    def _units(self, names: list[str], option: str) -> list[Any]:
        units: list[Any] = []
        for name in names:
            if self._whole and name in self.labels:
                units.append(name)
            elif self._whole:
                units.append(self.labels[self._places(name, option)[0]])
            else:
                units += [self._key(place) for place in self._places(name, option)]
        return list(dict.fromkeys(units))

    def _places(self, name: str, option: str) -> list[int]:
        """Columns of the model that a raw column, or one of its values, stands for."""
        found = [place for place, part in enumerate(self._parts) if name in (part.column, part.name)]
        if not found:
            raise BadData(f"{option} names {name!r}, which is no column to choose from{did_you_mean(name, self._raw)}")
        return found

    def _key(self, place: int) -> Any:
        return self._parts[place].name if self._named else place

    def _known(self, column: str, path: str) -> str:
        if column not in self._columns:
            raise BadData(
                f"{path} names {column!r}, which is no column of the table{did_you_mean(column, self._columns)}"
            )
        return column

    def _costs(self) -> list[float] | None:
        path = self._options.costs
        if path is None:
            return None
        prices: dict[str, float] = {}
        for place, (column, price) in enumerate(read_pairs(path)):
            try:
                value = float(price)
            except (TypeError, ValueError):
                if place == 0:  # a header
                    continue
                raise BadData(f"{path}: the price of {column!r} is not a number: {price!r}") from None
            prices[self._known(column, path)] = value
        missing = [column for column in self._raw if column not in prices]
        if missing:
            raise BadData(f"{path} has no price for {quoted(missing)}; every column needs one, if only 0")
        # A column of text is paid for once, however many columns it makes.
        seen: set[str] = set()
        costs = []
        for part in self._parts:
            costs.append(0.0 if part.column in seen else prices[part.column])
            seen.add(part.column)
        return costs

    def _bounds(self) -> Any:
        given, nonnegative = self._options.bounds or [], self._options.nonnegative
        if not given:
            return (0, None) if nonnegative else None
        found: dict[Any, tuple[float | None, float | None]] = {}
        if nonnegative:
            found = {self._key(place): (0, None) for place in range(len(self._parts))}
        for name, (low, high) in given:
            for place in self._places(name, "--bounds"):
                found[self._key(place)] = (max(low or 0.0, 0.0) if nonnegative else low, high)
        return found


def read_pairs(path: str) -> list[tuple[str, Any]]:
    """Columns and what is said of each: a JSON object, or lines of CSV."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise BadData(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if text.lstrip().startswith("{"):
        try:
            return list(json.loads(text).items())
        except ValueError as error:
            raise BadData(f"{path} is not sound JSON: {error}") from None
    delimiter = next((mark for mark in ",;\t" if mark in text.partition("\n")[0]), ",")
    rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines(), delimiter=delimiter) if row]
    for number, row in enumerate(rows, 1):
        if len(row) != 2:
            raise BadData(f"{path}: line {number} has {len(row)} fields; a column and a value are wanted")
    return [(row[0], row[1]) for row in rows]
