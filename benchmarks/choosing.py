"""What choosing k by cross-validation costs, against one path to the largest size."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.memory import MEGABYTE, peak_above_X
from benchmarks.problems import Shape, autoregressive, bytes_of
from benchmarks.report import Figure
from benchmarks.timing import Contender, race
from pauca import SparseRegressor

SHAPE = Shape(2000, 2000, 30)
QUICK_SHAPE = Shape(400, 300, 10)


def choosing(quick: bool) -> Iterator[Figure]:
    """Five folds and all rows, sizes 1 to 30: at most seven times one path, and at most twice the memory of X."""
    shape = QUICK_SHAPE if quick else SHAPE
    X, y = problem = autoregressive(shape, rho=0.5, snr=5.0, seed=0)
    sizes = range(1, shape.k + 1)
    rounds = 2 if quick else 5
    times = race(
        {
            "one path": Contender(lambda: SparseRegressor(k=shape.k).fit(X, y), rounds),
            "chosen, one job": Contender(lambda: SparseRegressor(k=sizes).fit(X, y), rounds),
            "chosen, two jobs": Contender(lambda: SparseRegressor(k=sizes, n_jobs=2).fit(X, y), rounds),
        }
    )
    yield Figure(f"{shape}, one path", "best time", times["one path"].seconds, unit=" s", digits=3)
    for name in ("chosen, one job", "chosen, two jobs"):
        ratio = times[name].seconds / times["one path"].seconds
        yield Figure(f"{shape}, {name}", "times one path", ratio, 7)
    size = bytes_of(X) / MEGABYTE
    above = peak_above_X(problem, f"1-{shape.k}", "exchange") / MEGABYTE
    yield Figure(f"{shape}, chosen, two jobs", "peak above X", above, None if quick else size, unit=" MB", digits=0)
