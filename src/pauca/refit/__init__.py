"""Minimising small problems: closed forms that are kept up to date, and Newton's method."""

from pauca.refit.inverse_factor import InverseFactor
from pauca.refit.newton import Minimum, Smooth, minimise

__all__ = ["InverseFactor", "Minimum", "Smooth", "minimise"]
