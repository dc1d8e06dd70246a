"""Chains of labels: what was observed, and the conditional random field as a function of its weights."""

from pauca.sequences.chain import ChainField
from pauca.sequences.observations import Observations
from pauca.sequences.passes import Passes

__all__ = ["ChainField", "Observations", "Passes"]
