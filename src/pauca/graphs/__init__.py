"""Gaussian graphs with few edges: the likelihood as an objective, edge by edge."""

from pauca.graphs.edges import Edges
from pauca.graphs.errors import NoMaximumError
from pauca.graphs.objective import GaussianGraph
from pauca.graphs.path import GraphPath
from pauca.graphs.subset import GraphSubset

__all__ = ["Edges", "GaussianGraph", "GraphPath", "GraphSubset", "NoMaximumError"]
