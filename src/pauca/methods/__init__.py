"""The algorithms, one to a file: options that are frozen and a generator of moves."""

from __future__ import annotations

from pauca.methods.backward import Backward
from pauca.methods.exchange import Exchange
from pauca.methods.foba import FoBa
from pauca.methods.forward import Forward
from pauca.search.driver import Method

__all__ = ["Backward", "Exchange", "FoBa", "Forward", "resolve"]

BY_NAME = {"backward": Backward, "exchange": Exchange, "foba": FoBa, "forward": Forward}


def resolve(method: str | Method) -> Method:
    """A method from its name or from an object with its options.

    Examples
    --------
    >>> resolve("foba").nu
    0.5
    """
    if isinstance(method, str) and method in BY_NAME:
        return BY_NAME[method]()
    if not isinstance(method, str | type) and hasattr(method, "moves"):
        return method
    names = ", ".join(repr(name) for name in sorted(BY_NAME))
    raise ValueError(f"method must be one of {names} or an object from pauca.methods such as FoBa(); got {method!r}.")
