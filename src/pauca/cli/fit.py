"""``pauca fit``: from a table to a model, its summary and its file."""

from __future__ import annotations

import json
import os
import time
from argparse import Namespace
from dataclasses import replace
from functools import partial
from typing import Any

from pauca.cli.messages import BadData, Voice
from pauca.cli.problem import Problem, make_problem
from pauca.cli.progress import Watcher
from pauca.cli.show import path_records, plain
from pauca.estimators.classifier import SparseClassifier
from pauca.estimators.regressor import SparseRegressor

INTERRUPTED = 130


def fit(options: Namespace, voice: Voice) -> int:
    """Read, fit, write, and print the summary."""
    for path in (options.out, options.report):
        check_writable(path)
    problem = make_problem(options, voice)
    model = _estimator(options, problem)
    watcher = Watcher(draws=not (options.quiet or options.json), time_limit=options.time_limit)
    model.set_params(callback=watcher)
    began = time.perf_counter()
    with voice.over_warnings(), watcher.watching():
        model.fit(problem.X, problem.target.y, problem.weights, groups=problem.rows)
    seconds = time.perf_counter() - began
    model.set_params(callback=None)
    model.raw_table_ = _remembered(problem, model)
    if watcher.interrupted:
        voice.note("interrupted: what was found until then is kept")
    _questioned(options, model, watcher.interrupted)
    written, failed = _written(options, model)
    if options.json:
        document = _document(problem, model, seconds)
        told = {"table": options.table, **document, "interrupted": watcher.interrupted, "written": written}
        print(json.dumps({**told, "notes": voice.notes}, allow_nan=False))
    else:
        print(model.summary())
    if failed is not None:  # the answer of a long fit is told all the same
        raise failed
    for path in written:
        voice.note(f"wrote {path}")
    return INTERRUPTED if watcher.interrupted else 0


def check_writable(path: str | None) -> None:
    """Refuse a file that could not be written, before any work."""
    if path is None:
        return
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        raise BadData(f"{path} is a folder and cannot be written to")
    if not os.path.isdir(folder):
        raise BadData(f"{path} cannot be written: there is no folder {os.path.dirname(path) or folder}")
    if not os.access(folder, os.W_OK):
        raise BadData(f"{path} cannot be written: its folder is read-only")


def _estimator(options: Namespace, problem: Problem) -> Any:
    settings: dict[str, Any] = {
        "method": options.method,
        "cv": options.cv,
        "scoring": options.scoring,
        "selection_rule": options.selection_rule,
        "criterion": options.criterion,
        "n_jobs": options.jobs,
        "ridge": options.ridge,
        "fit_intercept": not options.no_intercept,
        "time_limit": options.time_limit,
        **problem.settings,
    }
    if options.loss is not None:
        settings["loss"] = options.loss
    if problem.target.classifies:
        return SparseClassifier(options.k, class_weight="balanced" if options.balanced else None, **settings)
    if options.balanced:
        raise BadData(f"--balanced is for classes, and the target {problem.target.name!r} holds numbers")
    return SparseRegressor(options.k, **settings)


def _remembered(problem: Problem, model: Any) -> Any:
    """What predictions need to know of the raw table: of medians those of columns that some model uses."""
    raw = problem.raw
    if raw.medians is None:
        return raw
    used = {name for size in model.path_.sizes for name in model.path_.names(size)}
    return replace(raw, medians={name: value for name, value in raw.medians.items() if name in used})


def _questioned(options: Namespace, model: Any, interrupted: bool) -> None:
    """Find out how sure the choice is, for those who read the report."""
    if options.report is not None and options.stability and model.k_ and not interrupted:
        model.stability(n_resamples=options.stability, n_jobs=options.jobs)


def _written(options: Namespace, model: Any) -> tuple[list[str], Exception | None]:
    """Write the model and the report; which files were written, and what went wrong, if anything."""
    written: list[str] = []
    title = None if options.target is None else f"What foretells {options.target}"
    for path, write in ((options.out, model.save), (options.report, partial(model.report, title=title))):
        if path is None:
            continue
        try:
            write(path)
        except OSError as error:
            return written, BadData(f"{path} cannot be written: {error.strerror or error}")
        except (ValueError, ImportError, AttributeError) as error:
            return written, BadData(f"{path} was not written: {error}")
        written.append(path)
    return written, None


def _document(problem: Problem, model: Any, seconds: float) -> Any:
    """All that a program may want to know of a fitted model."""
    path, size = model.path_, model.k_
    fitted = path[size]
    names = path.names(size)
    coef = fitted.coef.tolist()
    outputs = path.output_names
    coefficients: Any
    intercept: Any
    if outputs is None:
        coefficients, intercept = dict(zip(names, coef, strict=True)), fitted.intercept
    else:
        coefficients = {out: dict(zip(names, row, strict=True)) for out, row in zip(outputs, coef, strict=True)}
        intercept = dict(zip(outputs, fitted.intercept, strict=True))
    return plain(
        {
            "target": problem.target.name,
            "task": "classification" if problem.target.classifies else "regression",
            "rows": problem.X.shape[0],
            "rows_left_out": problem.n_dropped,
            "columns": problem.X.shape[1],
            "size": size,
            "features": names,
            "groups": None if path.group_labels is None else [str(label) for label in path.groups(size)],
            "classes": model.classes_.tolist() if problem.target.classifies else None,
            "coefficients": coefficients,
            "intercept": intercept,
            "objective": fitted.objective,
            "explained": path.explained(size),
            "cost": None if path.prices is None else path.cost(size),
            "baselines": problem.raw.baselines,
            "choice": None if path.choice is None else path.choice.message,
            "stop": path.stop.value,
            "path": path_records(path),
            "seconds": {"reading": problem.read_seconds, "fitting": seconds},
        }
    )
