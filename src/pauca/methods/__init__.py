"""The search methods, one to a file: a frozen dataclass of options with a generator of moves."""

from __future__ import annotations

from functools import cache

from pauca.methods.backward import Backward
from pauca.methods.exact import Exact
from pauca.methods.exchange import Exchange
from pauca.methods.foba import FoBa
from pauca.methods.forward import Forward
from pauca.methods.replacement import Replacement
from pauca.runs.run import Method

__all__ = ["Backward", "Exact", "Exchange", "FoBa", "Forward", "Replacement", "resolve"]

METHODS = {
    "backward": Backward,
    "exact": Exact,
    "exchange": Exchange,
    "foba": FoBa,
    "forward": Forward,
    "replacement": Replacement,
}

# Forward selection as textbooks have it; "forward" is the rule of the papers.
STEPWISE = "stepwise"


@cache
def _by_name(name: str) -> Method:
    """The method with its defaults, which are checked once."""
    return METHODS[name]()


def resolve(method: str | Method) -> Method:
    """The method of a name; a method object is returned unchanged.

    Examples
    --------
    >>> resolve("foba").nu
    0.5
    """
    if method == STEPWISE:
        return Forward(rule="refit")
    if isinstance(method, str) and method in METHODS:
        return _by_name(method)
    if not isinstance(method, str | type) and hasattr(method, "moves"):
        return method
    names = ", ".join(repr(name) for name in sorted([*METHODS, STEPWISE]))
    raise ValueError(f"method must be one of {names} or an object from pauca.methods such as FoBa(); got {method!r}.")
