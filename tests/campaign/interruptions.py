"""Processes that are killed while they write, and signals at random times while they fit."""

from __future__ import annotations

import os
import signal
import tempfile
import time
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
from cases import FAMILIES, draw_case
from verdicts import JUDGES, Verdict, _judge_linear

import pauca
from fits import fit
from pauca.runs import run as runs

# These have no estimator with a path.
NOT_INTERRUPTED = ("select", "sparsify", "TableEncoder")

WRITES = ("save", "report", "predictions", "points")


@cache
def models():
    """Two models whose files differ, and their tables."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    y = X[:, 1] - X[:, 3] + rng.standard_normal(60)
    return [pauca.SparseClassifier(k=k, ridge=0.1).fit(X, y > 0) for k in (1, 4)]


def _write(kind, model, path):
    if kind == "save":
        model.save(path)
    elif kind == "report":
        model.report(path)
    elif kind == "points":
        model.to_points(cv=None).save_page(path)
    else:
        from pauca.export.json_files import write_atomically

        write_atomically(path, b"prediction\n" + b"1.0\n" * (20_000 * model.k_) + b"end\n")


def _whole(kind, path):
    """Whether a file is complete."""
    with open(path, "rb") as file:
        content = file.read()
    if kind == "save":
        return pauca.load(path).k_ in (1, 4)
    if kind == "predictions":
        return content.endswith(b"end\n")
    return content.rstrip().endswith(b"</html>")


def kill(seed):
    """Kill a process that writes again and again; the file is then one or the other, and whole."""
    rng = np.random.default_rng([8, seed])
    kind, finds = WRITES[int(rng.integers(len(WRITES)))], []
    both = models()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        _write(kind, both[0], path)
        child = os.fork()
        if child == 0:
            try:
                while True:
                    for model in both:
                        _write(kind, model, path)
            finally:
                os._exit(1)
        time.sleep(float(rng.uniform(0.0, 0.05)))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        try:
            if not _whole(kind, path):
                finds.append(("half-written", kind))
        except Exception as error:
            finds.append(("lost", f"{kind}: {type(error).__name__}: {error}"[:200]))
    return "killed", finds


def interrupt(seed):
    """Interrupt a fit at a random time: it returns a model that holds together, or leaves the estimator as it was."""
    rng = np.random.default_rng([9, seed])
    case = draw_case(int(rng.integers(10**9)))
    while case.family in NOT_INTERRUPTED or case.form not in ("array", "csr", "frame") or case.weights is not None:
        case = draw_case(int(rng.integers(10**9)))
    case = replace(case, parameters={k: v for k, v in case.parameters.items() if k != "time_limit"}, extra={})
    assert case.family in FAMILIES
    verdict, runs._interrupts._last = Verdict("finished"), float("-inf")
    seconds = _seconds_of(case)
    if seconds is None:
        return "refused", []
    estimator = case.estimator()
    outcome = _interrupted_fit(case, estimator, float(rng.uniform(0.0, 1.0)) * seconds + 1e-5)
    if outcome[0] == "raised":
        if [name for name in vars(estimator) if name.endswith("_")]:
            verdict.found("inconsistent", f"attributes after an interrupt: {sorted(vars(estimator))}"[:200])
        return "raised", verdict.finds
    if outcome[0] == "error":
        verdict.found("error", outcome[1])
        return "error", verdict.finds
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        JUDGES.get(case.family, _judge_linear)(replace(case, seed=1), estimator, verdict)
        for model in estimator.path_:
            estimator.at(model.size)
        early = estimator.stop_ == "interrupted" if hasattr(estimator, "stop_") else False
    if outcome[1] > 0.5:
        verdict.found("late", f"{outcome[1]:.2f} s of processor time after the signal")
    return ("kept" if early else "finished"), [(what, f"{text} | {case.text()}") for what, text in verdict.finds]


def _seconds_of(case):
    """How long the fit takes by itself; None where it is refused, or takes too long."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fit(case, _table(case))
        except (ValueError, TypeError):
            return None
    seconds = time.perf_counter() - began
    return seconds if seconds < 5 else None


def _table(case):
    return None if case.family == "SparseTagger" else case.table()


def _interrupted_fit(case, estimator, after):
    """Fit with an interrupt after so many seconds: what came of it, and the processor time from the signal on."""
    signalled = [0.0]

    def raise_interrupt(*_):
        signalled[0] = time.process_time()
        raise KeyboardInterrupt

    # The case makes its own estimator: hand this one out instead.
    table = _table(case)
    held = _Holding(case, estimator)
    before = signal.signal(signal.SIGALRM, raise_interrupt)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            signal.setitimer(signal.ITIMER_REAL, after)
            fit(held, table)
            signal.setitimer(signal.ITIMER_REAL, 0)
        late = time.process_time() - signalled[0] if signalled[0] else 0.0
        return "returned", late
    except KeyboardInterrupt:
        # It may have come after the fit had returned, which is no find.
        return ("returned", 0.0) if hasattr(estimator, "path_") else ("raised", "")
    except Exception as error:
        return "error", f"{type(error).__name__}: {error} | {case.text()}"[:300]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class _Holding:
    """A case whose estimator is given."""

    def __init__(self, case, estimator):
        self._case, self._estimator = case, estimator

    def __getattr__(self, name):
        return getattr(self._case, name)

    def estimator(self):
        return self._estimator
