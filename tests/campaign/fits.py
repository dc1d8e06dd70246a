"""Fitting a case: what each family is given, and what an estimator has been through before."""

from __future__ import annotations

import contextlib
import os
import pickle
import tempfile
import warnings

import numpy as np
from data_kinds import ROW_FORMS
from sklearn.base import clone

import pauca


def fit(case, table):
    """The fitted model of a case."""
    return FITS.get(case.family, fit_linear)(case, table)


def fit_linear(case, table):
    """A linear model or a graph."""
    given = {} if case.weights is None else {"sample_weight": case.weights}
    given |= {name: case.extra[name] for name in ("offset", "groups") if name in case.extra}
    if "form of rows" in case.extra:
        return _fit_in_form(case, table, given)
    if case.family == "SparsePrecision":
        return _estimator(case, lambda one, part, _: one.fit(part)).fit(table, **given)
    estimator = _estimator(case, lambda one, part, y: one.fit(part, y))
    return _certified(case, estimator.fit(table, case.y, **given))


def _fit_in_form(case, table, given):
    """The model where the target, or what else has one value for every row, comes in another form."""
    what, form = case.extra["form of rows"]
    given = {"y": case.y, **given}
    name = "sample_weight" if what == "weights" else what
    with np.errstate(all="ignore"):
        given[name] = ROW_FORMS[form](np.asarray(given[name]))
    return case.estimator().fit(table, **given)


def _estimator(case, fit):
    """The estimator as it is, or after it was fitted to other rows, where the case asks for that."""
    estimator, how = case.estimator(), case.extra.get("before")
    if how is None:
        return estimator
    X = np.random.default_rng(case.seed).standard_normal((24, 3))
    y = np.arange(24) % 3 if "Classifier" in case.family else np.abs(X[:, 0]) + 0.5
    usual = {"k": 2, "radius": 1.0}  # whatever limits and folds the case has
    other = type(estimator)(**{name: value for name, value in usual.items() if name in estimator.get_params()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(other, X, y)
        if how == "loaded":
            with tempfile.TemporaryDirectory() as folder:
                other.save(os.path.join(folder, "model.json"))
                other = pauca.load(os.path.join(folder, "model.json"))
        elif how == "pickled":
            other = pickle.loads(pickle.dumps(other))
        elif how == "cloned":
            other = clone(other)
        elif how == "after an error":
            with contextlib.suppress(ValueError):
                fit(other, X * np.nan, y)
    return other.set_params(**estimator.get_params())


def _certified(case, model):
    """The model with a certificate, where the case asks for one."""
    if "certify" in case.extra:
        model.certify(time_limit=case.extra["certify"])
    return model


def _fit_cox(case, table):
    y = np.array([(bool(event), time) for event, time in case.y[:, :2]], dtype=[("event", bool), ("time", float)])
    entry, strata = case.y[:, 2:].T if case.y.shape[1] > 2 else (None, None)
    estimator = _estimator(case, lambda one, X, times: one.fit(X, np.column_stack([times > 1.0, times])))
    model = estimator.fit(table, y, sample_weight=case.weights, entry=entry, strata=strata)
    return _certified(case, model)


def sequences(case):
    """Rows cut into sequences of five, with their labels."""
    starts = range(0, len(case.X), 5)
    return [case.X[i : i + 5] for i in starts], [case.y[i : i + 5].tolist() for i in starts]


def _fit_tagger(case, _):
    return case.estimator().fit(*sequences(case))


def quadratic(case):
    """Half the mean squared error as a function of the coefficients, and its gradient."""
    X, y = case.X, case.y
    return (
        lambda w: float(0.5 * np.mean((y - X @ w) ** 2)),
        lambda w: X.T @ (X @ w - y) / len(y),
    )


def _fit_select(case, _):
    value, gradient = quadratic(case)
    return pauca.select(value, gradient=gradient, n_coords=case.X.shape[1], **case.parameters)


def _fit_sparsify(case, table):
    given = {} if case.weights is None else {"sample_weight": case.weights}
    return pauca.sparsify(case.extra["dense"], table, case.y, intercept=0.0, **case.parameters, **given)


def _fit_encoder(case, table):
    return case.estimator().fit(table)


FITS = {
    "SparseCox": _fit_cox,
    "TableEncoder": _fit_encoder,
    "SparseTagger": _fit_tagger,
    "select": _fit_select,
    "sparsify": _fit_sparsify,
}
