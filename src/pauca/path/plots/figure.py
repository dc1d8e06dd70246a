"""The figure: its panels below one another, over the same sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pauca.path.path import Path
from pauca.path.plots.panels import draw_coefficients, draw_fit, draw_score

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_path(path: Path, ax: Axes | None = None) -> Axes:
    """All panels in a new figure, or the one that tells most where there is room for one."""
    try:
        import matplotlib.pyplot as plt
        from matplotlib.ticker import MaxNLocator
    except ImportError as error:
        raise ImportError("plot needs matplotlib: pip install matplotlib, or pauca with its extra [plots]") from error
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
