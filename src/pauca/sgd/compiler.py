"""The one place that imports numba, when compiled code is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """The function as machine code, for others that are compiled."""
    return _compiled(function, kept=False)


def compiled_and_kept(function: Function) -> Function:
    """The function as machine code that is kept on disk between processes; other threads may run beside it.

    It is compiled anew when its own file has changed. While working on another file of this room, touch that one too.
    """
    return _compiled(function, kept=True)


def _compiled(function: Function, *, kept: bool) -> Function:
    try:
        from numba import njit
    except ImportError as error:
        raise ImportError('Learning from streams needs numba: pip install "pauca[compiled]"') from error
    machine_code: Any = njit(cache=kept, nogil=True, error_model="numpy")(function)
    return machine_code
