"""Sparse models drawn from dense ones, and what that costs."""

from pauca.sampling.draws import METHODS, Draw, Sampling, draw, lay_out

__all__ = ["METHODS", "Draw", "Sampling", "draw", "lay_out"]
