"""Any dense linear model made sparse, by truncation or by random draws, and what that costs."""

from pauca.sparsification.draws import draw
from pauca.sparsification.result import Sparsified
from pauca.sparsification.sampling import Draw
from pauca.sparsification.sparsify import sparsify

__all__ = ["Draw", "Sparsified", "draw", "sparsify"]
