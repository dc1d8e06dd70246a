"""Taking a fitted model away, as methods of every estimator."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from sklearn.utils.validation import check_is_fitted

from pauca.export import save
from pauca.export.form import formula_of
from pauca.export.onnx import to_onnx
from pauca.export.python import to_python
from pauca.export.sql import to_sql


class Portable:
    """A fitted model that can be written down: as a file for ``pauca.load``, and in languages that know no pauca."""

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

    def to_sql(self, table: str | Sequence[str] | None = None, *, keep: Sequence[str] = ()) -> str:
        """The model as SQL, in the words that all databases share.

        Names are quoted as the standard has it, with double quotes (MySQL understands them in its mode ANSI_QUOTES), so
        that any name is safe; the few that cannot be are refused. A row in which a used column is NULL gives NULL.

        Parameters
        ----------
        table : str, sequence of str or None, default=None
            A table to select from, or its schema and name: ``("clinic", "patients")``. None: the expression alone, to
            be pasted into a query of your own.
        keep : sequence of str, default=()
            Columns of the table to hand on beside the results, such as a key.

        Returns
        -------
        str
            Numbers: "prediction", or a column for each output. Two classes: "prediction" and the probability of the
            second, or its score where the loss models no probabilities. More classes: "prediction" and the probability
            or score of each; for these a table is needed.

        Examples
        --------
        >>> from pauca import SparseRegressor
        >>> model = SparseRegressor(k=1, fit_intercept=False).fit([[1, 0], [0, 1], [2, 2]], [1, 0, 2])
        >>> print(model.to_sql())
        (0.0e0
            + 1.0e0 * "x0")
        >>> print(model.to_sql("patients", keep=["id"]))
        SELECT
          t."id",
          (0.0e0
            + 1.0e0 * t."x0") AS "prediction"
        FROM "patients" t
        """
        check_is_fitted(self)
        return to_sql(formula_of(self), table, keep)

    def to_python(self) -> str:
        """The model as the source of a Python module that imports nothing but ``math``.

        Returns
        -------
        str
            With a function ``predict(row)``, and ``predict_proba(row)`` where there are probabilities. A row is a
            mapping from names of columns to numbers; only the chosen ones are looked up. Column 3 of a table without
            names is called ``x3``.

        Examples
        --------
        >>> from pauca import SparseRegressor
        >>> model = SparseRegressor(k=1, fit_intercept=False).fit([[1, 0], [0, 1], [2, 2]], [1, 0, 2])
        >>> with open("model.py", "w") as file:   # doctest: +SKIP
        ...     file.write(model.to_python())
        >>> module = {}
        >>> exec(model.to_python(), module)
        >>> round(module["predict"]({"x0": 3.0}), 6)
        3.0
        """
        check_is_fitted(self)
        return to_python(formula_of(self))

    def to_onnx(self) -> Any:
        """The model as ONNX, with one input "X" of all columns in double precision; needs the extra [onnx].

        For a pipeline, call ``pauca.export.onnx.register()`` once, and then ``skl2onnx.to_onnx``.

        Returns
        -------
        onnx.ModelProto
            Its method ``SerializeToString()`` gives the bytes of a file. The output is the prediction, of shape
            (n, n_outputs); for classes it is their labels, and their probabilities or scores.
        """
        check_is_fitted(self)
        return to_onnx(self)

    def _restored(self: Any) -> None:
        """Called when a file has been read: refuse what does not go together, set what the path does not hold."""
        self._recheck_options()
