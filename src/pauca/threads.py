"""Threads of a fit: one for the BLAS, and for large products as many shares of the rows at a time as the user allows.

Threads of the BLAS that wait for the next small product spin, and take longer to start than it takes: fits of small
tables were three to nine times slower with two of them than with one. On a busy machine they wait for each other within
large products too: of 20,000 x 300 a fit took eight times the processor time. Shares of the rows wait for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Lock, get_ident
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

# A share of a product takes at least as long as reading so many numbers, some two milliseconds: ten times what it takes
# to start a thread.
LEAST_SHARE = 1 << 21

T = TypeVar("T")


class BlasThreads:
    """The thread counts of all BLAS libraries, which are the same for all threads of this process.

    The first thread that fits sets them, and sets them back when its fit ends; fits that run in other threads at the
    same time leave them alone.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._libraries: list[Any] | None = None
        self._of_user: list[int] = []
        self._owner: int | None = None
        self._depth = 0

    def single(self) -> _Single:
        """A context in which every product has one thread."""
        return _Single(self)

    def by_shares(self, work: Callable[[slice], T], length: int, numbers: float, most: int) -> list[T]:
        """What ``work`` makes of each of a few shares of so many rows or columns, ``most`` at the most.

        It takes as long as reading so many ``numbers``; unless these are many there is one share. Shares are worked on
        at the same time within ``single``, as the user allows; elsewhere the BLAS has threads of its own.
        """
        allowed = max(self._of_user, default=1) if self._owner == get_ident() else 1
        count = min(allowed, int(numbers / LEAST_SHARE), most)
        if count < 2:
            return [work(slice(0, length))]
        ends, errors = np.linspace(0, length, count + 1).astype(int).tolist(), np.geterr()
        first, *others = [slice(start, end) for start, end in pairwise(ends)]

        def elsewhere(share: slice) -> T:
            with np.errstate(**errors):  # other threads have those of no context
                return work(share)

        with ThreadPoolExecutor(count - 1) as pool:
            try:
                later = [pool.submit(elsewhere, share) for share in others]
            except RuntimeError:  # no thread starts any more: the main thread has ended, or the process has its most
                return [work(slice(0, length))]
            return [work(first), *(share.result() for share in later)]

    def _enter(self) -> bool:
        """Whether this thread sets the numbers."""
        with self._lock:
            if self._owner is None:
                if self._libraries is None:
                    # Finding the libraries takes longer than many a fit.
                    self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
                self._owner = get_ident()
                self._of_user = [library.get_num_threads() for library in self._libraries]
                self._set(single=True)
            elif self._owner != get_ident():
                return False
            self._depth += 1
            return True

    def _leave(self) -> None:
        with self._lock:
            self._depth -= 1
            if not self._depth:
                self._set(single=False)
                self._owner = None

    def _set(self, *, single: bool) -> None:
        assert self._libraries is not None
        for library, of_user in zip(self._libraries, self._of_user, strict=True):
            if of_user > 1:
                # Since threadpoolctl 3.8 a limit of OpenBLAS holds only where the thread that set the first one asks:
                # fits in other threads would have all threads of the BLAS, and take several times as long.
                set_number = getattr(library, "_real_set_num_threads", library.set_num_threads)
                set_number(1 if single else of_user)


class _Single:
    """What ``single`` returns; a generator would take as long as the rest of it."""

    def __init__(self, threads: BlasThreads) -> None:
        self._threads = threads

    def __enter__(self) -> None:
        self._entered = self._threads._enter()

    def __exit__(self, *_: object) -> None:
        if self._entered:
            self._threads._leave()


blas_threads = BlasThreads()
