"""Sparse models drawn from dense ones, and what that costs."""

from pauca.sampling.base import Draw, Sampling, Spread
from pauca.sampling.draws import METHODS, draw, lay_out

__all__ = ["METHODS", "Draw", "Sampling", "Spread", "draw", "lay_out"]
