"""Objectives: data and a loss made into a function of the coefficients. They hold no iterate."""

from pauca.objectives.gram import GramRows
from pauca.objectives.least_squares import LeastSquares

__all__ = ["GramRows", "LeastSquares"]
