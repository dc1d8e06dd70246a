"""Sparse models drawn from dense ones, and what that costs."""

from pauca.sampling.base import Draw, Sampling, Spread, Unbiased
from pauca.sampling.draws import METHODS, draw, lay_out
from pauca.sampling.trials import Expectation, Fitted, Trials

__all__ = [
    "METHODS",
    "Draw",
    "Expectation",
    "Fitted",
    "Sampling",
    "Spread",
    "Trials",
    "Unbiased",
    "draw",
    "lay_out",
]
