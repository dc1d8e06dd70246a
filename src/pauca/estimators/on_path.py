"""What follows from a path and a size on it, whatever is modelled: other sizes, words, settings read from a file."""

from __future__ import annotations

import copy
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from pauca.path.summary import summarize


class OnPath:
    """A fitted estimator with a ``path_`` and a ``k_``; ``_choose(size)`` sets all that follows from them."""

    k: Any
    k_: int
    path_: Any
    _choose: Any
    _check_options: Any

    def at(self, size: int) -> Self:
        """The fitted model of another size on the path, without refitting.

        Parameters
        ----------
        size : int
            One of ``path_.sizes``; a ``KeyError`` says which there are.

        Returns
        -------
        estimator
            Another estimator of the same kind, fitted, with ``k=size`` and the same ``path_``.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from pauca import SparseRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = SparseRegressor(k=5).fit(X, y)
        >>> [round(model.at(size).score(X, y), 2) for size in (1, 3, 5)]
        [0.34, 0.48, 0.51]
        """
        check_is_fitted(self)
        other = self._twin()
        other.k = size
        other._choose(size)
        return other

    def summary(self) -> str:
        """The model as text, to be printed.

        Returns
        -------
        str
            The chosen features with their coefficients and what each is worth: how much of the share explained would be
            lost if it were left out and the others refitted. The most valuable come first.
        """
        check_is_fitted(self)
        return summarize(self.path_, self.k_)

    def _twin(self) -> Self:
        """A copy that may be given another size; arrays are shared."""
        return copy.copy(self)

    def _recheck_options(self) -> None:
        """Refuse settings from a file that no fit would take; ``at(0)`` has ``k=0``, which no fit may ask for."""
        size, self.k = self.k, None if isinstance(self.k, int) and self.k == 0 else self.k
        try:
            self._check_options()
        finally:
            self.k = size
