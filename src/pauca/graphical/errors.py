"""What can go wrong with a likelihood."""

from __future__ import annotations

import numpy as np

# A diagonal entry of the precision of correlations is 1 / (1 - R^2). Beyond this one node depends on its neighbours.
LARGEST_ENTRY = 1e10


class NoMaximumError(ValueError):
    """The likelihood of a graph rises without end: on some of its nodes the covariance is as good as singular.

    Attributes
    ----------
    nodes : ndarray
        Nodes of the block in question.
    """

    def __init__(self, nodes: np.ndarray) -> None:
        super().__init__(f"The likelihood has no maximum for the edges among the nodes {nodes.tolist()}.")
        self.nodes = nodes


class DependentNodesError(ValueError):
    """The correlations are singular whatever the number of rows: nodes are linear combinations of others.

    Attributes
    ----------
    nodes : ndarray
        Two that are the same up to their units, or all that others make up.
    are_alike : bool
        Whether it is the former.
    """

    def __init__(self, nodes: np.ndarray, *, are_alike: bool) -> None:
        super().__init__(f"The nodes {nodes.tolist()} are {'alike' if are_alike else 'combinations of others'}.")
        self.nodes = nodes
        self.are_alike = are_alike
