"""Whether kernels compiled by Numba are used where NumPy gives the same answer: as soon as loading them pays.

Numba takes half a second to import, and kernels up to half a minute to compile on their first use on a machine. So
the time that they would have saved is estimated, from the sizes of what NumPy has computed instead: once it is as long
as they take to load, they are loaded, and compiled once it is as long as that takes. All later fits of the process use
them. The rule reads no clock: without a time limit and with one job, the same fits in the same order go over to them at
the same point, unless they have been compiled since.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

from pauca.clock import interrupts_held, seconds_left

VARIABLE = "PAUCA_KERNELS"
"""The environment variable that may hold one of these instead of "auto"."""
MODES = ("auto", "always", "never")

# What loading and compiling take, in seconds.
SECONDS_TO_LOAD = 0.7
SECONDS_TO_COMPILE = 25.0

# About what kernels save of a call, and of each number that losses are found for in it, in seconds. They decide when
# kernels are loaded, and no answer. For nine fits (classes, counts, words, ordered classes; single and cross-validated,
# 569 x 30 to 20,000 x 60) they add up to one to four times what kernels saved: a process that fits on has them early.
SAVED_BY_CALL = 1.5e-4
SAVED_BY_NUMBER = 2e-8

# A time limit must leave so many times as long: what loading takes of it is lost to the search, which has two thirds.
LEFT_OF_LIMIT = 3.0


class _Use:
    """What all rooms share: how kernels are to be used, and what they would have saved so far."""

    def __init__(self) -> None:
        self.mode = "auto"
        self.missed = 0.0
        self.installed: bool | None = None

    def pays(self, seconds: float) -> bool:
        """Whether what takes so long has been missed for as long, and there is time for it."""
        if self.mode == "never":
            return False
        return self.mode == "always" or (self.missed >= seconds and seconds_left() > LEFT_OF_LIMIT * seconds)


_USE = _Use()


def set_mode(mode: str) -> None:
    """Use kernels as soon as it pays ("auto"), from the first fit on ("always"), or not at all ("never")."""
    if mode not in MODES:
        raise ValueError(f"{VARIABLE} must be one of {', '.join(map(repr, MODES))}; got {mode!r}.")
    _USE.mode = mode


@contextmanager
def kernels_used(mode: str) -> Iterator[None]:
    """A context in which kernels are used so."""
    before = _USE.mode
    set_mode(mode)
    try:
        yield
    finally:
        _USE.mode = before


class Kernels:
    """The kernels of a module, imported by its ``name``; ``longest`` is that of the one that takes longest to compile.

    Where kernels are compiled for several kinds of data, ``kind`` is the name of one.
    """

    def __init__(self, name: str, longest: str, kind: str = "") -> None:
        self._name = name
        self._longest = longest
        self._kind = kind
        self._imported: ModuleType | None = None
        self._ready: ModuleType | None = None

    def instead_of(self, numbers: int, calls: int = 1) -> ModuleType | None:
        """The module, where its kernels are to be used now; otherwise what NumPy computes instead is counted.

        That is so many ``numbers`` in so many ``calls``.
        """
        found = self.module
        if found is None:
            _USE.missed += SAVED_BY_CALL * calls + SAVED_BY_NUMBER * numbers
        return found

    @property
    def module(self) -> ModuleType | None:
        """The module, where its kernels are to be used now."""
        if self._ready is None and _USE.pays(SECONDS_TO_LOAD):
            self._prepare()
        return None if _USE.mode == "never" else self._ready

    def _prepare(self) -> None:
        if _USE.installed is None:
            _USE.installed = find_spec("numba") is not None
        if not _USE.installed:
            return
        try:
            if self._imported is None:
                with interrupts_held():
                    self._imported = import_module(self._name)
            known = was_compiled(getattr(self._imported, self._longest), self._kind)
        except Exception:  # Numba does not suit this NumPy, its cache cannot be used, or it is told to compile nothing
            _USE.installed = False
            return
        if known or _USE.pays(SECONDS_TO_COMPILE):
            self._ready = self._imported


def was_compiled(kernel: Any, kind: str = "") -> bool:
    """Whether a kernel was compiled before on this machine, from the file as it is and by this release of Numba."""
    read_index = getattr(getattr(kernel._cache, "_cache_file", None), "_load_index", None)
    return read_index is not None and any(kind in str(signature) for signature in read_index())


def plain(array: np.ndarray) -> np.ndarray:
    """An array as kernels are compiled for: of other kinds they would be compiled once more."""
    flags = array.flags
    if flags.c_contiguous and flags.writeable and array.dtype == np.float64:
        return array
    return np.array(array, dtype=np.float64, order="C")


set_mode(os.environ.get(VARIABLE, "auto"))
