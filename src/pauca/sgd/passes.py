"""Passes over the rows of a table, with an eye on the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pauca.search.driver import interrupted_once
from pauca.search.stop import Stop
from pauca.sgd.reservoir import Rows
from pauca.sgd.stream import Stream

# Between blocks of so many rows one looks at the clock; of long tables so many times in a pass, for the targets of all
# rows are checked with every block.
BLOCK = 4096
LOOKS = 100


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
    try:
        stop = _learn(stream, rows, orders, time_limit, callback)
    except KeyboardInterrupt:
        if not stream.n_seen:
            raise
        interrupted_once()
        stop = Stop.INTERRUPTED
    stream.settle()
    return stop


def _learn(
    stream: Stream,
    rows: Rows,
    orders: Callable[[int], np.ndarray],
    time_limit: float | None,
    callback: Callable[[StreamProgress], bool | None] | None,
) -> Stop:
    began, n_learnt = time.monotonic(), 0
    for number in range(stream.plan.passes):
        order = orders(number)
        n_rows, size = stream.plan.passes * len(order), max(BLOCK, -(-len(order) // LOOKS))
        for start in range(0, len(order), size):
            block = order[start : start + size]
            learn = stream.repeat if number else stream.learn
            learn(rows, block)
            n_learnt += len(block)
            elapsed = time.monotonic() - began
            if callback is not None and callback(StreamProgress(n_learnt, n_rows, elapsed)) is True:
                return Stop.CALLBACK
            if time_limit is not None and elapsed >= time_limit:
                return Stop.TIME
        stream.settle()
    return Stop.SIZE
