"""A model as the source of a Python module that imports only ``math``."""

from __future__ import annotations

from pauca.export.formula import Formula
from pauca.version import __version__

HEAD = '''"""A linear model of {size}, written by pauca {version}.

A row is a mapping from the names in FEATURES to numbers.
"""

import math

FEATURES = {features}
INTERCEPTS = {intercepts}
COEFFICIENTS = {coefficients}
'''

SCORES = '''

def scores(row):
    """The linear scores of a row."""
    values = [_number(row, name) for name in FEATURES]
    return [
        intercept + sum(weight * value for weight, value in zip(weights, values)){offset}
        for intercept, weights in zip(INTERCEPTS, COEFFICIENTS)
    ]


def _number(row, name):
    value = float(row[name])
    if not math.isfinite(value):
        raise ValueError("the column %r must hold a finite number; got %r" % (name, value))
    return value
'''

RAW_HEAD = '''"""A linear model of {size}, written by pauca {version}.

A row is a mapping from the names in FEATURES to numbers and levels; missing values are None or NaN.
"""

import math

FEATURES = {features}

# What each coefficient is multiplied by: a column, "number", "level" or "missing", the level, and the value where the
# column is missing, if it may be.
TERMS = {terms}
INTERCEPTS = {intercepts}
COEFFICIENTS = {coefficients}
'''

RAW_SCORES = '''

def scores(row):
    """The linear scores of a row."""
    values = [_value(row[column], column, kind, level, fill) for column, kind, level, fill in TERMS]
    return [
        intercept + sum(weight * value for weight, value in zip(weights, values)){offset}
        for intercept, weights in zip(INTERCEPTS, COEFFICIENTS)
    ]
'''

TERM_VALUE = """

def _value(value, column, kind, level, fill):
    missing = value is None or value != value
    if kind == "missing":
        return 1.0 if missing else 0.0
    if missing:
        if fill is None:
            raise ValueError("the column %r is missing" % column)
        return fill
    if kind == "level":
        return 1.0 if value == level or str(value) == str(level) else 0.0
    value = float(value)
    if not math.isfinite(value):
        raise ValueError("the column %r must hold a finite number; got %r" % (column, value))
    return value
"""

RAW_NUMBER = """

def _number(row, name):
    return _value(row[name], name, "number", None, None)
"""

# Beyond its bound math.exp raises OverflowError where NumPy returns infinity.
LINKS = {
    "identity": "",
    "log_hazard": "",
    "exp": """

def _mean(score):
    return math.exp(score) if score < 709.78 else math.inf
""",
    "inverse": """

def _mean(score):
    return 1.0 / score if score > 0 else math.inf
""",
}

PREDICTIONS = {
    "one": '''

def predict(row):
    """The prediction for a row."""
    return {prediction}
''',
    "several": '''

def predict(row):
    """The predictions for a row, in the order of OUTPUTS."""
    return [{prediction} for score in scores(row)]
''',
    "two classes": '''

def predict(row):
    """The most probable class of a row."""
    return CLASSES[1 if scores(row)[0] > 0 else 0]
''',
    "ordered classes": '''

def predict(row):
    """The most probable class of a row."""
    shares = predict_proba(row)
    return CLASSES[shares.index(max(shares))]
''',
    "many classes": '''

def predict(row):
    """The most probable class of a row."""
    values = scores(row)
    return CLASSES[values.index(max(values))]
''',
}

PROBABILITIES = {
    "cumulative": '''

def predict_proba(row):
    """The probabilities of a row, in the order of CLASSES."""
    score = scores(row)[0]
    up_to = [1.0 / (1.0 + math.exp(min(max(score - threshold, -700.0), 700.0))) for threshold in THRESHOLDS]
    return [high - low for low, high in zip([0.0, *up_to], [*up_to, 1.0])]
''',
    "log_loss": '''

def predict_proba(row):
    """The probabilities of a row, in the order of CLASSES."""
    score = min(max(scores(row)[0], -700.0), 700.0)
    upper = 1.0 / (1.0 + math.exp(-score))
    return [1.0 - upper, upper]
''',
    "softmax": '''

def predict_proba(row):
    """The probabilities of a row, in the order of CLASSES."""
    values = scores(row)
    largest = max(values)
    powers = [math.exp(value - largest) for value in values]
    total = sum(powers)
    return [power / total for power in powers]
''',
}


def to_python(formula: Formula) -> str:
    """The source of the module. Names and labels go through ``repr`` and never into comments: they cannot be code."""
    size = len({term.raw for term in formula.terms})
    parts = [
        (RAW_HEAD if formula.is_raw else HEAD).format(
            size=f"{size} feature{'' if size == 1 else 's'}",
            version=__version__,
            features=repr(tuple(dict.fromkeys(term.raw for term in formula.terms))),
            terms=repr(tuple((term.raw, term.kind, term.level, term.fill) for term in formula.terms)),
            intercepts=repr(tuple(formula.intercept.tolist())),
            coefficients=repr(tuple(map(tuple, formula.coef.tolist()))),
        )
    ]
    for constant, name in (("OFFSET", formula.offset), ("EXPOSURE", formula.exposure)):
        parts += [] if name is None else [f"{constant} = {name!r}\n"]
    if formula.classes is not None:
        parts += [f"CLASSES = {tuple(formula.classes)!r}\n"]
        if formula.thresholds is not None:
            parts += [f"THRESHOLDS = {tuple(formula.thresholds.tolist())!r}\n"]
        kind = "two classes" if len(formula.classes) == 2 else "many classes"
        parts += [_scores(formula), PREDICTIONS["ordered classes" if formula.link == "cumulative" else kind]]
        parts += [PROBABILITIES[formula.link]] if formula.link else []
        return "".join(parts)
    if formula.outputs is not None:
        parts += [f"OUTPUTS = {tuple(formula.outputs)!r}\n"]
    parts += [_scores(formula), LINKS[formula.link or "identity"], _prediction(formula)]
    return "".join(parts)


def _scores(formula: Formula) -> str:
    scores = RAW_SCORES + TERM_VALUE + RAW_NUMBER if formula.is_raw else SCORES
    return scores.format(offset="" if formula.offset is None else " + _number(row, OFFSET)")


def _prediction(formula: Formula) -> str:
    score = "scores(row)[0]" if formula.outputs is None else "score"
    prediction = f"_mean({score})" if LINKS[formula.link or "identity"] else score
    if formula.exposure is not None:
        prediction += " * _number(row, EXPOSURE)"
    return PREDICTIONS["one" if formula.outputs is None else "several"].format(prediction=prediction)
