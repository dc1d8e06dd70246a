"""A model as standard SQL for any database: quoted names, no function but EXP."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pauca.export.formula import Formula
from pauca.tables.encoding import MISSING, NUMBER, Term

# exp(-700) is still a normal number; some databases fail on an underflow.
LARGEST_EXPONENT = 700.0

# A score that is not positive has no mean under the inverse link; there NULL stands for infinity.
PREDICTIONS = {
    "identity": "{score}",
    "exp": "EXP{score}",
    "inverse": "CASE WHEN {score} > 0 THEN 1e0 / {score} END",
    "log_hazard": "{score}",
}

# Some databases read a backslash before a quote as an escape, which would move the end of the string.
UNSAFE = re.compile(r"""\\(["']|\Z)""")


def to_sql(formula: Formula, table: str | Sequence[str] | None, keep: Sequence[str]) -> str:
    """A SELECT from ``table``, or only the expressions if there is none."""
    if keep and table is None:
        raise ValueError("keep needs a table: call to_sql(table=..., keep=...).")
    keep = [keep] if isinstance(keep, str) else list(keep)
    if formula.classes is None:
        return _numbers(formula, table, keep)
    if formula.link == "cumulative":
        return _ordered_classes(formula, table, keep)
    if table is None and len(formula.classes) > 2:
        raise ValueError("More than two classes need a complete SELECT: call to_sql(table=...).")
    return _two_classes(formula, table, keep) if len(formula.classes) == 2 else _many_classes(formula, table, keep)


def _numbers(formula: Formula, table: str | Sequence[str] | None, keep: Sequence[str]) -> str:
    scores = _scores(formula, table)
    predictions = [PREDICTIONS[formula.link or "identity"].format(score=score) for score in scores]
    if formula.exposure is not None:
        predictions = [f"{prediction} * {_column(formula.exposure, table)}" for prediction in predictions]
    if table is None and formula.outputs is None:
        return predictions[0]
    columns = _aliased(predictions, formula.outputs or ["prediction"], keep)
    return _select([*_kept_columns(keep, table), *columns], _source(table))


def _two_classes(formula: Formula, table: str | Sequence[str] | None, keep: Sequence[str]) -> str:
    (score,) = _scores(formula, table)
    source = _source(table)
    kept = _kept_columns(keep, table)
    if table is not None:
        source, kept, score = _nested([*kept, score], [*_inner_names(keep), "s0"], source), _outer_kept(keep), "s0"
    lower, upper = map(literal, formula.classes or [])
    # A missing value makes the score NULL, so neither condition holds and the result is NULL.
    label = f"CASE WHEN {score} > 0 THEN {upper} WHEN {score} <= 0 THEN {lower} END"
    if formula.link == "log_loss":
        clipped = f"CASE WHEN {score} < {_number(-LARGEST_EXPONENT)} THEN {_number(-LARGEST_EXPONENT)}"
        clipped += f" WHEN {score} > {_number(LARGEST_EXPONENT)} THEN {_number(LARGEST_EXPONENT)} ELSE {score} END"
        value, name = f"1e0 / (1e0 + EXP(-({clipped})))", "probability of"
    else:
        value, name = score, "score of"
    columns = _aliased([label, value], ["prediction", f"{name} {(formula.classes or [])[1]}"], keep)
    return _select([*kept, *columns], source)


def _ordered_classes(formula: Formula, table: Any, keep: Sequence[str]) -> str:
    """Nested SELECTs: the score, then the probability of a class up to each threshold, then those of the classes."""
    if table is None:
        raise ValueError("Ordered classes need a complete SELECT: call to_sql(table=...).")
    assert formula.thresholds is not None
    classes, inner = formula.classes or [], _inner_names(keep)
    source = _nested([*_kept_columns(keep, table), *_scores(formula, table)], [*inner, "s0"], _source(table))
    least, most = _number(-LARGEST_EXPONENT), _number(LARGEST_EXPONENT)
    up_to = []
    for threshold in formula.thresholds.tolist():
        above = f"s0 - ({_number(threshold)})"
        clipped = f"CASE WHEN {above} < {least} THEN {least} WHEN {above} > {most} THEN {most} ELSE {above} END"
        up_to.append(f"1e0 / (1e0 + EXP({clipped}))")
    names = [f"c{c}" for c in range(len(up_to))]
    source = _nested([*inner, *up_to], [*inner, *names], source)
    shares = ["c0", *(f"c{c} - c{c - 1}" for c in range(1, len(up_to))), f"1e0 - c{len(up_to) - 1}"]
    ps = [f"p{c}" for c in range(len(classes))]
    source = _nested([*inner, *shares], [*inner, *ps], source)
    label = _first_largest(ps, [literal(label) for label in classes])
    columns = _aliased([label, *ps], ["prediction", *(f"probability of {name}" for name in classes)], keep)
    return _select([*_outer_kept(keep), *columns], source)


def _many_classes(formula: Formula, table: Any, keep: Sequence[str]) -> str:
    """Nested SELECTs: the scores, then their maximum, then exponentials relative to it, so that none overflows."""
    classes = formula.classes or []
    every = range(len(classes))
    inner, scores = _inner_names(keep), [f"s{c}" for c in every]
    source = _nested([*_kept_columns(keep, table), *_scores(formula, table)], [*inner, *scores], _source(table))
    label = _first_largest(scores, [literal(label) for label in classes])
    if formula.link != "softmax":
        columns = _aliased([label, *scores], ["prediction", *(f"score of {name}" for name in classes)], keep)
        return _select([*_outer_kept(keep), *columns], source)
    source = _nested(
        [*inner, *scores, label, _first_largest(scores, scores)], [*inner, *scores, "best", "largest"], source
    )
    least = _number(-LARGEST_EXPONENT)
    powers = [f"EXP(CASE WHEN {s} - largest < {least} THEN {least} ELSE {s} - largest END)" for s in scores]
    source = _nested([*inner, "best", *powers], [*inner, "best", *(f"e{c}" for c in every)], source)
    total = " + ".join(f"e{c}" for c in every)
    shares = [f"e{c} / ({total})" for c in every]
    columns = _aliased(["best", *shares], ["prediction", *(f"probability of {name}" for name in classes)], keep)
    return _select([*_outer_kept(keep), *columns], source)


def _scores(formula: Formula, table: Any) -> list[str]:
    """The linear scores, each in parentheses, one term a line; all levels of a raw column are one term."""
    by_raw: dict[tuple[str, bool], list[int]] = {}
    for place, term in enumerate(formula.terms):
        by_raw.setdefault((term.raw, term.kind == NUMBER), []).append(place)
    known = [] if formula.offset is None else [f"+ {_column(formula.offset, table)}"]
    scores = []
    for b, row in zip(formula.intercept.tolist(), formula.coef.tolist(), strict=True):
        lines = [_number(b)]
        for (raw, is_number), places in by_raw.items():
            column = _column(raw, table)
            if is_number:
                lines += [_term(row[place], filled(column, formula.terms[place].fill)) for place in places]
            else:
                lines.append(f"+ {level_case(column, [(formula.terms[place], row[place]) for place in places])}")
        scores.append("(" + "\n    ".join([*lines, *known]) + ")")
    return scores


def _term(weight: float, column: str) -> str:
    # Two minus signs in a row would start a comment.
    return f"{'-' if weight < 0 else '+'} {_number(abs(weight))} * {column}"


def filled(column: str, fill: float | None) -> str:
    """A column of numbers with what replaces missing ones."""
    return column if fill is None else f"COALESCE({column}, {_number(fill)})"


def level_case(column: str, weighted: Sequence[tuple[Term, float]]) -> str:
    """What the levels of a raw column, and its being missing, add to a score; NULL where a missing value may not be."""
    # A NULL equals no level and not even NULL, so its own case comes first.
    missing = [weight for term, weight in weighted if term.kind == MISSING]
    cases = [f"WHEN {column} IS NULL THEN {_number(weight)}" for weight in missing]
    levels = [(term, weight) for term, weight in weighted if term.kind != MISSING]
    cases += [f"WHEN {column} = {literal(term.level)} THEN {_number(weight)}" for term, weight in levels]
    refused = not missing and any(term.fill is None for term, _ in levels)
    cases.append(f"WHEN {column} IS NOT NULL THEN {_number(0)}" if refused else f"ELSE {_number(0)}")
    return f"CASE {' '.join(cases)} END"


def _first_largest(scores: list[str], results: list[str]) -> str:
    """The result that belongs to the largest score, the first in a tie; NULL if the scores are NULL."""
    cases = []
    for index, (score, result) in enumerate(zip(scores, results, strict=True)):
        # Earlier scores are smaller, or their case would have applied.
        condition = " AND ".join(f"{score} >= {other}" for other in scores[index + 1 :]) or f"{score} IS NOT NULL"
        cases.append(f"WHEN {condition} THEN {result}")
    return f"CASE {' '.join(cases)} END"


def _aliased(expressions: Sequence[str], names: Sequence[str], keep: Sequence[str]) -> list[str]:
    both = sorted(set(names) & set(keep))
    if both:
        raise ValueError(f"keep holds a name of a result column: {', '.join(map(repr, both))}. Rename the column.")
    return [f"{expression} AS {identifier(name)}" for expression, name in zip(expressions, names, strict=True)]


def _select(columns: Sequence[str], source: str | None) -> str:
    joined = ",\n  ".join(columns)
    return joined if source is None else f"SELECT\n  {joined}\nFROM {source}"


def _nested(expressions: Sequence[str], names: Sequence[str], source: str | None) -> str:
    """A SELECT to select from. Its columns have generated names, which cannot clash with those of the table."""
    pairs = zip(expressions, names, strict=True)
    columns = [name if expression == name else f"{expression} AS {name}" for expression, name in pairs]
    return f"(\n{_select(columns, source)}\n) t"


def _source(table: str | Sequence[str] | None) -> str | None:
    if table is None:
        return None
    parts = [table] if isinstance(table, str) else list(table)
    return ".".join(map(identifier, parts)) + " t"


def _column(name: str, table: Any) -> str:
    # With a prefix, no database takes the quoted name of a missing column for a string.
    return identifier(name) if table is None else f"t.{identifier(name)}"


def _kept_columns(keep: Sequence[str], table: Any) -> list[str]:
    return [_column(name, table) for name in keep]


def _inner_names(keep: Sequence[str]) -> list[str]:
    return [f"k{i}" for i in range(len(keep))]


def _outer_kept(keep: Sequence[str]) -> list[str]:
    return [f"k{i} AS {identifier(name)}" for i, name in enumerate(keep)]


def identifier(name: str) -> str:
    """A quoted name."""
    return _quoted(name, '"', "The name")


def literal(label: Any) -> str:
    """A class label, or a string, as a literal."""
    if isinstance(label, bool):
        return "TRUE" if label else "FALSE"
    if isinstance(label, str):
        return _quoted(label, "'", "The class")
    return str(label) if isinstance(label, int) else _number(label)


def _number(number: float) -> str:
    """A number in full precision; the exponent makes it a double, without it databases read a decimal."""
    digits = repr(float(number))
    return digits if "e" in digits else f"{digits}e0"


def _quoted(text: str, mark: str, what: str) -> str:
    if "\0" in text or UNSAFE.search(text) or not _encodable(text):
        raise ValueError(
            f"{what} {text!r} cannot be written safely in SQL: it holds a NUL, a lone surrogate, or a backslash before "
            "a quote or at the end. Rename it before fitting."
        )
    return mark + text.replace(mark, mark + mark) + mark


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
