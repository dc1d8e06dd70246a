"""Objectives: functions of the coefficients, made of data and a loss. They hold no iterate."""

from pauca.objectives.approximate_refits import FittedModel, Previews
from pauca.objectives.joint_coordinate_gains import joint_line_gains
from pauca.objectives.least_squares import GramRows, LeastSquares, RowStack
from pauca.objectives.merged_rows import Rows, split
from pauca.objectives.newton_one_output import has_cheap_hessian
from pauca.objectives.restricted import Restricted, WarmStart, warm_start_near, weighted_gram
from pauca.objectives.smooth import Bounds, SmoothObjective

__all__ = [
    "Bounds",
    "FittedModel",
    "GramRows",
    "LeastSquares",
    "Previews",
    "Restricted",
    "RowStack",
    "Rows",
    "SmoothObjective",
    "WarmStart",
    "has_cheap_hessian",
    "joint_line_gains",
    "split",
    "warm_start_near",
    "weighted_gram",
]
