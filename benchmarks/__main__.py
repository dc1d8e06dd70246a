"""``python -m benchmarks``: every figure in the documentation, measured on this machine."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from inspect import cleandoc
from pathlib import Path
from time import perf_counter

from threadpoolctl import threadpool_info, threadpool_limits  # type: ignore[import-untyped]

from benchmarks.ball import ball
from benchmarks.choosing import choosing
from benchmarks.digits import digits
from benchmarks.exact_rivals import proof_rivals
from benchmarks.graphs import graphs
from benchmarks.imports import import_time
from benchmarks.logistic import correlated_logistic, logistic
from benchmarks.memory import memory
from benchmarks.piecewise import lp
from benchmarks.prediction import prediction, prediction_classes
from benchmarks.prediction_real import prediction_real
from benchmarks.prediction_text import prediction_text
from benchmarks.proofs import proofs, real_proofs
from benchmarks.quality import correlated, optimum
from benchmarks.real import real
from benchmarks.report import Figure, table, verdict
from benchmarks.responses import points, responses
from benchmarks.results import compare, keep
from benchmarks.sampling import sampling
from benchmarks.scale import scale
from benchmarks.sensors import sensors
from benchmarks.sequences import crf
from benchmarks.speed import large_sparse, small, tall, wide
from benchmarks.stream import stream
from benchmarks.synthetic import synthetic
from benchmarks.table4 import table4
from benchmarks.two_stage import two_stage
from pauca import PaucaWarning

SECTIONS: dict[str, Callable[[bool], Iterator[Figure]]] = {
    "wide": wide,
    "tall": tall,
    "small": small,
    "sparse": large_sparse,
    "correlated": correlated,
    "optimum": optimum,
    "proofs": proofs,
    "proof-rivals": proof_rivals,
    "logistic": logistic,
    "correlated-logistic": correlated_logistic,
    "synthetic": synthetic,
    "lp": lp,
    "digits": digits,
    "ball": ball,
    "choosing": choosing,
    "prediction": prediction,
    "prediction-classes": prediction_classes,
    "graphs": graphs,
    "sampling": sampling,
    "crf": crf,
    "responses": responses,
    "memory": memory,
    "scale": scale,
    "import": import_time,
}
ON_REAL_DATA: dict[str, Callable[[bool, Path], Iterator[Figure]]] = {
    "real": real,
    "table4": table4,
    "prediction-real": prediction_real,
    "prediction-text": prediction_text,
    "stream": stream,
    "two-stage": two_stage,
    "sensors": sensors,
    "real-proofs": real_proofs,
    "points": points,
}
ALL = (*SECTIONS, *ON_REAL_DATA)
PACKAGES = ("pauca", "numpy", "scipy", "scikit-learn", "numba", "abess", "celer", "python-crfsuite")


def main() -> None:
    options = _options()
    if options.compare is not None:
        print("\n".join(compare(*options.compare)))
        return
    # Columns that are constant in real data are no news here.
    warnings.simplefilter("ignore", PaucaWarning)
    with threadpool_limits(options.threads, user_api="blas"):
        print("\n".join(_circumstances()))
        measured: dict[str, list[Figure]] = {}
        for name in options.sections or ALL:
            if name in ON_REAL_DATA and options.data is None:
                print(f"\n## {name}\n\nSkipped: this needs real data; give their folder by --data.", flush=True)
            else:
                measured[name] = _run(name, options.quick, options.data)
        print(f"\n{verdict(figure for figures in measured.values() for figure in figures)}")
        if (options.keep or not options.sections) and measured:
            file = keep(measured, options.quick, {package: _version(package) for package in PACKAGES})
            print(f"Kept as {file.name} in benchmarks/results.")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure every figure in the documentation."
    )
    parser.add_argument("--quick", action="store_true", help="fewer seeds and repetitions, some problems smaller")
    parser.add_argument("sections", nargs="*", metavar="section", help=f"everything by default, or {', '.join(ALL)}")
    parser.add_argument("--only", action="append", default=[], metavar="section", help="the same as naming it")
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="folder with libsvm/, risk/, small/, highdim/, text/ and sequence/"
    )
    parser.add_argument("--threads", type=int, metavar="N", help="threads of the BLAS; by default as many as it takes")
    parser.add_argument(
        "--keep",
        action="store_true",
        help="write the figures of some sections to a file in benchmarks/results, as is always done with those of all",
    )
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("OLD", "NEW"), help="print two kept files as ratios")
    options = parser.parse_args()
    options.sections += options.only
    if unknown := set(options.sections) - set(ALL):
        parser.error(f"no such section: {', '.join(sorted(unknown))}; there are {', '.join(ALL)}")
    return options


def _run(name: str, quick: bool, data: Path) -> list[Figure]:
    start = perf_counter()
    if name in SECTIONS:
        about, figures = SECTIONS[name].__doc__, list(SECTIONS[name](quick))
    else:
        about, figures = ON_REAL_DATA[name].__doc__, list(ON_REAL_DATA[name](quick, data))
    print(f"\n## {name}\n\n{cleandoc(about or '')}\n\n" + "\n".join(table(figures)))
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
