"""Gaussian graphs with few edges: the likelihood as an objective, edge by edge."""

from pauca.graphs.edges import Edges
from pauca.graphs.errors import NoMaximumError
from pauca.graphs.objective import GaussianGraph

__all__ = ["Edges", "GaussianGraph", "NoMaximumError"]
