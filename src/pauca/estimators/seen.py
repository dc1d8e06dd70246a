"""Showing a fitted model to people, as methods of every estimator."""

from __future__ import annotations

import os

from sklearn.utils.validation import check_is_fitted


class Seen:
    """A fitted model that can be shown."""

    def report(self, path: str | os.PathLike[str], title: str | None = None) -> None:
        """Write the fitted model as one HTML page, to be opened in any browser; needs the extra [report].

        The page holds the chosen features with what each is worth, a slider over all sizes of the path with what every
        size gains and costs, curves, and the settings. It is a single file that asks nothing of the network and can be
        read, sent and printed without Python. It holds no rows of the data. A file that is there already is replaced in
        one step, once the new one is whole.

        Parameters
        ----------
        path : str or path-like
            The file, such as ``"report.html"``.
        title : str or None, default=None
            What to write above the page. None: what is known of the model.

        Examples
        --------
        >>> import tempfile, os, pauca
        >>> from sklearn.datasets import load_diabetes
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pauca.SparseRegressor().fit(X, y).report(os.path.join(folder, "report.html"), title="Diabetes")
        ...     os.listdir(folder)
        ['report.html']
        """
        from pauca.report import write_report

        check_is_fitted(self)
        write_report(self, path, title)
