"""How many threads the BLAS takes: one for small products, as many as the user allows for large ones.

Threads that wait for the next small product spin, and take longer to start than it takes: fits of small tables were
three to nine times slower with two threads than with one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock, get_ident
from typing import Any

from threadpoolctl import ThreadpoolController

# Products that take less time than reading so many numbers, some ten milliseconds, have one thread: others that have
# done their share of a product go on turning for a while, and on a busy machine are waited for. With a fourth of this,
# searches of 1500 x 3000 took two to five times the processor time of one thread.
LARGE_PRODUCT = 1 << 24

_NOTHING = nullcontext()


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

    def single(self) -> AbstractContextManager[None]:
        """A context of small products: one thread."""
        return _Single(self)

    def many(self, numbers: float) -> AbstractContextManager[None]:
        """A product within ``single``, which takes as long as reading so many: on the user's threads if it is large."""
        small = numbers < LARGE_PRODUCT or self._owner != get_ident()
        return _NOTHING if small else self._of_many()

    @contextmanager
    def _of_many(self) -> Iterator[None]:
        self._set(single=False)
        try:
            yield
        finally:
            self._set(single=True)

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
