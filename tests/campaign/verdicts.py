"""Running a case and judging what comes of it: every find is a short word and a sentence."""

from __future__ import annotations

import io
import os
import pickle
import tempfile
import time
import traceback
import warnings
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from balls import judge_ball_by_steps
from data_kinds import RAW_FORMS, encoded_by_names
from enumeration import judge_proof
from references import (
    column_scales,
    cox_objective,
    linear_objective,
    lowest_on_support,
    ordinal_objective,
    row_shares,
)
from uses import judge_uses

import pauca
from fits import fit, quadratic

SLOW = 20.0
"""Seconds of processor time that no case of this size should take."""

LATE = 1.5
"""Seconds of processor time beyond a limit: half a second is promised; the rest is imports of a first fit."""

TIMES = ("slow", "late")
"""Finds that are times."""

WITH_KINKS = ("absolute_error", "Quantile(0.3)", "hinge")

ACCURACY = 1e-6
"""How far objectives may be from the judge's, as a share of the empty model's: what the solvers promise, and rounding
of badly scaled tables."""


@dataclass
class Verdict:
    """What came of a case."""

    outcome: str
    """fitted or refused."""
    finds: list[tuple[str, str]] = field(default_factory=list)
    message: str = ""
    seconds: float = 0.0

    def found(self, what, text):
        self.finds.append((what, text))


def judged(case):
    """Run a case and judge it; what took long is run again: the first time may have compiled or imported something."""
    verdict = _judged(case)
    if any(what in TIMES for what, _ in verdict.finds):
        again = {what for what, _ in _judged(case).finds}
        verdict.finds = [find for find in verdict.finds if find[0] not in TIMES or find[0] in again]
    return verdict


def _judged(case):
    began = time.process_time()
    try:
        verdict = _fit_and_judge(case)
    except Exception as error:  # of the judge itself
        verdict = Verdict("fitted")
        place = traceback.extract_tb(error.__traceback__)[-1]
        verdict.found("judge", f"{type(error).__name__}: {error} ({os.path.basename(place.filename)}:{place.lineno})")
    verdict.seconds = time.process_time() - began
    if verdict.seconds > SLOW:
        verdict.found("slow", f"{verdict.seconds:.0f} s")
    return verdict


def _fit_and_judge(case):
    table = None if case.family in ("SparseTagger", "select") else case.table()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.perf_counter(), time.process_time()
        try:
            model = fit(case, table)
        except Exception as error:
            verdict = Verdict("refused", message=f"{type(error).__name__}: {error}")
            _judge_error(case, error, verdict)
            model = None
        else:
            verdict = Verdict("fitted")
            _judge_time(case, model, time.perf_counter() - began[0], time.process_time() - began[1], verdict)
            with np.errstate(all="ignore"):
                _judge_uses(case, model, verdict)
    seen = set()
    for one in caught:
        if (one.filename, one.lineno) in seen:
            continue
        seen.add((one.filename, one.lineno))
        if not issubclass(one.category, pauca.PaucaWarning) and not _is_sklearns(one):
            place = f"{os.path.basename(os.path.dirname(one.filename))}/{os.path.basename(one.filename)}:{one.lineno}"
            verdict.found("warning", f"{one.category.__name__}: {one.message} ({place})")
    if model is not None:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            JUDGES.get(case.family, _judge_linear)(case, model, verdict)
            for name, value in _numbers_of(model):
                # Importances may be unknown where the time was up.
                late = "importance" in name and case.parameters.get("time_limit")
                if not np.all(np.isfinite(np.asarray(value)[~np.isnan(value)] if late else value)):
                    verdict.found("not finite", f"{name} is {value!r}"[:200])
    return verdict


def _judge_time(case, model, by_the_clock, computed, verdict):
    """A search that says that its time was up has used it, and one with a limit does not go on for long."""
    limit = case.parameters.get("time_limit")
    if limit is None or "certify" in case.extra:
        return
    if getattr(model, "stop_", None) == "time" and by_the_clock < 0.9 * limit:
        verdict.found("untrue", f"time was up after {by_the_clock:.3f} s of {limit}")
    if computed > limit + LATE:
        verdict.found("late", f"{computed:.2f} s of processor time with a limit of {limit}")


def _is_sklearns(one):
    return "sklearn" in one.category.__module__ or ("sklearn" in one.filename and issubclass(one.category, UserWarning))


# What pauca promises to raise; subclasses such as LinAlgError, and errors of other libraries, are none of them.
PREPARED = {ValueError, TypeError, ImportError, MemoryError, NotImplementedError, pauca.ModelFileError}

# Errors may come from pauca itself, or from the checks of scikit-learn that it calls.
OUR_FILES = ("pauca", "sklearn/utils", "sklearn/base", "sklearn/model_selection")


def _judge_error(case, error, verdict):
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}:{place.lineno}"
    if type(error) not in PREPARED and not type(error).__module__.startswith("pauca."):
        verdict.found("crash", f"{type(error).__name__}: {error} ({where})"[:300])
    elif not any(part in place.filename for part in OUR_FILES):
        verdict.found("foreign error", f"{type(error).__name__}: {error} ({where})"[:300])
    elif not str(error).strip():
        verdict.found("no words", f"{type(error).__name__} ({where})")
    elif case.tame and not _may_refuse(case, str(error)):
        verdict.found("refused", f"{type(error).__name__}: {error} ({where})"[:300])


def _may_refuse(case, text):
    """Whether a tame case has a reason to be refused all the same: too few rows or classes, limits that are empty."""
    reasons = (
        "class",
        "ridge='auto'",
        "compiled form",
        "rows",
        "samples",
        "fold",
        "splits",
        "budget",
        "Exact",
        "exact",
        "table in chunks",
        "in chunks",
        "perfect",
        "always",
        "positive",
        "event",
        "lazy",
        "constant",
        "bounds",
        "max_per_group",
        "memory",
        "tol",
        "time_limit",
        "sparse",
        "Sparse",
        "names",
        "learning_rate",
        "do not vary",
        "the same up to their units",
    )
    return any(reason in text for reason in reasons)


def _judge_uses(case, model, verdict):
    """What a user does next raises nothing, and a model read from a file or a pickle is the same."""
    if case.seed % 4 == 1:
        judge_uses(case, model, verdict)
    if case.seed % 4:
        return
    target = getattr(model, "model", model)
    if case.family == "select":
        model.summary(model.sizes[-1])
        return
    if case.family == "TableEncoder":
        again = pickle.loads(pickle.dumps(model)).transform(case.table())
        if not np.array_equal(again, model.transform(case.table())):
            verdict.found("file", "a pickled encoder differs")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.json")
        try:
            target.summary()
            target.save(path)
            others = [pauca.load(path), pickle.load(io.BytesIO(pickle.dumps(target)))]
        except Exception as error:
            verdict.found("use", f"{type(error).__name__}: {error}"[:300])
            return
    for other in others:
        for (name, value), (_, read) in zip(_numbers_of(target), _numbers_of(other), strict=True):
            if not np.array_equal(value, read, equal_nan=True):
                verdict.found("file", f"{name} is {read!r} and was {value!r}"[:300])


NUMBERS = ("coef_", "intercept_", "objective_", "ridge_", "gap_", "lower_bound_", "radius_", "norm_", "precision_")


def _numbers_of(model):
    if isinstance(model, pauca.Path):
        chosen = model[model.sizes[-1]]
        yield from (("coef", chosen.coef), ("objective", chosen.objective), ("importance", chosen.importance))
        return
    model = getattr(model, "model", model)
    for name in NUMBERS:
        if hasattr(model, name):
            yield name, getattr(model, name)
    if hasattr(model, "path_"):
        for one in model.path_:
            yield f"objective of size {one.size}", one.objective
            yield f"importances of size {one.size}", one.importance


def _judge_linear(case, model, verdict):
    if getattr(model, "encoder_", None) is not None:
        case = _judge_encoding(case, model, verdict)
    coef, X = np.atleast_2d(model.coef_), case.numbers
    support = np.flatnonzero(np.any(coef != 0, axis=0))
    if not np.array_equal(support, model.support_):
        verdict.found("support", f"support_ is {model.support_}, coefficients that are not zero {support}")
    _judge_limits(case, model, coef, verdict)
    if X is None or not np.all(np.isfinite(X)) or case.family.startswith("Stream"):
        return
    ridge = getattr(model, "ridge_", case.parameters.get("ridge", 0.0))
    classes = getattr(model, "classes_", None)
    # Where everything is in one row, a constant is a perfect fit, and shares of it are shares of nothing.
    null, rounding = model.path_[0].objective, 0.0
    if case.family == "SparseCox":
        value, rounding = cox_objective(case, X, coef[0], ridge=ridge), _rounding_of_scores(X, coef)
    elif case.family == "SparseOrdinalClassifier":
        value = ordinal_objective(case, X, coef[0], model.thresholds_, classes, ridge=ridge)
        rounding = _rounding_of_scores(X, coef)
    else:
        value, rounding = linear_objective(case, X, coef, model.intercept_, ridge=ridge, classes=classes)
    if np.isnan(value) or not np.isfinite(rounding):
        return  # coefficients whose scores overflow, though not those of the centred columns
    # Losses of classes have no units: below this they are rounding, whatever the weights leave of the empty model's.
    allowed = rounding + ACCURACY * abs(null) + 1e-12 * abs(value) + (0.0 if "Regressor" in case.family else 1e-12)
    if not abs(value - model.objective_) <= allowed:
        verdict.found("objective", f"objective_ is {model.objective_!r}, the model's {value!r} (empty {null!r})")
    if model.objective_ > null + 1e-9 * abs(null) + rounding + 1e-300 and not _is_forced(case):
        verdict.found("above empty", f"objective_ {model.objective_!r}, empty {null!r}")
    if case.family in ("SparseRegressor", "SparseClassifier") and len(support) and case.seed % 2 == 0:
        _judge_optimality(case, model, X, value, allowed, ridge, verdict)
    if case.family.startswith("L1"):
        _judge_ball(case, model, X, verdict)
    judge_proof(case, model, X, ridge, verdict)


def _judge_encoder(case, model, verdict):
    """An encoder by itself: its names say what its columns hold."""
    if case.form not in RAW_FORMS:
        theirs, numbers, names = model.transform(case.table()), case.numbers, model.get_feature_names_out().tolist()
        if numbers is not None and "categorical_features" in case.parameters:
            raw = dict.fromkeys(name.removesuffix(" is missing").partition("=")[0] for name in names)
            if len(raw) != numbers.shape[1]:
                return
            numbers = encoded_by_names(pd.DataFrame(numbers, columns=list(raw)), names)
        if numbers is not None and theirs.shape == numbers.shape and not np.array_equal(theirs, numbers):
            verdict.found("encoding", "numbers have changed")
        return
    _compare_encoding(case, model, model.get_feature_names_out().tolist(), verdict)


def _judge_encoding(case, model, verdict):
    """The case with the table as numbers, from the names of the columns; missing numbers must be as promised."""
    names = list(model.path_.column_names)
    X = _compare_encoding(case, model.encoder_, names, verdict)
    raw = [name.removesuffix(" is missing").partition("=")[0] for name in names]
    given = case.parameters | {"feature_groups": raw}  # k is on raw columns
    return replace(case, X=X, form="array", parameters=given)


def _compare_encoding(case, encoder, names, verdict):
    """The numbers of a table, read from the names of its columns."""
    table = case.table()
    X = encoded_by_names(table, names)
    theirs, known = np.asarray(encoder.transform(table)), ~np.isnan(X)
    if not np.array_equal(X[known], theirs[known]):
        verdict.found("encoding", f"{np.argwhere((theirs != X) & known)[:3].tolist()} differ")
    if case.weights is None and case.parameters.get("missing") == "median" and known.any(axis=0).all():
        X = np.where(known, X, np.nanmedian(X, axis=0))
        if not np.allclose(X, theirs, rtol=1e-12, atol=0):
            verdict.found("encoding", f"missing numbers became {theirs[~known][:3]}, medians are {X[~known][:3]}")
    # What else stands for missing numbers is for the library to say.
    return np.where(np.isnan(X), theirs, X)


def _rounding_of_scores(X, coef):
    """How far rounding may move a mean loss whose slope is at most one."""
    return float(1e-13 * (np.abs(X) @ np.abs(coef[0])).max(initial=0.0))


def _is_forced(case):
    """Whether a model must have features that it would not choose."""
    return (
        "always" in case.parameters
        or case.parameters.get("time_limit", 1) < 1
        or case.parameters.get("method") == "backward"
    )


def _judge_limits(case, model, coef, verdict):
    given = case.parameters
    chosen = set(model.support_.tolist())
    sizes = given.get("k")
    groups = given.get("feature_groups")
    most = sizes if isinstance(sizes, int) else max(sizes) if isinstance(sizes, range) else None
    if "max_per_group" in given:
        taken = np.bincount(np.array(groups)[sorted(chosen)], minlength=1) if chosen else np.zeros(1)
        if taken.max() > given["max_per_group"]:
            verdict.found("limits", f"max_per_group: {taken}")
        groups = None
    units = {groups[j] for j in chosen} if groups else chosen
    cut = given.get("time_limit", 1) < 1  # backward search may not have come down to k
    if most is not None and len(units) > most and not case.family.startswith("Stream") and not cut:
        verdict.found("limits", f"{len(units)} units for k={sizes}")
    if set(given.get("never", ())) & units:
        verdict.found("limits", f"never: {units}")
    if "budget" in given:
        paid = [cost for j, cost in enumerate(given["costs"]) if (groups[j] in units if groups else j in chosen)]
        if sum(paid) > given["budget"] * (1 + 1e-12):
            verdict.found("limits", f"budget: {chosen}")
    if "heredity" in given:
        _judge_heredity(given["heredity"], set(model.path_[model.k_].support.tolist()), verdict)
    if "bounds" in given:
        lower, upper = (
            bound if bound is not None else sign * np.inf for bound, sign in zip(given["bounds"], (-1, 1), strict=True)
        )
        if np.any(coef < lower - 1e-12) or np.any(coef > upper + 1e-12):
            verdict.found("limits", f"bounds: {coef.min()} to {coef.max()}")


def _judge_heredity(given, chosen, verdict):
    enough, parents = (any, given[1]) if isinstance(given, tuple) else (all, given)
    for child, older in parents.items():
        if child in chosen and not enough(parent in chosen for parent in older):
            verdict.found("limits", f"heredity: {child} without {older} in {sorted(chosen)}")


def _judge_optimality(case, model, X, value, allowed, ridge, verdict):
    """No model of the same columns is better than the solver promises."""
    chosen = model.path_[model.k_]
    if not chosen.converged or chosen.diverged or case.parameters.get("time_limit"):
        return
    classes = getattr(model, "classes_", None)
    least = lowest_on_support(case, X, model.coef_, model.intercept_, model.support_, ridge=ridge, classes=classes)
    null = model.path_[0].objective
    # Losses with kinks are minimised through an envelope where there are bounds; their ``accuracy`` is promised then.
    promised = 1e-3 if "bounds" in case.parameters and case.parameters.get("loss") in WITH_KINKS else 1e-4
    if least is not None and value - least > allowed + promised * abs(null) + _small_ridge(case, model, X):
        verdict.found("not optimal", f"Q is {value!r}, SciPy finds {least!r} (empty {null!r})")


def _small_ridge(case, model, X):
    """What the ridge that holds coefficients where scores may go to infinity adds at most, without another one."""
    loss = case.parameters.get("loss", "log_loss" if "Classifier" in case.family else "squared_error")
    if loss not in ("log_loss", "poisson", "tweedie", "NegativeBinomial(0.5)"):
        return 0.0
    sizes = np.atleast_2d(model.coef_) * column_scales(case, X, row_shares(case))
    return 1e-8 * max(1.0, float(np.mean(np.abs(case.y)))) * float(np.sum(sizes**2))


def _judge_ball(case, model, X, verdict):
    if model.norm_ > model.radius_ * (1 + 1e-9):
        verdict.found("ball", f"norm {model.norm_!r} beyond {model.radius_!r}")
    if model.gap_ < 0 or model.lower_bound_ > model.objective_ + 1e-12 * abs(model.objective_):
        verdict.found("ball", f"lower bound {model.lower_bound_!r}, objective {model.objective_!r}")
    judge_ball_by_steps(case, model, X, verdict)
    ridge, classes = case.parameters.get("ridge", 0.0), getattr(model, "classes_", None)
    for share in (0.0, 0.5, 0.9):
        coef = share * np.atleast_2d(model.coef_)
        other, rounding = linear_objective(case, X, coef, model.intercept_, ridge=ridge, classes=classes)
        # Losses of classes have no units: below this they are rounding.
        rounding += 0.0 if classes is None else 1e-12
        if other < model.lower_bound_ - rounding - ACCURACY * abs(model.path_[0].objective):
            verdict.found("false bound", f"a model in the ball has {other!r}, below {model.lower_bound_!r}")


def _judge_graph(case, model, verdict):
    X, precision = case.numbers, model.precision_
    pairs = int(np.count_nonzero(np.triu(precision, 1)))
    if pairs > model.k_:
        verdict.found("support", f"{pairs} entries for {model.k_} edges")
    if X is None or not np.all(np.isfinite(X)):
        return
    v = row_shares(case)
    if case.weights is not None and np.any(case.weights == 0):
        return
    Z = X if case.parameters.get("assume_centered") else X - v @ X
    S = (Z * v[:, None]).T @ Z
    shrinkage = case.parameters.get("shrinkage", 0.0)
    S = (1 - shrinkage) * S + shrinkage * np.diag(np.diag(S))
    used = np.diag(S) > 0
    if not used.all():
        return
    # In units of the columns' own: elimination by rows of 1e-70 and 1e70 has no digits.
    spread = np.sqrt(np.diag(S))
    sign, logdet = np.linalg.slogdet(precision * spread * spread[:, None])
    value = float(np.sum(S * precision) - logdet + 2 * np.sum(np.log(spread)))
    if sign <= 0:
        verdict.found("graph", "the precision is not positive definite")
    elif not abs(value - model.objective_) <= 1e-6 * (abs(value) + len(S)):
        verdict.found("objective", f"objective_ is {model.objective_!r}, the model's {value!r}")


def _judge_tagger(case, model, verdict):
    null = model.path_[0].objective
    if model.objective_ > null + 1e-9 * abs(null):
        verdict.found("above empty", f"objective_ {model.objective_!r}, empty {null!r}")
    used = np.flatnonzero(np.any(model.coef_ != 0, axis=0))
    if not set(used) <= set(model.support_.tolist()):
        verdict.found("support", f"{used} are not zero, support_ is {model.support_}")


def _judge_select(case, path, verdict):
    value, _ = quadratic(case)
    for model in path:
        found = value(path.parameters(model.size))
        if not abs(found - model.objective) <= 1e-9 * (abs(found) + abs(path[0].objective)):
            verdict.found("objective", f"size {model.size}: {model.objective!r}, the model's {found!r}")
        if model.objective > path[0].objective * (1 + 1e-9):
            verdict.found("above empty", f"size {model.size}: {model.objective!r} above {path[0].objective!r}")


def _judge_sparsify(case, result, verdict):
    coef = np.atleast_2d(result.model.coef_)
    if np.count_nonzero(np.any(coef, axis=0)) > case.parameters["k"]:
        verdict.found("limits", f"{np.count_nonzero(coef)} coefficients for k={case.parameters['k']}")


JUDGES = {
    "SparsePrecision": _judge_graph,
    "SparseTagger": _judge_tagger,
    "select": _judge_select,
    "sparsify": _judge_sparsify,
    "TableEncoder": _judge_encoder,
}
