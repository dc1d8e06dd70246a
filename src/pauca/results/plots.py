"""Plots of a path over its sizes, and of a stability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pauca.results.choice import EXPLAINED, Choice, standard_errors
from pauca.results.path import Path
from pauca.results.stability import Stability
from pauca.results.surface import NO_SCORE, Surface
from pauca.wording import column_names, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pauca.results.certificate import Certificate

NAMED_LINES = 12
# Lines beyond these, the least important, would only be a grey surface.
DRAWN_LINES = 40
# Beyond this many sizes the names would overlap; the curve alone is drawn.
NAMED_UP_TO = 15
LONGEST_NAME = 20
CUT = "\N{HORIZONTAL ELLIPSIS}"

BLUE, GREY, INK = "#1f5a99", "#c4c9cf", "#444444"
# Distinguishable without red and green, and in print by two kinds of line.
COLOURS = (BLUE, "#b3480f", "#2e7d4f", "#8a3a8f", "#6b5a00", "#3d3d3d")


@dataclass(frozen=True, eq=False)
class CoefficientCurves:
    """Coefficients over the sizes above 0, each feature's divided by the largest it ever has."""

    sizes: list[int]
    columns: list[int]
    """The features that are in any model, the most important first."""
    relative: np.ndarray
    """Shape (columns, sizes), NaN where the feature is not in the model; the norm over several outputs has no sign."""
    signed: bool
    """Whether there is a single output, so that signs mean something."""


def coefficient_curves(path: Path, chosen: int | None = None) -> CoefficientCurves:
    """The coefficients of all features over all sizes; ordered by importance in the chosen model."""
    sizes = [size for size in path.sizes if size]
    columns = by_importance(path, reference_size(path) if chosen is None else chosen)
    place = {column: row for row, column in enumerate(columns)}
    values = np.full((len(columns), len(sizes)), np.nan)
    signed = path.output_names is None or len(path.output_names) == 1
    for position, size in enumerate(sizes):
        model = path[size]
        coef = np.atleast_2d(model.coef)
        rows = [place[column] for column in model.support.tolist()]
        values[rows, position] = coef[0] if signed else np.linalg.norm(coef, axis=0)
    largest = np.nanmax(np.abs(values), axis=1, keepdims=True) if values.size else np.ones((len(columns), 1))
    return CoefficientCurves(sizes, columns, values / np.where(largest > 0, largest, 1.0), signed)


def by_importance(path: Path, size: int) -> list[int]:
    """All columns that are in any model: those of the model of one size first, each part in the order of importance.

    Other columns are ordered by their largest importance in any model. Columns of a group share its importance.
    """
    most: dict[int, float] = {}
    for model in path:
        for column, importance in _importances(path, model.size):
            most[column] = max(most.get(column, importance), importance)
    here = dict(_importances(path, size))
    return sorted(most, key=lambda column: (column not in here, -here.get(column, most[column]), column))


def reference_size(path: Path) -> int:
    """The size that was chosen, or the largest."""
    return path.sizes[-1] if path.choice is None else path.choice.chosen


def score_range(choice: Choice) -> tuple[float, float]:
    """The range of scores to draw: a steep fall far beyond the best size may leave the picture.

    A model with far too many features can be so wrong on held-out rows that everything else would be flat beside it.
    """
    error = np.zeros(len(choice.mean)) if choice.standard_error is None else choice.standard_error
    low, high = choice.mean - error, choice.mean + error
    upto = choice.sizes <= max(choice.best, choice.chosen)
    if choice.by_folds:
        bottom, top = low[upto].min(), high[upto].max()
        bottom = max(low.min(), bottom - 0.3 * (top - bottom))
    else:
        bottom, top = low.min(), high[upto].max()
        top = min(high.max(), top + 0.3 * (top - bottom))
    margin = 0.06 * (top - bottom) or 0.5
    return float(bottom - margin), float(top + margin)


def _importances(path: Path, size: int) -> list[tuple[int, float]]:
    model = path[size]
    importance = dict(zip(model.units.tolist(), np.nan_to_num(model.importance).tolist(), strict=True))
    units = model.support if path.owner is None else path.owner[model.support]
    return [(column, importance[unit]) for column, unit in zip(model.support.tolist(), units.tolist(), strict=True)]


def spread_out(desired: list[float], gap: float, bottom: float, top: float) -> list[float]:
    """Heights in the same order, at least ``gap`` apart and within the panel, near the desired ones.

    Runs that are too close spread about their middle, and take in what they then touch.
    """
    runs: list[tuple[float, int]] = []  # the middle of a run, and how many it holds
    for height in desired:
        middle, many = height, 1
        while True:
            half = gap * (many - 1) / 2
            middle = min(max(middle, bottom + half), top - half)
            if not runs or runs[-1][0] + gap * (runs[-1][1] - 1) / 2 + gap <= middle - half + 1e-12:
                break
            before, count = runs.pop()
            middle, many = (middle * many + before * count) / (many + count), many + count
        runs.append((middle, many))
    return [middle + gap * (position - (many - 1) / 2) for middle, many in runs for position in range(many)]


def change(entered: Sequence[str], left: Sequence[str]) -> str:
    """``+bmi``, or a line each for ``+s2``, ``+s4`` and ``-s3`` where a swap came with the step; long lists are cut."""
    words = [f"+{name}" for name in entered] + [f"\N{MINUS SIGN}{name}" for name in left]
    return "\n".join(words if len(words) <= 3 else [*words[:2], f"and {len(words) - 2} more"])


def short(name: str, longest: int = LONGEST_NAME) -> str:
    """A name in one line; of long ones the middle goes, since they tend to differ at their ends."""
    line = _in_one_line(name)
    half = longest // 2
    return line if len(line) <= longest else f"{line[:half]}{CUT}{line[-half:]}"


def short_names(names: Sequence[str], longest: int = LONGEST_NAME) -> dict[str, str]:
    """Short forms of names; those that would be equal keep the part in which they differ instead of their ends."""
    found: dict[str, str] = {}
    alike: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        alike.setdefault(short(name, longest), []).append(name)
    for form, same in alike.items():
        lines = [_in_one_line(name) for name in same]
        if len(set(lines)) == 1:
            found.update(dict.fromkeys(same, form))
            continue
        first = _in_common(lines)
        last = _in_common([line[first:][::-1] for line in lines])
        for name, line in zip(same, lines, strict=True):
            middle = short(line[first : len(line) - last], longest - 2)
            before = line[max(0, first - (longest - 2 - len(middle))) : first].partition(" ")[2]  # whole words of it
            found[name] = f"{CUT}{before}{middle}{CUT if last else ''}"
    return found


def _in_one_line(name: str) -> str:
    return printable(" ".join(name.split()))


def _in_common(lines: Sequence[str]) -> int:
    """How many characters all lines begin with."""
    shortest = min(map(len, lines))
    return next((position for position in range(shortest) if len({line[position] for line in lines}) > 1), shortest)


def plain(text: str) -> str:
    """Text as matplotlib should take it: to it, dollars are mathematics."""
    return text.replace("$", r"\$")


def draw_fit(path: Path, ax: Axes) -> None:
    """Share explained against size, or the objective where there is no share.

    Each step is labelled with the features that were added and removed.
    """
    table = path.table()
    sizes = [record["size"] for record in table]
    rises = path.floor is not None
    heights = [100 * record["explained"] if rises else record["objective"] for record in table]
    ax.plot(sizes, heights, marker="o", markersize=4, color=BLUE)
    if len(sizes) <= NAMED_UP_TO:
        names = short_names([name for record in table for name in record["entered"]])
        for record, height in zip(table[1:], heights[1:], strict=True):
            came, went = ([names[name] for name in record[key]] for key in ("entered", "left"))
            ax.annotate(
                plain(change(came, went)),
                (record["size"], height),
                xytext=(4, -6 if rises else 6),
                textcoords="offset points",
                rotation=-45 if rises else 45,
                rotation_mode="anchor",
                ha="left",
                va="top" if rises else "bottom",
                fontsize=8,
                color=INK,
            )
    ax.set_ylabel("explained (%)" if rises else "objective")
    what = "Share of the constant's loss explained" if rises else "Objective"
    ax.set_title(f"{what}, on the data of the fit", loc="left")
    if len(sizes) > NAMED_UP_TO:
        ax.annotate(
            f"more than {NAMED_UP_TO} sizes: path_.table() lists what enters and leaves",
            (0.98, 0.05),
            xycoords="axes fraction",
            ha="right",
            fontsize=8,
            color=INK,
        )
    ax.margins(x=0.08, y=0.08)
    if rises:
        ax.set_ylim(bottom=min(0.0, *heights))


def draw_score(path: Path, ax: Axes) -> None:
    """The scores of the sizes on held-out rows, with a band of one standard error, or a criterion."""
    choice = path.choice
    assert choice is not None
    percent = choice.scoring == EXPLAINED
    unit = 100.0 if percent else 1.0
    mean = unit * choice.mean
    ax.plot(choice.sizes, mean, marker="o", markersize=4, color=BLUE)
    if choice.standard_error is not None:
        error = unit * choice.standard_error
        ax.fill_between(choice.sizes, mean - error, mean + error, color=BLUE, alpha=0.18, linewidth=0)
        what = "Share of the constant's loss explained" if percent else plain(short(choice.scoring, 40))
        ax.set_title(f"{what}, on held-out rows (\N{PLUS-MINUS SIGN} one standard error)", loc="left")
        ax.set_ylabel("explained (%)" if percent else plain(short(choice.scoring)))
    else:
        ax.set_title(f"{choice.criterion_name} (lower is better)", loc="left")
        ax.set_ylabel(choice.criterion_name)
    ax.set_ylim(*(unit * height for height in score_range(choice)))
    ax.axvline(choice.chosen, color=COLOURS[1], linewidth=1.2, linestyle="--")
    late = choice.chosen > np.mean(choice.sizes)
    ax.annotate(
        f"chosen: {choice.chosen}",
        (choice.chosen, 0.04 if choice.by_folds else 0.92),
        xycoords=("data", "axes fraction"),
        xytext=(-5 if late else 5, 0),
        textcoords="offset points",
        ha="right" if late else "left",
        color=COLOURS[1],
    )
    position = choice.position(choice.best)
    # The best may be so at another ridge than that of the curve, or count as lucky: then it is not the best to see.
    if choice.best != choice.chosen and (not choice.by_folds or mean[position] >= mean[choice.sizes == choice.chosen]):
        ax.plot([choice.best], [mean[position]], "o", markersize=9, fillstyle="none", color=INK)
        ax.annotate(
            f"best: {choice.best}",
            (choice.best, mean[position]),
            xytext=(0, -16),
            textcoords="offset points",
            ha="center",
            fontsize=8,
            color=INK,
        )


def surface_range(surface: Surface) -> tuple[float, float]:
    """The scores between which colours should differ: most candidates are not far below the best."""
    finite = surface.mean[surface.mean > NO_SCORE]
    best = float(finite.max())
    return min(float(np.quantile(finite, 0.25)), best - 1e-9), best


def as_good(choice: Choice) -> np.ndarray:
    """Mask of the candidates within the rule's standard errors of the best, shape (s, r, m)."""
    assert choice.surface is not None
    mean, error = choice.surface.mean, choice.surface.standard_error
    return mean >= mean.max() - standard_errors(choice.rule) * error - 1e-12


def plot_surface(path: Path, ax: Axes | None = None) -> Axes:
    """Scores on held-out rows, size against ridge, for the search that the chosen model comes from."""
    choice = path.choice
    if choice is None or choice.surface is None:
        raise ValueError("No ridges were compared in this fit: there is nothing to draw.")
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plot needs matplotlib: pip install matplotlib, or pauca with its extra [plots]") from error
    surface, percent = choice.surface, choice.scoring == EXPLAINED
    if ax is None:
        _, ax = plt.subplots(figsize=(9, 3.8), layout="constrained")
    search = int(np.flatnonzero(surface.search_ridges == surface.search_ridge)[0])
    unit, (low, high) = 100.0 if percent else 1.0, surface_range(surface)
    image = ax.imshow(
        unit * np.maximum(surface.mean[search], low),
        origin="lower",
        aspect="auto",
        cmap="Blues",
        vmin=unit * low,
        vmax=unit * high,
    )
    rows, columns = np.nonzero(as_good(choice)[search])
    ax.plot(columns, rows, "o", markersize=4, color="white", markeredgecolor=INK, linestyle="none")
    column = int(np.flatnonzero(surface.sizes == choice.chosen)[0])
    row = int(np.flatnonzero(surface.ridges == surface.ridge)[0])
    ax.plot([column], [row], "s", markersize=13, fillstyle="none", color=COLOURS[1], markeredgewidth=2)
    step = max(1, len(surface.sizes) // 12)
    ax.set_xticks(range(0, len(surface.sizes), step), surface.sizes[::step].tolist())
    ax.set_yticks(range(len(surface.ridges)), [f"{ridge:.3g}" for ridge in surface.ridges])
    ax.set_xlabel(f"number of {path.counted}s")
    ax.set_ylabel("ridge")
    what = "Share explained" if percent else plain(short(choice.scoring, 40))
    ax.set_title(f"{what} on held-out rows (square: chosen; dots: as good as the best)", loc="left")
    ax.figure.colorbar(image, ax=ax, label="explained (%)" if percent else plain(short(choice.scoring)))
    return ax


def draw_coefficients(path: Path, ax: Axes) -> None:
    """Coefficients over the sizes, each relative to its largest; the most important are named."""
    curves = coefficient_curves(path)
    ends = []
    names = column_names(path.column_names, curves.columns[:NAMED_LINES])
    short_forms = short_names(names)
    for row, line in reversed(list(enumerate(curves.relative[:DRAWN_LINES]))):
        named = row < NAMED_LINES
        colour = COLOURS[row % len(COLOURS)] if named else GREY
        style = "-" if row < len(COLOURS) or not named else "--"
        marker = "o" if len(curves.sizes) <= 2 * NAMED_UP_TO or np.isfinite(line).sum() == 1 else None
        ax.plot(curves.sizes, line, style, color=colour, marker=marker, markersize=3, linewidth=1.6 if named else 0.8)
        if named:
            last = int(np.flatnonzero(np.isfinite(line))[-1])
            ends.append((float(line[last]), curves.sizes[last], plain(short_forms[names[row]]), colour))
    ax.axhline(0, color=INK, linewidth=0.6)
    ax.set_ylim(-1.12 if np.nanmin(curves.relative, initial=0) < 0 else -0.06, 1.12)
    _name_ends(ax, ends, curves.sizes[-1])
    over = "" if curves.signed else "norm over outputs,\n"
    ax.set_ylabel(f"coefficient\n({over}relative to its largest)")
    named, every = min(NAMED_LINES, len(curves.columns)), len(curves.columns)
    others = "the others grey" if every <= DRAWN_LINES else f"{DRAWN_LINES - named} more grey, the rest is left out"
    which = "" if named == every else f" (the {named} most important of {every} features are named, {others})"
    ax.set_title(f"Coefficients{which}", loc="left")


def _name_ends(ax: Axes, ends: list[tuple[float, int, str, str]], last_size: int) -> None:
    """Write names to the right of the panel, as near to the ends of their lines as possible.

    The name of a feature that leaves before the last size stands where it leaves.
    """
    bottom, top = ax.get_ylim()
    for height, size, name, colour in ends:
        if size < last_size:
            backing = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.5}
            ax.annotate(
                name, (size, height), (4, 3), textcoords="offset points", fontsize=8, color=colour, bbox=backing
            )
    staying = sorted(end for end in ends if end[1] == last_size)
    heights = spread_out([height for height, *_ in staying], 0.075 * (top - bottom), bottom, top)
    for (end, size, name, colour), height in zip(staying, heights, strict=True):
        ax.annotate(
            name,
            (size, end),
            xytext=(1.03, (height - bottom) / (top - bottom)),
            textcoords="axes fraction",
            va="center",
            fontsize=8,
            color=colour,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.5, "relpos": (0, 0.5), "shrinkB": 2},
        )


def plot_path(path: Path, ax: Axes | None = None) -> Axes:
    """All panels in a new figure, or the most informative one where there are axes for one."""
    plt = _pyplot()
    from matplotlib.ticker import MaxNLocator

    if ax is not None:
        draw = draw_fit if path.choice is None else draw_score
        draw(path, ax)
        axes = [ax]
    else:
        panels = [(draw_fit, 3.6)]
        panels += [] if path.choice is None else [(draw_score, 2.8)]
        panels += [(draw_coefficients, 3.4)] if path.sizes[-1] > 0 else []
        heights = [height for _, height in panels]
        _, grid = plt.subplots(
            len(panels),
            figsize=(9, sum(heights)),
            sharex=True,
            squeeze=False,
            layout="constrained",
            gridspec_kw={"height_ratios": heights},
        )
        axes = list(grid[:, 0])
        for (draw, _), panel in zip(panels, axes, strict=True):
            draw(path, panel)
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
    axes[-1].set_xlabel(f"number of {path.counted}s")
    axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    return axes[0]


def plot_certificate(certificate: Certificate, ax: Axes | None) -> Axes:
    """Objective and lower bound against size; what is proved is filled."""
    try:
        import matplotlib.pyplot as plt
        from matplotlib.ticker import MaxNLocator
    except ImportError as error:
        raise ImportError("plot needs matplotlib: pip install matplotlib, or pauca with its extra [plots]") from error
    if not certificate.has_bounds:
        raise ValueError(f"Nothing to draw: {certificate.reason}.")
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
    sizes, table = certificate.sizes, certificate.table()
    objective, bound = ([record[key] for record in table] for key in ("objective", "lower_bound"))
    ax.fill_between(sizes, bound, objective, color=BLUE, alpha=0.18, linewidth=0, label="gap")
    ax.plot(sizes, objective, color=BLUE, linewidth=1)
    ax.plot(sizes, bound, color=INK, linewidth=1, linestyle="--", label="lower bound")
    for proved, label in ((True, "proved to be best"), (False, "not proved")):
        some = [(record["size"], record["objective"]) for record in table if record["proved"] is proved]
        if some:
            ax.plot(*zip(*some, strict=True), "o", markersize=5, color=BLUE, label=label, mfc=None if proved else "w")
    ax.set_ylim(bottom=0)
    ax.set_xlabel("number of features")
    ax.set_ylabel("objective" if certificate.search_ridge is None else "objective of the search")
    ax.set_title("How far from the best the models can be", loc="left")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    return ax


def plot_stability(stability: Stability, ax: Axes | None, most: int) -> Axes:
    """Bars of the share of resamples in which each feature was chosen; those in the model are filled."""
    plt = _pyplot()
    from matplotlib.patches import Patch

    records = stability.table()[:most]
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 1.2 + 0.3 * len(records)), layout="constrained")
    for position, record in enumerate(records):
        filled = BLUE if record["chosen"] else "none"
        ax.barh(position, 100 * record["frequency"], color=filled, edgecolor=BLUE, height=0.7)
        ax.annotate(
            f"{100 * record['frequency']:.0f}",
            (100 * record["frequency"], position),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    ax.set_yticks(range(len(records)), [plain(short(record["name"], 3 * LONGEST_NAME)) for record in records])
    ax.invert_yaxis()
    ax.set_xlim(0, 108)
    ax.set_xlabel("chosen on this share of random halves of the rows (%)")
    ax.set_title(f"Stability of {stability.size} {stability.noun}s over {stability.n_resamples} resamples", loc="left")
    ax.spines[["top", "right"]].set_visible(False)
    keys = [Patch(facecolor=BLUE, label="in the model"), Patch(facecolor="none", edgecolor=BLUE, label="not")]
    ax.legend(handles=keys, frameon=False, loc="lower right")
    return ax


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plot needs matplotlib; install it with: pip install matplotlib") from error
    return plt
