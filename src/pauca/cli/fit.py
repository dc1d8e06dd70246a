"""``pauca fit``: from a table to a model, its summary and its files."""

from __future__ import annotations

import json
import time
from argparse import Namespace
from functools import partial
from typing import Any

import numpy as np

from pauca.cli.console import INTERRUPTED, Console, DataError, FitProgress, UsageError
from pauca.cli.fit_arguments import Problem, make_problem, table_errors
from pauca.cli.options import N_HALVES
from pauca.cli.show import check_page, check_writable, plain
from pauca.estimators.classifier import SparseClassifier, doubted_classes
from pauca.estimators.regressor import SparseRegressor
from pauca.ordinal import SparseOrdinalClassifier
from pauca.results.instructions import in_shell, parameters_as_options
from pauca.survival import SparseCox
from pauca.wording import NAMES_SHOWN


def fit(options: Namespace, console: Console) -> int:
    """Read, fit, write, and print the summary."""
    check_writable(options.out)
    check_page(options.report, "--report")
    check_page(options.points, "--points")
    progress = FitProgress(visible=not (options.quiet or options.json), time_limit=options.time_limit)
    with progress.showing("reading the table"):
        problem = make_problem(options, console)
    model = _estimator(options, problem)
    _doubt_classes(options, problem, console)
    model.set_params(callback=progress)
    started = time.perf_counter()
    showing = progress.showing("fitting")
    with console.warnings_as_notes(), progress.handling_interrupts(), table_errors(options.table), showing:
        model.fit(problem.X, problem.target.y, **_of_rows(options, problem))
    seconds = {"reading": problem.read_seconds, "fitting": time.perf_counter() - started}
    model.set_params(callback=None)
    if problem.first_index is not None:
        model.first_index_ = problem.first_index
    if options.size is not None:
        with progress.showing("fitting at other ridges"):
            model = _of_size(model, options.size)
    if problem.n_dropped:
        model.n_rows_dropped_ = problem.n_dropped
    _note_encoding(model, console)
    if progress.interrupted:
        console.note("interrupted; the models found so far are kept")
    elif options.report is not None and options.stability != 0 and model.k_:
        with progress.showing("repeating the search on halves of the rows"):
            model.stability(n_resamples=options.stability or N_HALVES, n_jobs=options.n_jobs)
    if options.certify is not None and not progress.interrupted:
        with progress.showing("proving the models to be best"):
            model.certify(time_limit=options.certify)
    sheet = None
    if options.points is not None:
        with progress.showing("finding whole points"):
            sheet = model.to_points(options.max_points, cuts="auto" if options.cuts else None)
    with progress.showing("writing files"):
        written, failure = _write_files(options, model, sheet)
    if options.json:
        interrupted = progress.interrupted or isinstance(failure, KeyboardInterrupt)
        status = {"interrupted": interrupted, "written": written, "notes": console.notes}
        record = {"table": options.table, **_record(options, problem, model), "seconds": seconds, **status}
        print(json.dumps(plain(record), allow_nan=False))
    else:
        _print_summary(options, model, sheet)
    if failure is not None:  # only now, so that the result of a long fit is printed
        raise failure
    for path in written:
        console.note(f"wrote {path}")
    return INTERRUPTED if progress.interrupted else 0


def _of_size(model: Any, size: int) -> Any:
    """The model of another size than the chosen one, at its best ridges where ridges were compared."""
    choice = model.path_.choice
    scored = choice is not None and choice.surface is not None and size in choice.surface.sizes
    try:
        return model.at(size, ridge="best" if scored else None)
    except KeyError as error:
        raise DataError(f"--size: {error.args[0]}") from None


def _print_summary(options: Namespace, model: Any, sheet: Any) -> None:
    """The model in words, what is proved of all sizes if requested, and its sheet of points."""
    how, certificate = in_shell(options.out, options.report, nested=options.nested), model.path_.certificate
    print(model.summary(how))
    if options.certify is not None and certificate is not None and certificate.has_bounds:
        print(certificate.overview_for(how))
    if sheet is not None:
        print(f"\n{sheet.summary()}")


def _of_rows(options: Namespace, problem: Problem) -> dict[str, Any]:
    """Further arguments of ``fit``, if the task takes them."""
    task, given = problem.target.task, problem.of_rows
    takes = {"exposure": {"regression"}, "offset": {"regression", "classification"}}
    for name, tasks in takes.items():
        if name in given and task not in tasks:
            raise DataError(
                f"--{name} is for {' and '.join(sorted(tasks))}, but the target {problem.target.name!r} makes this "
                f"{task}"
            )
    return given | {"time": options.time} if task == "survival" else given


def _estimator(options: Namespace, problem: Problem) -> Any:
    """The estimator of the task, with the options that it takes."""
    task = problem.target.task
    _check_options(options, problem)
    parameters: dict[str, Any] = {
        "method": options.method,
        "cv": options.cv,
        "scoring": options.scoring,
        "selection_rule": options.selection_rule,
        "criterion": options.criterion,
        "n_jobs": options.n_jobs,
        "ridge": options.ridge,
        "time_limit": options.time_limit,
        **problem.parameters,
    }
    if task == "survival":
        return SparseCox(options.k, ties=options.ties or "efron", **parameters)
    if task == "ordinal":
        return SparseOrdinalClassifier(options.k, order=_order(options, problem.target.y), **parameters)
    parameters["fit_intercept"] = not options.no_intercept
    if options.loss is not None:
        parameters["loss"] = options.loss
    if task == "classification":
        return SparseClassifier(options.k, class_weight="balanced" if options.balanced else None, **parameters)
    return SparseRegressor(options.k, **parameters)


def _note_encoding(model: Any, console: Console) -> None:
    """Note the baselines of categories, and what replaces missing values."""
    encoder = getattr(model, "encoder_", None)
    if encoder is None:
        return
    columns = encoder.encoding_.columns
    listed = [
        f"{one.name} ({str(one.baseline)!r})" for one in columns if one.levels is not None and len(one.levels) > 1
    ]
    if listed:
        more = f" and {len(listed) - NAMES_SHOWN} more" if len(listed) > NAMES_SHOWN else ""
        console.note(f"text columns are encoded as categories (baselines): {', '.join(listed[:NAMES_SHOWN])}{more}")


def _check_options(options: Namespace, problem: Problem) -> None:
    """Raise an error for options that the task does not have, before anything is fitted."""
    task, name = problem.target.task, problem.target.name
    if options.balanced and task != "classification":
        what = {"regression": "numbers", "ordinal": "classes in an order", "survival": "times"}[task]
        raise DataError(f"--balanced is for classes, but the target {name!r} holds {what}")
    if task in {"ordinal", "survival"}:
        for option, given in (("--loss", options.loss is not None), ("--no-intercept", options.no_intercept)):
            if given:
                raise UsageError(f"{option} does not go with --task {task}, which has a loss of its own")
    if options.nested and options.report is None:
        raise UsageError("--nested is about the figures of a report: give --report too")
    if options.stability and options.report is None:
        raise UsageError("--stability is for the report: give --report too")
    if options.order is not None and task != "ordinal":
        raise UsageError(f"--order is for --task ordinal, not for {task}")
    if options.points is not None and (task != "classification" or len(np.unique(problem.target.y)) != 2):
        raise DataError(f"--points is for two classes; the target {name!r} makes this {task}")


def _doubt_classes(options: Namespace, problem: Problem, console: Console) -> None:
    """Refuse classes that look like amounts, as a fit would take long; who gives the task may mean it."""
    target = problem.target
    values = np.unique(target.y) if target.task == "classification" else np.array([])
    doubt = doubted_classes(values, problem.X.shape[0])
    if doubt and options.task is None:
        raise DataError(
            f"the target {target.name!r} holds {len(values)} different numbers, and --loss {options.loss} takes each "
            "for a class: leave out --loss to predict amounts, or add --task classification if they are classes"
        )
    if doubt:
        console.note(parameters_as_options(doubt))


def _order(options: Namespace, y: np.ndarray) -> list[Any] | None:
    """The classes of --order, as the table has them."""
    if options.order is None:
        return None
    known = {str(label): label for label in y.tolist()}
    return [known.get(label, label) for label in (part.strip() for part in options.order.split(","))]


def _write_files(options: Namespace, model: Any, sheet: Any) -> tuple[list[str], BaseException | None]:
    """Write the model, the report and the sheet of points; return the files written, and the first error or Ctrl-C."""
    written: list[str] = []
    title = None if options.target is None else f"Predicting {options.target}"
    if options.event is not None:
        title = f"Time until {options.event}"
    page = None if sheet is None else sheet.save_page
    report = partial(model.report, title=title, **({"nested": True} if options.nested else {}))
    for path, write in ((options.out, model.save), (options.report, report), (options.points, page)):
        if path is None or write is None:
            continue
        try:
            write(path)
        except OSError as error:
            return written, DataError(f"{path} cannot be written: {error.strerror or error}")
        except (ValueError, ImportError, AttributeError) as error:
            return written, DataError(f"{path} cannot be written: {error}")
        except KeyboardInterrupt as interrupt:  # a page that takes long to compute; the model is kept
            return written, interrupt
        written.append(path)
    return written, None


def _record(options: Namespace, problem: Problem, model: Any) -> dict[str, Any]:
    """The fitted model for programs."""
    path, size = model.path_, model.k_
    chosen, names, outputs = path[size], path.names(size), path.output_names
    coefficients: Any = dict(zip(names, chosen.coef.tolist(), strict=True)) if outputs is None else {}
    intercept: Any = chosen.intercept
    if outputs is not None:
        rows = zip(outputs, chosen.coef.tolist(), strict=True)
        coefficients = {output: dict(zip(names, row, strict=True)) for output, row in rows}
        intercept = dict(zip(outputs, chosen.intercept, strict=True))
    return {
        "target": problem.target.name,
        "task": problem.target.task,
        "rows": problem.X.shape[0],
        "rows_dropped": problem.n_dropped,
        "columns": problem.X.shape[1],
        "size": size,
        "features": names,
        "feature_groups": None if path.group_labels is None else [str(label) for label in path.groups(size)],
        "classes": model.classes_.tolist() if problem.target.is_class else None,
        "coefficients": coefficients,
        "intercept": intercept,
        "thresholds": model.thresholds_.tolist() if problem.target.task == "ordinal" else None,
        "objective": chosen.objective,
        "explained": path.explained(size),
        "cost": None if path.prices is None else path.cost(size),
        "baselines": model.encoder_.baselines_ if hasattr(model, "encoder_") else {},
        "choice": None if path.choice is None else path.choice.message_for(in_shell(options.out)),
        "proof": None if path.certificate is None else path.certificate.message(size) or None,
        "stop": path.stop.value,
        "path": path.table(),
    }
