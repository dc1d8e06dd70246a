"""Linear models inside an l1 ball, found step by step, with a proof of how far they are from the best one there."""

from pauca.ball.objective import BallObjective, Iterate
from pauca.ball.search import METHODS, STEPS, Certificate, Search, Settings

__all__ = ["METHODS", "STEPS", "BallObjective", "Certificate", "Iterate", "Search", "Settings"]
