"""Minimising small problems: closed forms that are kept up to date, and Newton's method."""

from pauca.solvers.inverse_factor import InverseFactor
from pauca.solvers.newton import LAST_STEP_BELOW, Minimum, Smooth, minimise

__all__ = ["LAST_STEP_BELOW", "InverseFactor", "Minimum", "Smooth", "minimise"]
