"""Colours and places that all pictures share."""

from __future__ import annotations

NAMED_LINES = 12
BLUE, GREY, INK = "#1f5a99", "#c4c9cf", "#444444"
# Told apart by those who see no red or green, and with their two kinds of line in print without colours.
COLOURS = ("#1f5a99", "#b3480f", "#2e7d4f", "#8a3a8f", "#6b5a00", "#3d3d3d")


def apart(wished: list[float], gap: float, bottom: float, top: float) -> list[float]:
    """Heights in the same order, at least ``gap`` apart and within the panel, near those that are wished for.

    Runs that are too close spread about their middle, and take in what they then touch.
    """
    runs: list[tuple[float, int]] = []  # the middle of a run, and how many it holds
    for height in wished:
        middle, many = height, 1
        while True:
            half = gap * (many - 1) / 2
            middle = min(max(middle, bottom + half), top - half)
            if not runs or runs[-1][0] + gap * (runs[-1][1] - 1) / 2 + gap <= middle - half + 1e-12:
                break
            before, count = runs.pop()
            middle, many = (middle * many + before * count) / (many + count), many + count
        runs.append((middle, many))
    return [middle + gap * (place - (many - 1) / 2) for middle, many in runs for place in range(many)]
