"""A picture of how often features are chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pauca.path.stability import Stability

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_stability(stability: Stability, ax: Axes | None, most: int) -> Axes:
    """Bars of the share of resamples in which each feature was chosen; those in the model are filled."""
    try:
        import matplotlib.pyplot as plt
        from matplotlib.patches import Patch
    except ImportError as error:
        raise ImportError("plot needs matplotlib: pip install matplotlib, or pauca with its extra [plots]") from error
    records = stability.table()[:most]
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 1.2 + 0.3 * len(records)), layout="constrained")
    for place, record in enumerate(records):
        filled = "#1f5a99" if record["chosen"] else "none"
        ax.barh(place, 100 * record["frequency"], color=filled, edgecolor="#1f5a99", height=0.7)
        ax.annotate(
            f"{100 * record['frequency']:.0f}",
            (100 * record["frequency"], place),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    ax.set_yticks(range(len(records)), [record["name"] for record in records])
    ax.invert_yaxis()
    ax.set_xlim(0, 108)
    ax.set_xlabel("chosen on this share of random halves of the rows (%)")
    ax.set_title(f"Stability of {stability.size} {stability.noun}s over {stability.n_resamples} resamples", loc="left")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(
        handles=[
            Patch(facecolor="#1f5a99", label="in the model"),
            Patch(facecolor="none", edgecolor="#1f5a99", label="not"),
        ],
        frameon=False,
        loc="lower right",
    )
    return ax
