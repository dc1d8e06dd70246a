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
