"""``python -m benchmarks``: every figure the library promises, measured here and now."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from time import perf_counter

from threadpoolctl import threadpool_info

from benchmarks.imports import import_time
from benchmarks.memory import memory
from benchmarks.quality import correlated, optimum
from benchmarks.report import Figure, table, verdict
from benchmarks.speed import large_sparse, small, tall, wide

SECTIONS: dict[str, Callable[[bool], Iterator[Figure]]] = {
    "wide": wide,
    "tall": tall,
    "small": small,
    "sparse": large_sparse,
    "correlated": correlated,
    "optimum": optimum,
    "memory": memory,
    "import": import_time,
}
PACKAGES = ("pauca", "numpy", "scipy", "scikit-learn", "abess")


def main() -> None:
    options = _options()
    print("\n".join(_circumstances()))
    figures: list[Figure] = []
    for name in SECTIONS if options.only is None else [options.only]:
        figures += _run(name, options.quick)
    print(f"\n{verdict(figures)}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Every figure the library promises, measured."
    )
    parser.add_argument("--quick", action="store_true", help="fewer seeds and repetitions")
    parser.add_argument("--only", choices=SECTIONS, help="run one section")
    return parser.parse_args()


def _run(name: str, quick: bool) -> list[Figure]:
    section = SECTIONS[name]
    start = perf_counter()
    figures = list(section(quick))
    print(f"\n## {name}\n\n{section.__doc__}\n\n" + "\n".join(table(figures)))
    print(f"\n({perf_counter() - start:.0f} s)", flush=True)
    return figures


def _circumstances() -> Iterator[str]:
    """Say what the figures depend on besides the code."""
    yield "# Benchmarks of pauca"
    yield ""
    yield ", ".join(f"{package} {_version(package)}" for package in PACKAGES)
    for pool in threadpool_info():
        if pool["user_api"] == "blas":
            yield f"{pool['prefix']} {pool['version']}: {pool['num_threads']} threads"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


if __name__ == "__main__":
    main()
