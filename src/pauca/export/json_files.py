"""Safe files: atomic writes, and a reader of JSON that checks every value."""

from __future__ import annotations

import contextlib
import errno
import itertools
import math
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")

LONGEST_SHOWN = 60

NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
"""JSON has no literals for these; a file holds ``{"float": "inf"}``."""


class ModelFileError(ValueError):
    """A model cannot be written to a file, or a file is not a complete and valid model.

    The message says what is wrong, and where in the file: ``model.json: models[3].coef: ...``.
    """


def check_folder(path: str | os.PathLike[str]) -> None:
    """Raise an error before any work if a file could not be written, since its folder does not exist."""
    if os.path.exists(path) and not os.path.isfile(path):
        return  # a device or a pipe, which is written to and needs no folder
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        name = os.path.dirname(os.fspath(path)) or folder
        raise FileNotFoundError(f"{os.fspath(path)} cannot be written: there is no folder {name}")


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that readers find the old one or the complete new one, even if writing is interrupted.

    A link stays a link, and the file it points to is replaced. What is no regular file is never replaced: a device or
    a pipe gets the content, and anything else raises ``OSError``.
    """
    try:
        held = os.stat(path)
    except FileNotFoundError:
        if not os.fspath(path):  # no name at all, which `realpath` takes for the current folder
            raise
        held = None
    if held is not None and not stat.S_ISREG(held.st_mode):
        _write_through(path, content, held.st_mode)
    else:
        # What only its owner could read stays so.
        _write_beside(os.path.realpath(path), content, None if held is None else stat.S_IMODE(held.st_mode))


def _write_through(path: str | os.PathLike[str], content: bytes, mode: int) -> None:
    """Write to a device or a pipe, which cannot be replaced."""
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not (stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)):
        raise OSError(errno.EINVAL, "It is neither a file nor a device or pipe that can be written to", os.fspath(path))
    with open(os.open(path, os.O_WRONLY), "wb") as file:
        file.write(content)


def _write_beside(target: str, content: bytes, permissions: int | None) -> None:
    """Write to a file beside the target, and put it in the target's place."""
    folder = os.path.dirname(target)
    # Without the target's name, which may be as long as a name can be.
    temporary = os.path.join(folder, f".pauca.{secrets.token_hex(6)}.tmp")
    try:
        # Not tempfile: its files are readable by their owner only.
        with open(temporary, "xb") as file:
            if permissions is not None:
                os.chmod(temporary, permissions)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)
        if isinstance(error, OSError):  # about the requested name
            raise OSError(error.errno, error.strerror, target) from None
        raise
    with contextlib.suppress(OSError):  # the new name survives a power cut too, where folders can be opened
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class JsonReader:
    """A value of a parsed JSON file and its location, such as ``models[3].coef``; invalid values raise an error."""

    def __init__(self, value: Any, location: str = "") -> None:
        self.value = value
        self.location = location

    def fail(self, problem: str) -> NoReturn:
        """Raise an error that names the location."""
        raise ModelFileError(f"{self.location}: {problem}" if self.location else problem)

    def fields(self, names: Iterable[str], optional: Iterable[str] = ()) -> dict[str, JsonReader]:
        """The fields of an object, which must have all of ``names`` and no others but ``optional`` ones."""
        if not isinstance(self.value, dict):
            self._expected("an object")
        required = list(names)
        for name in required:
            if name not in self.value:
                self.fail(f"the field {name!r} is missing")
        for name in self.value:
            if name not in required and name not in optional:
                self.fail(f"unknown field {_short(name)}")
        return {name: self._field(name, value) for name, value in self.value.items()}

    def entries(self) -> dict[str, JsonReader]:
        """All fields of an object, whatever their names."""
        return self.fields(self.value if isinstance(self.value, dict) else ())

    def items(self, length: int | None = None) -> list[JsonReader]:
        """The items of a list, which must have the given length, if any."""
        if not isinstance(self.value, list):
            self._expected("a list")
        if length is not None and len(self.value) != length:
            self.fail(f"expected a list of length {length}, got length {len(self.value)}")
        return [JsonReader(value, f"{self.location}[{i}]") for i, value in enumerate(self.value)]

    def optional(self, read: Callable[[JsonReader], T]) -> T | None:
        """What ``read`` makes of the value, or None where the file has null."""
        return None if self.value is None else read(self)

    def string(self) -> str:
        """A string."""
        return self.value if isinstance(self.value, str) else self._expected("a string")

    def strings(self, length: int | None = None) -> list[str]:
        """A list of strings."""
        return [item.string() for item in self.items(length)]

    def flag(self) -> bool:
        """True or false."""
        return self.value if isinstance(self.value, bool) else self._expected("true or false")

    def integer(self, least: int, most: int) -> int:
        """An integer from ``least`` to ``most``."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            self._expected("an integer")
        if not least <= self.value <= most:
            self._expected(f"an integer from {least} to {most}")
        return self.value

    def increasing_integers(self, most: int) -> list[int]:
        """Integers from 0 to ``most``, each larger than the one before."""
        numbers = [item.integer(0, most) for item in self.items()]
        if any(b <= a for a, b in itertools.pairwise(numbers)):
            self.fail("the numbers must be strictly increasing")
        return numbers

    def finite(self) -> float:
        """A finite number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self._expected("a number")
        try:
            number = float(self.value)
        except OverflowError:
            number = math.inf
        return number if math.isfinite(number) else self._expected("a finite number")

    def finite_list(self, length: int | None = None) -> list[float]:
        """A list of finite numbers."""
        return [item.finite() for item in self.items(length)]

    def number(self) -> float:
        """A number, which may be infinite or NaN."""
        return self.lookup(NOT_FINITE, tag="float") if isinstance(self.value, dict) else self.finite()

    def lookup(self, table: Mapping[str, Any], tag: str | None = None) -> Any:
        """The entry of a table that a string names; with a tag, the string is the one field of an object."""
        reader = self if tag is None else self.fields([tag])[tag]
        name = reader.string()
        if name not in table:
            reader.fail(f"{_short(name)} is unknown; expected one of {', '.join(map(repr, sorted(table)))}")
        return table[name]

    def _field(self, name: str, value: Any) -> JsonReader:
        # Names of fields come from the file and go into messages.
        step = name if name.isidentifier() else f"[{_short(name)}]"
        return JsonReader(value, f"{self.location}.{step}".removeprefix("."))

    def _expected(self, what: str) -> NoReturn:
        self.fail(f"expected {what}, got {_short(self.value)}")


def encode_float(number: float) -> Any:
    """A number in the form that ``JsonReader.number`` reads."""
    return number if math.isfinite(number) else {"float": repr(number)}


def _short(value: Any) -> str:
    # Python refuses the repr of an integer of thousands of digits, and that of a deeply nested list recurses.
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    if isinstance(value, int) and value.bit_length() > 200:
        return "a number of very many digits"
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
