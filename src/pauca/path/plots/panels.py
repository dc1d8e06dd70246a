"""The panels: share explained, score on rows held out, coefficients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pauca.path.choice import EXPLAINED
from pauca.path.curves import coefficient_curves, score_range
from pauca.path.path import Path, column_names
from pauca.path.plots.looks import BLUE, COLOURS, GREY, INK, NAMED_LINES, apart
from pauca.path.plots.words import change, plain, short, short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Beyond this many sizes the names would overlap; the curve alone is drawn.
NAMED_UP_TO = 15


def draw_fit(path: Path, ax: Axes) -> None:
    """Share explained against size, or the objective where there is no share.

    Each step is labelled with the features that came and went.
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
    ax.set_title(f"{'Accuracy' if rises else 'Objective'} against size (on the data of the fit)", loc="left")
    ax.margins(x=0.08, y=0.08)
    if rises:
        ax.set_ylim(bottom=min(0.0, *heights))


def draw_score(path: Path, ax: Axes) -> None:
    """What the sizes score on rows held out, give or take a standard error, or what a criterion says of them."""
    choice = path.choice
    assert choice is not None
    percent = choice.scoring == EXPLAINED
    unit = 100.0 if percent else 1.0
    mean = unit * choice.mean
    ax.plot(choice.sizes, mean, marker="o", markersize=4, color=BLUE)
    if choice.standard_error is not None:
        error = unit * choice.standard_error
        ax.fill_between(choice.sizes, mean - error, mean + error, color=BLUE, alpha=0.18, linewidth=0)
        ax.set_title("Score on rows held out (mean of the folds, \N{PLUS-MINUS SIGN} one standard error)", loc="left")
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
    if choice.best != choice.chosen:
        place = choice.place(choice.best)
        ax.plot([choice.best], [mean[place]], "o", markersize=9, fillstyle="none", color=INK)
        ax.annotate(
            f"best: {choice.best}",
            (choice.best, mean[place]),
            xytext=(0, -16),
            textcoords="offset points",
            ha="center",
            fontsize=8,
            color=INK,
        )


def draw_coefficients(path: Path, ax: Axes) -> None:
    """Coefficients over the sizes, each in parts of its own largest; the names of those worth most stand beside."""
    curves = coefficient_curves(path)
    ends = []
    names = column_names(path.column_names, curves.columns[:NAMED_LINES])
    short_forms = short_names(names)
    for row, line in reversed(list(enumerate(curves.relative))):
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
    ax.set_ylabel(f"coefficient\n({over}each in parts of its largest)")
    ax.set_title("Coefficients over size", loc="left")


def _name_ends(ax: Axes, ends: list[tuple[float, int, str, str]], last_size: int) -> None:
    """Write names to the right of the panel, as near to the ends of their lines as there is room for.

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
    heights = apart([height for height, *_ in staying], 0.075 * (top - bottom), bottom, top)
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
