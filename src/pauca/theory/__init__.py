"""Bounds: how many features, steps or samples suffice for an accuracy, and how many any method needs.

All accuracies are excesses of the objective Q, which is a weighted mean of losses with 1/2 in squared loss. All counts
are for single columns and one output. Each function names its theorem and corrections to the paper.
"""

from pauca.theory.constants import Constants
from pauca.theory.foba import (
    SelectionErrors,
    foba_additions,
    foba_additions_by_gradient,
    foba_errors,
    foba_exact,
    foba_features,
    foba_tolerance,
    foba_visible,
    isotropic_curvatures,
    noise_excess,
    noise_selection,
    noise_sparsity,
    noise_sparsity_for_excess,
    noise_tolerance,
    noise_tolerance_to_select,
    noise_tolerance_to_stop,
    noise_visible,
)
from pauca.theory.greedy import (
    ball_accuracy,
    ball_steps,
    forward_accuracy,
    forward_accuracy_if_curved,
    forward_features,
    forward_features_if_curved,
    norm_bound,
    replacement_features,
    replacement_swaps,
)
from pauca.theory.lower_bounds import (
    least_features_absolute,
    least_features_squared,
    tight_distribution,
    tight_error,
    tight_features,
)
from pauca.theory.sampling import (
    magnitude_draws,
    moment_draws,
    moment_norm,
    repeats,
    sampling_accuracy,
    sampling_features,
    sampling_features_if_curved,
)
from pauca.theory.stream import StreamPlan, stream_accuracy, stream_plan
from pauca.theory.table import Bound, BoundsTable, bounds_table

__all__ = [
    "Bound",
    "BoundsTable",
    "Constants",
    "SelectionErrors",
    "StreamPlan",
    "ball_accuracy",
    "ball_steps",
    "bounds_table",
    "foba_additions",
    "foba_additions_by_gradient",
    "foba_errors",
    "foba_exact",
    "foba_features",
    "foba_tolerance",
    "foba_visible",
    "forward_accuracy",
    "forward_accuracy_if_curved",
    "forward_features",
    "forward_features_if_curved",
    "isotropic_curvatures",
    "least_features_absolute",
    "least_features_squared",
    "magnitude_draws",
    "moment_draws",
    "moment_norm",
    "noise_excess",
    "noise_selection",
    "noise_sparsity",
    "noise_sparsity_for_excess",
    "noise_tolerance",
    "noise_tolerance_to_select",
    "noise_tolerance_to_stop",
    "noise_visible",
    "norm_bound",
    "repeats",
    "replacement_features",
    "replacement_swaps",
    "sampling_accuracy",
    "sampling_features",
    "sampling_features_if_curved",
    "stream_accuracy",
    "stream_plan",
    "tight_distribution",
    "tight_error",
    "tight_features",
]
