"""Gaussian graphs with few edges: the likelihood as an objective, edge by edge."""

from pauca.graphs.edges import Edges
from pauca.graphs.errors import DependentNodesError, NoMaximumError
from pauca.graphs.existence import complete_value, safe_edges
from pauca.graphs.names import EdgeNames
from pauca.graphs.objective import GaussianGraph
from pauca.graphs.path import GraphPath
from pauca.graphs.subset import GraphSubset

__all__ = [
    "DependentNodesError",
    "EdgeNames",
    "Edges",
    "GaussianGraph",
    "GraphPath",
    "GraphSubset",
    "NoMaximumError",
    "complete_value",
    "safe_edges",
]
