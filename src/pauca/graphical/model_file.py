"""Graphs as files: what a path of edges does not say of itself."""

from __future__ import annotations

import copy
import os
from dataclasses import fields, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pauca.export import save
from pauca.graphical.edges import EdgeNames
from pauca.graphical.path import GraphPath
from pauca.results.path import Path

LABELS = ("location_", "_nodes")
"""Arrays that a file holds beside the path: means, and names of the columns."""


class GraphFile:
    """A fitted graph that can be written to a file and read again."""

    def save(self: Any, path: str | os.PathLike[str]) -> None:
        """Write the fitted graph to a file of plain JSON, for ``pauca.load``.

        The file holds the settings, the names and the whole path, and no code. ``callback`` is left out. A file that is
        there already is replaced in one step, once the new one is whole.

        Parameters
        ----------
        path : str or path-like
        """
        check_is_fitted(self)
        written = copy.copy(self)
        written._nodes = np.array(getattr(self, "feature_names_in_", []), dtype=str)
        written.path_ = replace(self.path_, column_names=None)  # those of edges follow from them
        save(written, path)

    def _restored(self: Any) -> None:
        """Called when a file has been read: refuse what does not go together, set what the path does not hold."""
        p, path, names = len(self.location_), self.path_, self.__dict__.pop("_nodes")
        if path.n_features != p * (p - 1) // 2:
            raise ValueError(f"{p} columns have {p * (p - 1) // 2} edges, and the path chooses from {path.n_features}")
        if not all(model.free is not None and len(model.free) == p and np.all(model.free > 0) for model in path):
            raise ValueError(f"every graph must have {p} positive diagonal entries")
        if len(names) not in (0, p):
            raise ValueError(f"there must be names of all {p} columns or of none")
        if path.column_names is not None:
            raise ValueError("edges have no names but those of their columns")
        kept = {field.name: getattr(path, field.name) for field in fields(Path)}
        self.path_ = GraphPath(**kept | {"column_names": EdgeNames(p, names if len(names) else None)}, n_nodes=p)
        self.n_features_in_ = p
        if len(names):
            self.feature_names_in_ = names.astype(object)
        self._recheck_options()
