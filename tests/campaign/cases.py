"""Random cases of the campaign: an estimator with random parameters, on a random table.

A case holds plain values only, so that it can be printed, made smaller and run again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from data_kinds import ALL_FORMS, RAW_FORMS, draw_form, draw_numbers, draw_target, draw_weights, plain_numbers
from twists import twisted

import pauca
from pauca import losses, methods

METHODS = ["exchange", "forward", "stepwise", "foba", "backward", "replacement"]
PROVING = ["exact", "exact", "Exact(relative_gap=0.05)"]
NUMBER_LOSSES = ["squared_error", "absolute_error", "Huber(1.0)", "Quantile(0.3)"]
COUNT_LOSSES = ["poisson", "tweedie", "NegativeBinomial(0.5)"]
CLASS_LOSSES = ["log_loss", "squared_hinge", "hinge"]


@dataclass(frozen=True)
class Case:
    """One fit: the estimator, its parameters and its data."""

    seed: int
    family: str
    parameters: dict[str, Any]
    X: np.ndarray
    form: str
    y: np.ndarray | None
    weights: np.ndarray | None
    tame: bool
    """Whether nothing in it is a reason to refuse it."""
    kind: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def loss(self):
        """The loss as an object or a name, from its text."""
        text = self.parameters.get("loss", "squared_error")
        return eval(text, vars(losses)) if "(" in text else text

    @property
    def numbers(self):
        """The numbers that X holds in its form; None where it holds none."""
        return plain_numbers(self.X, self.form)

    def estimator(self):
        """The estimator, not fitted."""
        given = dict(self.parameters)
        if "loss" in given:
            given["loss"] = self.loss
        if "(" in given.get("method", ""):
            given["method"] = eval(given["method"], vars(methods))
        return getattr(pauca, self.family)(**given)

    def table(self):
        """X in its form."""
        with np.errstate(all="ignore"):
            return ALL_FORMS[self.form](self.X)

    def text(self):
        """The case in one line."""
        shown = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        more = ("" if self.weights is None else ", weights") + (", certified" if "certify" in self.extra else "")
        more += f", {self.extra['before']} before" if "before" in self.extra else ""
        more += ", {} as {}".format(*self.extra["form of rows"]) if "form of rows" in self.extra else ""
        return f"{self.family}({shown}) on {self.X.shape[0]} x {self.X.shape[1]} {self.kind} as {self.form}{more}"


def draw_case(seed):
    """The case of a seed."""
    rng = np.random.default_rng([2026, seed])
    names = list(FAMILIES)
    shares = np.array([FAMILIES[name][1] for name in names], dtype=float)
    family = names[int(rng.choice(len(names), p=shares / shares.sum()))]
    X, kind, tame = draw_numbers(rng)
    form, tame_form = draw_form(rng)
    weights, tame_weights = draw_weights(rng, len(X))
    case = Case(seed, family, {}, X, form, None, weights, tame and tame_form and tame_weights, kind)
    return twisted(FAMILIES[family][0](case, rng), seed)


def _pick(rng, *options):
    return options[int(rng.integers(len(options)))]


def _search_parameters(case, rng):
    """Parameters that all searches on columns share."""
    d = case.X.shape[1]
    given: dict[str, Any] = {"k": _pick(rng, 1, 2, 3, min(5, d), d, None, None, "auto", range(min(4, d + 1)))}
    given["method"] = _pick(rng, *METHODS, *PROVING)
    chooses = given["k"] == "auto" or isinstance(given["k"], range)
    if chooses:
        given["cv"] = _pick(rng, 2, 3)
        if rng.random() < 0.3:
            given["selection_rule"] = _pick(rng, "best", "1se", 0.0)
    if rng.random() < 0.7:
        given["ridge"] = _pick(rng, 0.0, 0.0, 1e-6, 0.1, 1e3, *(["auto", [0.0, 0.1, 10.0]] if chooses else []))
    if chooses and rng.random() < 0.2:
        given["search_ridge"] = _pick(rng, 0.0, 1e-3, 1.0, "auto", [0.01, 1.0])
    if rng.random() < 0.2:
        given["standardize"] = False
    if rng.random() < 0.1:
        given["tol"] = _pick(rng, 1e-8, 1e-2, 1e300)
    if rng.random() < 0.05:
        given["time_limit"] = _pick(rng, 1e-9, 0.01, 0.1)
    if given["method"] in PROVING and d > 12:  # what takes exponential time is judged by its limit
        given["time_limit"] = 0.2
    if rng.random() < 0.05:
        given["n_jobs"] = 2
    if case.form in RAW_FORMS:
        return given | _raw_parameters(case, rng)
    return given | _constraints(d, rng)


def _raw_parameters(case, rng):
    """Parameters that are about raw columns."""
    given: dict[str, Any] = {"missing": _pick(rng, "median", "category")} if case.form == "gaps" else {}
    if rng.random() < 0.2:
        given["always"] = ["c0"]
    if rng.random() < 0.2 and case.X.shape[1] > 1:
        given["never"] = [f"c{case.X.shape[1] - 1}"]
    return given


def _certify(rng):
    """Whether a certificate is asked for after the fit, and for how long."""
    return {"certify": _pick(rng, 1e-9, 0.05, 1.0)} if rng.random() < 0.25 else {}


def _constraints(d, rng):
    given: dict[str, Any] = {}
    if rng.random() < 0.7:
        return given
    if rng.random() < 0.3 and d > 1:
        given["feature_groups"] = rng.integers(0, max(1, d // 2), d).tolist()
        if rng.random() < 0.4:
            given["max_per_group"] = 1
    units = given.get("feature_groups") if "max_per_group" not in given else None
    some = sorted(set(units)) if units else list(range(d))
    if rng.random() < 0.3:
        given["always"] = [some[0]]
    if rng.random() < 0.3 and len(some) > 1:
        given["never"] = [some[-1]]
    if rng.random() < 0.3 and not units:
        given["costs"], given["budget"] = rng.integers(1, 4, d).tolist(), float(rng.integers(1, 8))
    if rng.random() < 0.4 and not units:
        given["bounds"] = _pick(rng, (0, None), (-0.5, 0.5), (0, 1e-3), (None, 0))
    return given


def _regressor(case, rng):
    given = _search_parameters(case, rng)
    loss = _pick(rng, None, None, *NUMBER_LOSSES, *COUNT_LOSSES, "gamma")
    kind = "counts" if loss in COUNT_LOSSES else "amounts" if loss == "gamma" else "numbers"
    y, tame = draw_target(rng, case.X, kind)
    if loss is not None:
        given["loss"] = loss
    if rng.random() < 0.1:
        given["fit_intercept"] = False
    if rng.random() < 0.05 and kind == "numbers":
        y = np.column_stack([y, -y + rng.standard_normal(len(y))])
    if given.get("k") != "auto" and not isinstance(given.get("k"), range) and rng.random() < 0.05:
        given["ridge"] = "auto"
    return replace(case, parameters=given, y=y, tame=case.tame and tame, extra=_certify(rng))


def _classifier(case, rng):
    given = _search_parameters(case, rng)
    if rng.random() < 0.6:
        given["loss"] = _pick(rng, *CLASS_LOSSES)
    if rng.random() < 0.1:
        given["class_weight"] = "balanced"
    y, tame = draw_target(rng, case.X, _pick(rng, "two classes", "two classes", "classes"))
    return replace(case, parameters=given, y=y, tame=case.tame and tame, extra=_certify(rng))


def _cox(case, rng):
    given = _search_parameters(case, rng)
    amounts, _ = draw_target(rng, case.X, "amounts")
    times = np.round(amounts + 0.1, int(rng.integers(0, 4))) + 0.1
    y = np.column_stack([rng.random(len(times)) < 0.7, times])
    given["ties"] = _pick(rng, "efron", "breslow")
    if rng.random() < 0.4:  # rows that enter late, and strata
        entry = times * rng.uniform(0.0, 0.95, len(times))
        y = np.column_stack([y, entry, rng.integers(0, _pick(rng, 1, 1, 3), len(times))])
    return replace(case, parameters=given, y=y, tame=case.tame, extra=_certify(rng))


def _ordinal(case, rng):
    y, _ = draw_target(rng, case.X, "classes")
    return replace(case, parameters=_search_parameters(case, rng), y=y, extra=_certify(rng))


def _l1(case, rng):
    given: dict[str, Any] = {"radius": _pick(rng, 0.1, 1.0, 5.0, 100.0, 1e6, "auto")}
    if rng.random() < 0.1:
        given["radius"] = _pick(rng, 1e-300, 1e300, 1e-9)
    if given["radius"] == "auto":
        given["cv"] = 2
    given["solver"] = _pick(rng, "corrective", "corrective", "pairwise", "away", "forward")
    given["max_iter"] = _pick(rng, 1, 200, 2000)
    if rng.random() < 0.3:
        given["standardize"] = True
    if rng.random() < 0.2:
        given["ridge"] = _pick(rng, 1e-6, 0.1, 10.0)
    if rng.random() < 0.2:
        given["k"] = _pick(rng, 1, 2)
    if rng.random() < 0.1:
        given["time_limit"] = _pick(rng, 1e-9, 0.01, 0.1)
    if rng.random() < 0.2:
        given["tol"] = _pick(rng, 1e-8, 0.1, 0.0)
    return given


def _l1_regressor(case, rng):
    given = _l1(case, rng)
    loss = _pick(rng, None, *NUMBER_LOSSES, "poisson")
    y, tame = draw_target(rng, case.X, "counts" if loss == "poisson" else "numbers")
    if loss is not None:
        given["loss"] = loss
    return replace(case, parameters=given, y=y, tame=case.tame and tame)


def _l1_classifier(case, rng):
    given = _l1(case, rng)
    if rng.random() < 0.6:
        given["loss"] = _pick(rng, *CLASS_LOSSES)
    y, tame = draw_target(rng, case.X, _pick(rng, "two classes", "classes"))
    return replace(case, parameters=given, y=y, tame=case.tame and tame)


def _stream(case, rng):
    given: dict[str, Any] = {"k": _pick(rng, 1, 3, 100, None), "passes": _pick(rng, 1, 2, 5)}
    given["truncation"] = _pick(rng, "truncate", "truncate", "systematic", "moments", "magnitude")
    if rng.random() < 0.3:
        given["radius"] = _pick(rng, 1e-9, 1.0, 1e9, 1e300)
    if rng.random() < 0.3:
        given["learning_rate"] = _pick(rng, 1e-9, 0.01, 1.0, 1e9)
    if rng.random() < 0.3:
        given["first_epoch"] = _pick(rng, 1, 10, "all")
    for name in ("refit", "average", "shuffle", "fit_intercept"):
        if rng.random() < 0.15:
            given[name] = False
    if rng.random() < 0.3:
        given["keep_rows"] = _pick(rng, 1, 5, 20)
    if rng.random() < 0.2:
        given["ridge"] = _pick(rng, 1e-6, 0.1)
    if rng.random() < 0.1:
        given["time_limit"] = _pick(rng, 1e-9, 0.01)
    return given


def _stream_regressor(case, rng):
    given = _stream(case, rng)
    loss = _pick(rng, None, *NUMBER_LOSSES)
    if loss is not None:
        given["loss"] = loss
    y, tame = draw_target(rng, case.X, "numbers")
    return replace(case, parameters=given, y=y, tame=case.tame and tame)


def _stream_classifier(case, rng):
    given = _stream(case, rng)
    if rng.random() < 0.6:
        given["loss"] = _pick(rng, *CLASS_LOSSES)
    y, tame = draw_target(rng, case.X, _pick(rng, "two classes", "classes"))
    return replace(case, parameters=given, y=y, tame=case.tame and tame)


def _precision(case, rng):
    given: dict[str, Any] = {"k": _pick(rng, 1, 3, None, "auto", range(4)), "method": _pick(rng, *METHODS[:5])}
    if given["k"] == "auto" or isinstance(given["k"], range):
        given["cv"] = 2
    if rng.random() < 0.5:
        given["shrinkage"] = _pick(rng, 1e-9, 0.1, 0.999)
    if rng.random() < 0.1:
        given["assume_centered"] = True
    if rng.random() < 0.05:
        given["time_limit"] = _pick(rng, 1e-9, 0.01)
    # Without a size all edges are searched for, of which 12 columns have 66: seconds for each such case.
    return replace(case, X=case.X[:, : 8 if given["k"] is None else 12], parameters=given)


def _tagger(case, rng):
    given: dict[str, Any] = {"k": _pick(rng, 1, 2, None, range(3))}
    given["method"] = _pick(rng, "foba", "forward", "exchange", "backward")
    if isinstance(given["k"], range):
        given["cv"] = 2
    if rng.random() < 0.3:
        given["ridge"] = _pick(rng, 0.0, 1e-3, 1.0)
    if rng.random() < 0.2:
        given["unit"] = "weight"
    if rng.random() < 0.1:
        given["time_limit"] = _pick(rng, 1e-9, 0.05)
    y, _ = draw_target(rng, case.X, _pick(rng, "two classes", "classes"))
    return replace(case, X=case.X[:, :6], form="array", weights=None, parameters=given, y=y, tame=False)


def _select(case, rng):
    given: dict[str, Any] = {"k": _pick(rng, 1, 2, None), "method": _pick(rng, *METHODS)}
    d = case.X.shape[1]
    if rng.random() < 0.3 and d > 1:
        given["groups"] = rng.integers(0, max(1, d // 2), d).tolist()
    if rng.random() < 0.05:
        given["time_limit"] = _pick(rng, 1e-9, 0.01)
    y, _ = draw_target(rng, case.X, "numbers")
    return replace(case, X=case.X[:, :8], form="array", weights=None, parameters=given, y=y, tame=False)


def _sparsify(case, rng):
    given: dict[str, Any] = {"k": _pick(rng, 1, 2, 5), "random_state": 0, "refit": bool(rng.random() < 0.6)}
    given["truncation"] = _pick(rng, "truncate", "systematic", "moments", "magnitude")
    if rng.random() < 0.2:
        given["ridge"] = 0.1
    dense = rng.standard_normal(case.X.shape[1]) * 10.0 ** rng.uniform(-3, 3)
    y, _ = draw_target(rng, case.X, "numbers")
    return replace(case, parameters=given, y=y, tame=False, extra={"dense": dense})


def _encoder(case, rng):
    given: dict[str, Any] = {"missing": _pick(rng, "error", "median", "category")}
    if rng.random() < 0.2:
        given["categorical_features"] = _pick(rng, None, [0])
    form = str(rng.choice(list(RAW_FORMS))) if rng.random() < 0.7 else case.form
    return replace(case, parameters=given, form=form, weights=None, tame=False)


# How each family is drawn, and how often.
FAMILIES = {
    "SparseRegressor": (_regressor, 30),
    "SparseClassifier": (_classifier, 20),
    "SparseCox": (_cox, 6),
    "SparseOrdinalClassifier": (_ordinal, 6),
    "L1Regressor": (_l1_regressor, 8),
    "L1Classifier": (_l1_classifier, 6),
    "StreamRegressor": (_stream_regressor, 7),
    "StreamClassifier": (_stream_classifier, 6),
    "SparsePrecision": (_precision, 6),
    "SparseTagger": (_tagger, 4),
    "select": (_select, 5),
    "sparsify": (_sparsify, 5),
    "TableEncoder": (_encoder, 3),
}
