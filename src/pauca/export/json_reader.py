"""A value in a file, where it stands, and the questions one may ask of it; what is not as asked is refused."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from pauca.export.files import ModelFileError

LONGEST_SHOWN = 60

NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
"""JSON has no words for these; a file says ``{"float": "inf"}``."""


class JsonReader:
    """A value somewhere in a parsed file; ``where`` reads like ``models[3].coef``."""

    def __init__(self, value: Any, where: str = "") -> None:
        self.value = value
        self.where = where

    def refuse(self, what: str) -> NoReturn:
        """Fail with a sentence that says where."""
        raise ModelFileError(f"{self.where}: {what}" if self.where else what)

    def fields(self, names: Iterable[str], optional: Iterable[str] = ()) -> dict[str, JsonReader]:
        """The fields of an object, which must have all of ``names`` and no others but ``optional`` ones."""
        if not isinstance(self.value, dict):
            self._wanted("an object")
        wanted = list(names)
        for name in wanted:
            if name not in self.value:
                self.refuse(f"the field {name!r} is missing")
        for name in self.value:
            if name not in wanted and name not in optional:
                self.refuse(f"there is a field {_short(name)} that does not belong here")
        return {name: self._inside(name, value) for name, value in self.value.items()}

    def items(self, length: int | None = None) -> list[JsonReader]:
        """The items of a list, of a given length if one is asked for."""
        if not isinstance(self.value, list):
            self._wanted("a list")
        if length is not None and len(self.value) != length:
            self.refuse(f"a list of length {length} is wanted; this one has length {len(self.value)}")
        return [JsonReader(value, f"{self.where}[{i}]") for i, value in enumerate(self.value)]

    def text(self) -> str:
        """A string."""
        return self.value if isinstance(self.value, str) else self._wanted("a string")

    def texts(self, length: int | None = None) -> list[str]:
        """A list of strings."""
        return [item.text() for item in self.items(length)]

    def flag(self) -> bool:
        """True or false."""
        return self.value if isinstance(self.value, bool) else self._wanted("true or false")

    def integer(self, least: int, most: int) -> int:
        """A whole number from ``least`` to ``most``."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            self._wanted("a whole number")
        if not least <= self.value <= most:
            self._wanted(f"a whole number from {least} to {most}")
        return self.value

    def ascending(self, most: int) -> list[int]:
        """Whole numbers from 0 to ``most``, each larger than the one before."""
        numbers = [item.integer(0, most) for item in self.items()]
        if any(b <= a for a, b in itertools.pairwise(numbers)):
            self.refuse("the numbers must ascend, without repetition")
        return numbers

    def number(self) -> float:
        """A finite number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self._wanted("a number")
        try:
            number = float(self.value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self._wanted("a finite number")
        return number

    def numbers(self, length: int | None = None) -> list[float]:
        """Finite numbers, so many if a length is asked for."""
        return [item.number() for item in self.items(length)]

    def real(self) -> float:
        """A number that need not be finite."""
        return self.one_of(NOT_FINITE, tag="float") if isinstance(self.value, dict) else self.number()

    def one_of(self, table: Mapping[str, Any], tag: str | None = None) -> Any:
        """What a name stands for in a table; the name may be wrapped in an object of one field, the tag."""
        place = self if tag is None else self.fields([tag])[tag]
        name = place.text()
        if name not in table:
            place.refuse(f"{_short(name)} is not known here; known are {', '.join(map(repr, sorted(table)))}")
        return table[name]

    def _inside(self, name: str, value: Any) -> JsonReader:
        # Names of fields may come from strangers too, and go into messages.
        step = name if name.isidentifier() else f"[{_short(name)}]"
        return JsonReader(value, f"{self.where}.{step}".removeprefix("."))

    def _wanted(self, what: str) -> NoReturn:
        self.refuse(f"{what} is wanted; got {_short(self.value)}")


def written(number: float) -> Any:
    """A number as ``JsonReader.real`` reads it."""
    return number if math.isfinite(number) else {"float": repr(number)}


def _short(value: Any) -> str:
    # repr of an integer of thousands of digits is refused by Python itself, and of a deep list it is deep too.
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    if isinstance(value, int) and value.bit_length() > 200:
        return "a number of very many digits"
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
