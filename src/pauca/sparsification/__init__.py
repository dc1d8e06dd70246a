"""Any dense linear model made sparse, by truncation or by random draws, and what that costs."""

from pauca.sparsification.api import sparsify
from pauca.sparsification.draws import draw
from pauca.sparsification.result import Sparsified
from pauca.sparsification.sampling import Draw

__all__ = ["Draw", "Sparsified", "draw", "sparsify"]
