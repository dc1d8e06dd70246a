"""A model as SQL that any database understands: no functions but EXP, standard quotes, no dialect."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pauca.export.formula import Formula

# e^-700 is next to nothing and still a number; databases may refuse what is less.
STEEPEST = 700.0

# Some databases read a backslash before a quote as part of the text, which would let the text end elsewhere.
UNSAFE = re.compile(r"""\\(["']|\Z)""")


def to_sql(formula: Formula, table: str | Sequence[str] | None, keep: Sequence[str]) -> str:
    """A SELECT from ``table``, or without one the expressions alone."""
    if keep and table is None:
        raise ValueError("Columns to keep need a table: give to_sql(table=..., keep=...).")
    keep = [keep] if isinstance(keep, str) else list(keep)
    if formula.classes is None:
        return _numbers(formula, table, keep)
    if table is None and len(formula.classes) > 2:
        raise ValueError("More than two classes are told apart by a whole SELECT: give to_sql(table=...).")
    return _two_classes(formula, table, keep) if len(formula.classes) == 2 else _many_classes(formula, table, keep)


def _numbers(formula: Formula, table: str | Sequence[str] | None, keep: Sequence[str]) -> str:
    scores = _scores(formula, table)
    made = [f"EXP{score}" for score in scores] if formula.link == "exp" else scores
    if table is None and formula.outputs is None:
        return made[0]
    columns = _aliased(made, formula.outputs or ["prediction"], keep)
    return _select([*_kept(keep, table), *columns], _source(table))


def _two_classes(formula: Formula, table: str | Sequence[str] | None, keep: Sequence[str]) -> str:
    (score,) = _scores(formula, table)
    source = _source(table)
    kept = _kept(keep, table)
    if table is not None:
        source, kept, score = _nested([*kept, score], [*_inner(keep), "s0"], source), _handed_on(keep), "s0"
    lower, upper = map(literal, formula.classes or [])
    # A missing value makes the score NULL, for which neither holds: the answer is NULL.
    label = f"CASE WHEN {score} > 0 THEN {upper} WHEN {score} <= 0 THEN {lower} END"
    if formula.link == "log_loss":
        held = f"CASE WHEN {score} < {_number(-STEEPEST)} THEN {_number(-STEEPEST)}"
        held += f" WHEN {score} > {_number(STEEPEST)} THEN {_number(STEEPEST)} ELSE {score} END"
        made, name = f"1e0 / (1e0 + EXP(-({held})))", "probability of"
    else:
        made, name = score, "score of"
    columns = _aliased([label, made], ["prediction", f"{name} {(formula.classes or [])[1]}"], keep)
    return _select([*kept, *columns], source)


def _many_classes(formula: Formula, table: Any, keep: Sequence[str]) -> str:
    """Scores in an inner SELECT, their largest around it, their exponentials around that, so that none is too large."""
    classes = formula.classes or []
    every = range(len(classes))
    inner, scores = _inner(keep), [f"s{c}" for c in every]
    source = _nested([*_kept(keep, table), *_scores(formula, table)], [*inner, *scores], _source(table))
    label = _first_largest(scores, [literal(label) for label in classes])
    if formula.link != "softmax":
        columns = _aliased([label, *scores], ["prediction", *(f"score of {name}" for name in classes)], keep)
        return _select([*_handed_on(keep), *columns], source)
    source = _nested(
        [*inner, *scores, label, _first_largest(scores, scores)], [*inner, *scores, "best", "largest"], source
    )
    least = _number(-STEEPEST)
    powers = [f"EXP(CASE WHEN {s} - largest < {least} THEN {least} ELSE {s} - largest END)" for s in scores]
    source = _nested([*inner, "best", *powers], [*inner, "best", *(f"e{c}" for c in every)], source)
    total = " + ".join(f"e{c}" for c in every)
    shares = [f"e{c} / ({total})" for c in every]
    columns = _aliased(["best", *shares], ["prediction", *(f"probability of {name}" for name in classes)], keep)
    return _select([*_handed_on(keep), *columns], source)


def _scores(formula: Formula, table: Any) -> list[str]:
    """The linear scores, each in parentheses, a line to a term."""
    names = [_column(name, table) for name in formula.names]
    return [
        "(" + "\n    ".join([_number(b), *(_term(w, name) for w, name in zip(row, names, strict=True))]) + ")"
        for b, row in zip(formula.intercept.tolist(), formula.coef.tolist(), strict=True)
    ]


def _term(weight: float, column: str) -> str:
    # Two minus signs in a row would begin a comment.
    return f"{'-' if weight < 0 else '+'} {_number(abs(weight))} * {column}"


def _first_largest(scores: list[str], answers: list[str]) -> str:
    """The answer of the largest score, the first of several; NULL if there are no scores."""
    cases = []
    for place, (score, answer) in enumerate(zip(scores, answers, strict=True)):
        # Whoever comes before has been ruled out by then.
        holds = " AND ".join(f"{score} >= {other}" for other in scores[place + 1 :]) or f"{score} IS NOT NULL"
        cases.append(f"WHEN {holds} THEN {answer}")
    return f"CASE {' '.join(cases)} END"


def _aliased(expressions: Sequence[str], names: Sequence[str], keep: Sequence[str]) -> list[str]:
    both = sorted(set(names) & set(keep))
    if both:
        raise ValueError(f"A column to keep has the name of a result: {', '.join(map(repr, both))}.")
    return [f"{made} AS {identifier(name)}" for made, name in zip(expressions, names, strict=True)]


def _select(columns: Sequence[str], source: str | None) -> str:
    joined = ",\n  ".join(columns)
    return joined if source is None else f"SELECT\n  {joined}\nFROM {source}"


def _nested(expressions: Sequence[str], names: Sequence[str], source: str | None) -> str:
    """A SELECT to select from. Its names are ours, so that none of the table's can clash with them."""
    columns = [f"{made} AS {name}" if made != name else name for made, name in zip(expressions, names, strict=True)]
    return f"(\n{_select(columns, source)}\n) t"


def _source(table: str | Sequence[str] | None) -> str | None:
    if table is None:
        return None
    parts = [table] if isinstance(table, str) else list(table)
    return ".".join(map(identifier, parts)) + " t"


def _column(name: str, table: Any) -> str:
    # With the table before it, no database takes the name of a missing column for a text.
    return identifier(name) if table is None else f"t.{identifier(name)}"


def _kept(keep: Sequence[str], table: Any) -> list[str]:
    return [_column(name, table) for name in keep]


def _inner(keep: Sequence[str]) -> list[str]:
    return [f"k{i}" for i in range(len(keep))]


def _handed_on(keep: Sequence[str]) -> list[str]:
    return [f"k{i} AS {identifier(name)}" for i, name in enumerate(keep)]


def identifier(name: str) -> str:
    """A name in SQL."""
    return _quoted(name, '"', "The name")


def literal(label: Any) -> str:
    """A class, or a value of text, in SQL."""
    if isinstance(label, bool):
        return "TRUE" if label else "FALSE"
    if isinstance(label, str):
        return _quoted(label, "'", "The class")
    return str(label) if isinstance(label, int) else _number(label)


def _number(number: float) -> str:
    """A number that comes back to the last bit; with an exponent it is of double precision, without it a decimal."""
    digits = repr(float(number))
    return digits if "e" in digits else f"{digits}e0"


def _quoted(text: str, mark: str, what: str) -> str:
    if "\0" in text or UNSAFE.search(text) or not _encodable(text):
        raise ValueError(
            f"{what} {text!r} cannot be written safely in SQL: it holds a NUL, half of a surrogate pair, or a "
            "backslash before a quote or at its end. Rename it before the fit."
        )
    return mark + text.replace(mark, mark + mark) + mark


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
