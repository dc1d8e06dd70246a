"""The one place that imports numba, when compiled code is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """The function as machine code, kept on disk between processes; other threads may run beside it."""
    try:
        from numba import njit
    except ImportError as error:
        raise ImportError('Learning from streams needs numba: pip install "pauca[compiled]"') from error
    machine_code: Any = njit(cache=True, nogil=True, error_model="numpy")(function)
    return machine_code
