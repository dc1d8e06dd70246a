"""What there is to say about every size: for the slider, and for the table of all sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from pauca.report.formatting import NONE, SPACE, count, number, percent, points, short_number
from pauca.report.model_data import ModelData
from pauca.report.model_table import layout, rows
from pauca.results.choice import EXPLAINED, Choice
from pauca.results.path import Path

# A page of ten thousand sizes would be as long to load as to read: of more than these, some are shown.
MOST_SIZES = 300
# Cells of all tables together, which keeps the page below six megabytes, four of five being the drawing library.
MOST_CELLS = 50_000


def shown_sizes(facts: ModelData) -> list[int]:
    """All sizes, or if there are too many, those that matter and others spread evenly."""
    sizes = facts.path.sizes
    if len(sizes) <= MOST_SIZES:
        return sizes
    places = np.linspace(0, len(sizes) - 1, MOST_SIZES - 2).round().astype(int)
    matter = {facts.size} if facts.path.choice is None else {facts.size, facts.path.choice.best}
    return sorted({*(sizes[place] for place in places), *matter})


def records(facts: ModelData) -> list[dict[str, Any]]:
    """A record for each size that is shown, ready to be read: all numbers are written out."""
    path, sizes = facts.path, shown_sizes(facts)
    most = _most_rows(path, sizes)
    before: list[str] = []
    found = []
    for size in sizes:
        inside = path.names(size) if path.group_labels is None else [str(label) for label in path.groups(size)]
        cells = rows(path, size, most)
        hidden = len(path[size].support) - (len(cells) - 1)
        found.append(
            {
                "size": size,
                "label": count(size, facts.noun),
                "entered": [name for name in inside if name not in set(before)],
                "left": [name for name in before if name not in set(inside)],
                "explained": percent(path.explained(size)),
                "score": score_text(path.choice, size),
                "price": None if path.prices is None else short_number(path.cost(size)),
                "compared": compared(facts, size),
                "rows": cells,
                "hidden": f"The {len(cells) - 1} features worth most are listed, and {hidden} are not."
                if hidden
                else "",
            }
        )
        before = inside
    return found


def numbered(found: list[dict[str, Any]], n_names: int, words: list[str]) -> list[dict[str, Any]]:
    """The records with numbers in place of names, which are appended to ``words``: a name is in the page once."""
    place = {word: number for number, word in enumerate(words)}

    def number_of(word: str) -> int:
        if word not in place:
            place[word] = len(words)
            words.append(word)
        return place[word]

    return [
        {
            **record,
            "entered": [number_of(name) for name in record["entered"]],
            "left": [number_of(name) for name in record["left"]],
            "rows": [[*map(number_of, cells[:n_names]), *cells[n_names:]] for cells in record["rows"]],
        }
        for record in found
    ]


def score_head(choice: Choice) -> str:
    """What the scores are called."""
    if not choice.by_folds:
        return choice.criterion_name
    return "Explained on held-out rows" if choice.scoring == EXPLAINED else f"{choice.scoring} on held-out rows"


def score_text(choice: Choice | None, size: int) -> str | None:
    """The score of a size with its standard error."""
    if choice is None:
        return None
    place = choice.position(size)
    if place is None:
        return NONE
    mean = float(choice.mean[place])
    if choice.standard_error is None:
        return number(mean)
    error = float(choice.standard_error[place])
    if choice.scoring == EXPLAINED:
        return f"{percent(mean)} (±{SPACE}{points(error)})"
    return f"{number(mean, 4)} (±{SPACE}{number(error, 2)})"


def compared(facts: ModelData, size: int) -> str:
    """What a size gains and costs beside the chosen one, in words."""
    if size == facts.size:
        return "This is the chosen size."
    path = facts.path
    fewer = size < facts.size
    sentence = f"{count(abs(size - facts.size), facts.noun)} {'fewer' if fewer else 'more'} than chosen: "
    sentence = sentence[0].upper() + sentence[1:] + _difference(path, size, facts.size)
    if path.prices is not None:
        change = path.cost(size) - path.cost(facts.size)
        than = f"{short_number(path.cost(size))} instead of {short_number(path.cost(facts.size))}"
        how = f"{short_number(abs(change))} {'cheaper' if change < 0 else 'dearer'} ({than})" if change else "as dear"
        sentence += f", and {how}"
    return sentence + "."


def _difference(path: Path, size: int, chosen: int) -> str:
    choice = path.choice
    place, at = (None, None) if choice is None else (choice.position(size), choice.position(chosen))
    if choice is None or place is None or at is None:
        text = _in_points(path.explained(size) - path.explained(chosen), "explained on the data of the fit")
        return text if choice is None else f"{text} (this size was not scored on held-out rows)"
    change = float(choice.mean[place] - choice.mean[at])
    if choice.standard_error is None:
        return f"{choice.criterion_name} {number(abs(change), 3)} {'higher, which is worse' if change > 0 else 'lower'}"
    error = float(choice.standard_error[at])
    if choice.scoring == EXPLAINED:
        text, unit = _in_points(change, "explained on held-out rows"), f"{points(error)} percentage points"
    else:
        better = "higher" if change > 0 else "lower"
        text, unit = f"{choice.scoring} {number(abs(change), 3)} {better} on held-out rows", number(error, 2)
    return f"{text}, {'within' if abs(change) <= error else 'more than'} one standard error ({unit})"


def _in_points(change: float, what: str) -> str:
    if abs(change) < 0.0005:
        return f"as much {what}"
    return f"{points(abs(change))} percentage points {'more' if change > 0 else 'less'} {what}"


def _most_rows(path: Path, sizes: list[int]) -> int | None:
    """How many rows each table may have at most, so that all together stay small."""
    lengths = np.array([len(path[size].support) for size in sizes])
    allowed = MOST_CELLS // len(layout(path).heads)
    if lengths.sum() <= allowed:
        return None
    limits = np.arange(1, lengths.max() + 1)
    totals = np.array([np.minimum(lengths, limit).sum() for limit in limits])
    return max(10, int(limits[totals <= allowed].max(initial=10)))
