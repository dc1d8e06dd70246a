"""Objectives: data and a loss made into a function of the coefficients. They hold no iterate."""

from pauca.objectives.gram import GramRows
from pauca.objectives.guess import Guess, guess_near
from pauca.objectives.least_squares import LeastSquares
from pauca.objectives.restricted import Restricted, weighted_gram
from pauca.objectives.smooth import Bounds, SmoothObjective

__all__ = [
    "Bounds",
    "GramRows",
    "Guess",
    "LeastSquares",
    "Restricted",
    "SmoothObjective",
    "guess_near",
    "weighted_gram",
]
