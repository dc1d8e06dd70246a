"""Any dense linear model made sparse, by truncation or by random draws, and what that costs."""

from pauca.sparsification.api import sparsify
from pauca.sparsification.result import Sparsified

__all__ = ["Sparsified", "sparsify"]
