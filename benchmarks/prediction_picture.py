"""``python -m benchmarks.prediction_picture FILE``: error against signal, of the runs that ``prediction`` has kept."""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from benchmarks.kept_runs import known_runs
from benchmarks.prediction import CORRELATIONS, FIRST_SEED, OURS, RATIOS, SETTINGS, Cell, key

METHODS = (OURS, "lasso", "relaxed lasso", "elastic net", "ridge", "abess")
MARKS = "osv^Dx"
FINE_TICKS, COARSE_TICKS = (1.02, 1.05, 1.1, 1.2), (1.0, 1.5, 2.0, 3.0, 5.0)


def draw_errors(seeds: range) -> plt.Figure:
    """Mean relative test errors, a panel for each setting and correlation."""
    figure, panels = plt.subplots(3, 3, figsize=(10, 8), sharex=True, sharey="row", layout="constrained")
    for (row, setting), (column, rho) in product(enumerate(SETTINGS), enumerate(CORRELATIONS)):
        panel = panels[row, column]
        for method, mark in zip(METHODS, MARKS, strict=True):
            errors = [mean_error(method, Cell(*setting, rho, snr), seeds) for snr in RATIOS]
            if None in errors:
                continue
            ours = method == OURS
            panel.plot(RATIOS, errors, marker=mark, ms=4, lw=2.2 if ours else 1, zorder=3 if ours else 2, label=method)
        n, p, s = setting
        panel.set_title(f"{n} rows, {p} columns, {s} matter; rho {rho:g}", fontsize=9)
        panel.set(xscale="log", yscale="log")
        panel.set_xticks(RATIOS, [f"{snr:g}" for snr in RATIOS])
        low, high = panel.get_ylim()
        ticks = FINE_TICKS if high < COARSE_TICKS[1] else COARSE_TICKS
        panel.set_yticks([tick for tick in ticks if low < tick < high])
        panel.yaxis.set_major_formatter("{x:g}")
        panel.minorticks_off()
        if row == 2:
            panel.set_xlabel("signal to noise")
        if column == 0:
            panel.set_ylabel("test error / that of the truth")
    panels[0, 0].legend(fontsize=8)
    return figure


def mean_error(method: str, cell: Cell, seeds: range) -> float | None:
    """The mean over the seeds; None where some of them were not run."""
    known = known_runs(method)
    found = [known[name][0] for name in (key(cell, seed) for seed in seeds) if name in known]
    return float(np.mean(found)) if len(found) == len(seeds) else None


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw error against signal from kept runs.")
    parser.add_argument("file", type=Path, help="where to write the picture")
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    draw_errors(range(FIRST_SEED, FIRST_SEED + options.seeds)).savefig(options.file)


if __name__ == "__main__":
    main()
