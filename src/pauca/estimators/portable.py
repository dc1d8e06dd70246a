"""Taking a fitted model away, as methods of every estimator."""

from __future__ import annotations

import os
from typing import Any

from sklearn.utils.validation import check_is_fitted

from pauca.export import save


class Portable:
    """A fitted model that can be written down: as a file for ``pauca.load``."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file of plain JSON, for ``pauca.load``.

        The file holds the settings, the names and the whole path, and no code. ``callback`` is left out. A loss or
        method of your own can be saved if its class was made known with ``pauca.export.register_part``. A file that is
        there already is replaced in one step, once the new one is whole.

        Parameters
        ----------
        path : str or path-like

        Raises
        ------
        ModelFileError
            If a setting cannot be written as plain JSON.

        Examples
        --------
        >>> import tempfile, os, pauca
        >>> model = pauca.SparseRegressor(k=1).fit([[1, 0], [0, 1], [2, 2]], [1, 0, 2])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(os.path.join(folder, "model.json"))
        ...     pauca.load(os.path.join(folder, "model.json")).support_
        array([0])
        """
        check_is_fitted(self)
        save(self, path)

    def _restored(self: Any) -> None:
        """Called when a file has been read: refuse what does not go together, set what the path does not hold."""
        size, self.k = self.k, self.k or None  # at(0) has k=0, which no fit may ask for
        try:
            self._check_options()
        finally:
            self.k = size
