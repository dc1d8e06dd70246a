"""Objectives: functions of the coefficients, made of data and a loss. They hold no iterate."""

from pauca.objectives.addition_previews import Additions, previews_of_additions
from pauca.objectives.joint_lines import joint_line_gains
from pauca.objectives.least_squares import GramRows, LeastSquares, RowStack
from pauca.objectives.merged_rows import Rows, split
from pauca.objectives.restricted import Restricted, WarmStart, warm_start_near, weighted_gram
from pauca.objectives.smooth import Bounds, SmoothObjective

__all__ = [
    "Additions",
    "Bounds",
    "GramRows",
    "LeastSquares",
    "Restricted",
    "RowStack",
    "Rows",
    "SmoothObjective",
    "WarmStart",
    "joint_line_gains",
    "previews_of_additions",
    "split",
    "warm_start_near",
    "weighted_gram",
]
