"""Passes over the rows of a table, with an eye on the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pauca.path import Stop, interrupted_once
from pauca.stream.kept import Rows
from pauca.stream.stream import Stream

# Between blocks of so many rows one looks at the clock.
BLOCK = 4096


@dataclass(frozen=True)
class StreamProgress:
    """What a callback is told while rows are learnt.

    Attributes
    ----------
    n_learnt : int
        Number of rows learnt so far, in all passes.
    n_rows : int
        Number of rows there are to learn in all passes.
    elapsed : float
        Seconds since the first.
    """

    n_learnt: int
    n_rows: int
    elapsed: float


def learn_in_passes(
    stream: Stream,
    rows: Rows,
    orders: Callable[[int], np.ndarray],
    time_limit: float | None,
    callback: Callable[[StreamProgress], bool | None] | None,
) -> Stop:
    """Learn all rows as often as planned, pass p in the order ``orders(p)``; what was learnt stays when that ends."""
    began, n_learnt = time.monotonic(), 0
    n_rows = stream.plan.passes * len(orders(0))
    try:
        for number in range(stream.plan.passes):
            order = orders(number)
            for start in range(0, len(order), BLOCK):
                block = order[start : start + BLOCK]
                learn = stream.repeat if number else stream.learn
                learn(rows, block)
                n_learnt += len(block)
                elapsed = time.monotonic() - began
                if callback is not None and callback(StreamProgress(n_learnt, n_rows, elapsed)) is True:
                    return Stop.CALLBACK
                if time_limit is not None and elapsed >= time_limit:
                    return Stop.TIME
            stream.settle()
    except KeyboardInterrupt:
        interrupted_once()
        return Stop.INTERRUPTED
    finally:
        stream.settle()
    return Stop.SIZE
