"""Pictures of a path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pauca.path.path import Path

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Beyond this many sizes the names would overlap; the curve alone is drawn.
NAMED_UP_TO = 15
LONGEST_NAME = 20


def plot_path(path: Path, ax: Axes | None = None) -> Axes:
    """Share explained against the number of features; each step is labelled with the features that came and went."""
    try:
        import matplotlib.pyplot as plt
        from matplotlib.ticker import MaxNLocator
    except ImportError as error:
        raise ImportError("plot needs matplotlib: pip install matplotlib, or pauca with its extra [plots]") from error
    if ax is None:
        _, ax = plt.subplots(figsize=(8, 4.8), layout="constrained")
    table = path.table()
    sizes = [record["size"] for record in table]
    explained = [100 * record["explained"] for record in table]
    ax.plot(sizes, explained, marker="o", markersize=4, color="#1f5a99")
    if len(sizes) <= NAMED_UP_TO:
        for record, height in zip(table[1:], explained[1:], strict=True):
            ax.annotate(
                _change(record["entered"], record["left"]),
                (record["size"], height),
                xytext=(4, -6),
                textcoords="offset points",
                rotation=-45,
                rotation_mode="anchor",
                ha="left",
                va="top",
                fontsize=8,
                color="#444444",
            )
    ax.set_xlabel("number of features" if path.group_labels is None else "number of groups")
    ax.set_ylabel("explained (%)")
    ax.set_title("Accuracy against size (on the data of the fit)", loc="left")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.spines[["top", "right"]].set_visible(False)
    ax.margins(x=0.08, y=0.08)
    ax.set_ylim(bottom=0)
    return ax


def _change(entered: list[str], left: list[str]) -> str:
    """``+bmi``, or a line each for ``+s2``, ``+s4`` and ``-s3`` where a swap came with the step; long lists are cut."""
    words = [f"+{_short(name)}" for name in entered] + [f"\N{MINUS SIGN}{_short(name)}" for name in left]
    return "\n".join(words if len(words) <= 3 else [*words[:3], "\N{HORIZONTAL ELLIPSIS}"])


def _short(name: str) -> str:
    # Long names tend to differ at their ends, so the middle goes.
    half = LONGEST_NAME // 2
    return name if len(name) <= LONGEST_NAME else f"{name[:half]}\N{HORIZONTAL ELLIPSIS}{name[-half:]}"
