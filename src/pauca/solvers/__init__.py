"""Minimising small problems: Newton and quasi-Newton steps, line searches, and factors kept up to date."""

from pauca.solvers.factorisation import InverseFactor
from pauca.solvers.newton import LAST_STEP_BELOW, Minimum, Smooth, minimise

__all__ = ["LAST_STEP_BELOW", "InverseFactor", "Minimum", "Smooth", "minimise"]
