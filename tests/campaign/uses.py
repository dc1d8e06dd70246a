"""What a user does after a fit: each use gives what the model says, or an error in words."""

from __future__ import annotations

import os
import tempfile

import numpy as np

REFUSALS = (ValueError, TypeError)
"""What a use may raise, in words."""


def judge_uses(case, model, verdict):
    """One use after a fit, by the seed; errors that are not in words are finds."""
    possible = [name for name in USES if _has(model, name)]
    if not possible:
        return
    name = possible[case.seed // 4 % len(possible)]
    try:
        USES[name](case, model, verdict)
    except Exception as error:
        if type(error) not in REFUSALS or not str(error).strip() or name in ("report", "to_python", "at"):
            verdict.found("use", f"{name}: {type(error).__name__}: {error}"[:300])


def _has(model, name):
    return hasattr(model, name) and hasattr(model, "coef_") and hasattr(model, "path_")


def _report(case, model, verdict):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.html")
        model.report(path)
        with open(path, encoding="utf-8") as file:
            if not file.read().rstrip().endswith("</html>"):
                verdict.found("use", "a report without its end")


def _to_python(case, model, verdict):
    """The source by itself predicts what the model predicts."""
    X = case.numbers
    if X is None or not np.all(np.isfinite(X)) or getattr(model, "encoder_", None) is not None:
        return
    if "offset" in case.extra:
        return
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(X.shape[1])])
    module: dict[str, object] = {}
    exec(compile(model.to_python(), "model", "exec"), module)
    rows = range(0, len(X), max(1, len(X) // 5))
    theirs = np.array([module["predict"](dict(zip(names, X[i].tolist(), strict=True))) for i in rows])
    ours = np.asarray(model.predict(X[list(rows)] if _nameless(model) else case.table()))
    ours = ours if _nameless(model) else ours[list(rows)]
    if ours.dtype.kind == "f" and case.family != "SparseOrdinalClassifier":
        scale = np.abs(X) @ np.abs(np.atleast_2d(model.coef_)).T.max(axis=1) + 1.0
        near = np.allclose(theirs.astype(float), ours, rtol=1e-9, atol=1e-12 * float(scale.max()))
        if not near and np.all(np.isfinite(ours)):
            verdict.found("use", f"to_python predicts {theirs[:3]}, the model {ours[:3]}")


def _nameless(model):
    return not hasattr(model, "feature_names_in_")


def _at(case, model, verdict):
    """Every size of the path predicts finite numbers."""
    for one in list(model.path_)[-3:]:
        other = model.at(one.size)
        if not np.all(np.isfinite(np.atleast_1d(other.coef_))):
            verdict.found("use", f"at({one.size}) has coefficients that are not finite")


def _evaluate(case, model, verdict):
    if case.form == "array" and case.y is not None and case.family != "SparseCox":
        found = model.evaluate(case.table(), case.y, **_known_part(case))
        str(found)
        right = found.accuracy
        if right is not None and "offset" not in case.extra:
            share = float(np.mean(model.predict(case.table()) == case.y))
            if abs(right.value - share) > 1e-9 and found.threshold in (None, 0.0):
                verdict.found("use", f"accuracy {right.value}, {share} of the rows are right")
    else:
        model.evaluate()


def _known_part(case):
    return {"offset": case.extra["offset"]} if "offset" in case.extra else {}


def _inference(case, model, verdict):
    found = model.inference() if case.seed % 8 < 4 else model.inference("bootstrap", n_resamples=5)
    str(found)


def _to_points(case, model, verdict):
    sheet = model.to_points(cv=None)
    str(sheet)


def _stability(case, model, verdict):
    shares = model.stability(n_resamples=3).frequency
    if not (np.all(np.isfinite(shares)) and np.all((shares >= 0) & (shares <= 1))):
        verdict.found("use", f"shares of resamples {shares}")


def _alternatives(case, model, verdict):
    str(model.alternatives())


USES = {
    "report": _report,
    "to_python": _to_python,
    "at": _at,
    "evaluate": _evaluate,
    "inference": _inference,
    "to_points": _to_points,
    "stability": _stability,
    "alternatives": _alternatives,
}
