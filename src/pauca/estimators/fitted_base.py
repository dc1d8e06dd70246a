"""What every fitted estimator can do: other sizes, summaries, files, exports and reports."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import Any, ParamSpec, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from pauca.checks import OUT_OF_RANGE, arithmetic_in_words
from pauca.design.chunks import is_dask
from pauca.estimators.chunked_predictions import rows_in_chunks, scores_of_chunks, transform_lazily, used_columns
from pauca.estimators.input_checks import check_rows
from pauca.export import save
from pauca.export.formula import formula_of
from pauca.export.onnx import to_onnx
from pauca.export.python import to_python
from pauca.export.sql import to_sql
from pauca.losses import Loss, resolve
from pauca.model import Model
from pauca.results.instructions import IN_PYTHON, Instructions
from pauca.results.path import Path
from pauca.results.summary import notes_on_loss, summarize
from pauca.runs.progress import showing
from pauca.runs.run import Move, Stop
from pauca.threads import blas_threads
from pauca.wording import column_names


@contextmanager
def fitting(estimator: Any) -> Iterator[None]:
    """What every fit runs in: it changes all attributes or, after an error or an interrupt, none.

    The BLAS has one thread meanwhile. What numbers out of range lead to is checked in what a fit keeps
    (``check_finite_models``).
    """
    before = estimator.__dict__.copy()
    try:
        with arithmetic_in_words(), blas_threads.single():
            yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


Given = ParamSpec("Given")
Returned = TypeVar("Returned")


def shows_progress(method: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """A method of a fitted estimator that may take long: it shows how it is doing, where ``verbose`` is set.

    The BLAS has one thread, as in a fit.
    """

    @wraps(method)
    def shown(*args: Given.args, **options: Given.kwargs) -> Returned:
        with showing(getattr(args[0], "verbose", 0)), blas_threads.single():
            return method(*args, **options)

    return shown


def check_finite_models(models: Mapping[int, Model]) -> None:
    """Raise an error if some number of a model is not finite."""
    numbers: list[Any] = [part for model in models.values() for part in (model.coef, model.intercept, model.free)]
    arrays = [part.ravel() for part in numbers if isinstance(part, np.ndarray)]
    others = [part for part in numbers if not isinstance(part, np.ndarray | None)]
    others += [model.objective for model in models.values()]
    if not (np.isfinite(np.concatenate(arrays)).all() and all(map(math.isfinite, others))):
        raise ValueError(OUT_OF_RANGE)


class PathMixin:
    """A fitted estimator with a ``path_`` and a ``k_``; ``_set_size(size)`` sets all that follows from them."""

    k: Any
    k_: int
    path_: Any
    _set_size: Any
    _check_parameters: Any

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
        other = self._copy()
        other.k = size
        other._set_size(size)
        return other

    def summary(self, instructions: Instructions | None = None) -> str:
        """The model as text, to be printed.

        Parameters
        ----------
        instructions : Instructions or None, default=None
            How the text tells readers to get other models: None for calls in Python. The command line names its own
            options.

        Returns
        -------
        str
            The chosen features with their coefficients and importances: how much of the share explained would be
            lost if it were left out and the others refitted. The most important come first.
        """
        check_is_fitted(self)
        text = summarize(self.path_, self.k_, instructions or self._instructions(), self._explained_of())
        return "\n".join([text, *self._reading_notes()])

    def _reading_notes(self) -> list[str]:
        """What else must be known to read a summary."""
        return notes_on_loss(getattr(self, "dispersion_", None), getattr(self, "known_part_", None))

    def _instructions(self) -> Instructions:
        """How other models are had in Python."""
        return replace(IN_PYTHON, other_rows="")  # not every estimator has evaluate()

    def _explained_of(self) -> str:
        """What the shares in a summary are shares of, such as the variance; nothing where that is not known."""
        return ""

    def _copy(self) -> Self:
        """A copy that may be given another size; arrays are shared."""
        return copy.copy(self)

    def _check_loaded_parameters(self) -> None:
        """Check the parameters from a file as ``fit`` would; ``at(0)`` has ``k=0``, which no fit may ask for."""
        size, self.k = self.k, None if isinstance(self.k, int) and self.k == 0 else self.k
        try:
            self._check_parameters()
        finally:
            self.k = size


class FittedModel(PathMixin, SelectorMixin, BaseEstimator):
    """What every estimator can do once it has a ``path_`` and a size on it.

    A kind of estimator derives from this and from ``RegressionMixin`` or ``ClassificationMixin``. Its ``fit`` sets
    ``path_`` and calls ``_set_size(size)``, which sets ``coef_``, ``intercept_``, ``support_``, ``objective_``, ``k_``
    and ``stop_``; files and ``at`` go the same way. It has the parameters ``k`` and ``loss``, and
    ``_check_parameters()`` raises an error if one is invalid.
    """

    k: Any
    loss: Any
    path_: Path
    stop_: Stop
    k_: int
    n_features_in_: int

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file of plain JSON, for ``pauca.load``.

        The file holds the settings, the names and the whole path, and no code. ``callback`` is left out. A loss or
        method of your own can be saved if its class was made known with ``pauca.export.register_class``. A file that is
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

    def to_sql(
        self,
        table: str | Sequence[str] | None = None,
        *,
        keep: Sequence[str] = (),
        offset: str | None = None,
        exposure: str | None = None,
    ) -> str:
        """The model as SQL, in the words that all databases share.

        Names are quoted as the standard has it, with double quotes (MySQL understands them in its mode ANSI_QUOTES), so
        that any name is safe; a name that cannot be quoted raises an error.
        A row in which a used column is NULL gives NULL.

        Parameters
        ----------
        table : str, sequence of str or None, default=None
            A table to select from, or its schema and name: ``("clinic", "patients")``. None: the expression alone, to
            be pasted into a query of your own.
        keep : sequence of str, default=()
            Columns of the table to pass on beside the results, such as a key.
        offset, exposure : str or None, default=None
            Names of columns with the offset or the exposure of each row, as in ``predict``; for numbers, and an offset
            for two classes. Without them the exposure is 1: the prediction is a rate.

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
        return to_sql(formula_of(self, offset=offset, exposure=exposure), table, keep)

    def to_python(self, *, offset: str | None = None, exposure: str | None = None) -> str:
        """The model as the source of a Python module that imports nothing but ``math``.

        Parameters
        ----------
        offset, exposure : str or None, default=None
            Names under which a row has its offset or its exposure, as in ``to_sql``.

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
        return to_python(formula_of(self, offset=offset, exposure=exposure))

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

    @shows_progress
    def report(
        self,
        path: str | os.PathLike[str],
        *,
        title: str | None = None,
        class_names: Sequence[str] | None = None,
    ) -> None:
        """Write the fitted model as one HTML page, to be opened in any browser.

        The page holds the chosen features with their importances, a slider over all sizes of the path with what every
        size gains and costs, curves, and the settings. It is a single file that needs no network and can be
        read, sent and printed without Python. It holds no rows of the data. A file that is there already is replaced in
        one step, once the new one is whole.

        Parameters
        ----------
        path : str or path-like
            The file, such as ``"report.html"``.
        title : str or None, default=None
            What to write above the page. None: what is known of the model.
        class_names : list, tuple, array or Series of str, default=None
            What to call the classes on the page, in the order of ``classes_``.

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
        write_report(self, path, title, class_names=self._class_names(class_names))

    def _class_names(self, given: Any) -> list[str] | None:
        """Names of the classes for people, checked."""
        if given is None:
            return None
        check_is_fitted(self)
        classes = getattr(self, "classes_", None)
        if classes is None:
            raise ValueError("class_names are for classifiers, and this model predicts numbers.")
        # Arrays, series and indices have tolist(); sets and dicts have no order that could be that of the classes.
        names = given.tolist() if hasattr(given, "tolist") else given
        ordered = isinstance(names, list | tuple) and all(isinstance(name, str) and name.strip() for name in names)
        if not ordered or len(names) != len(classes) or len(set(names)) < len(names):
            labels = ", ".join(str(label) for label in classes)
            raise ValueError(
                f"class_names must be a list of {len(classes)} different names, each a text that is not empty, one for "
                f"each of {labels}, in this order; got {given!r}."
            )
        return [str(name) for name in names]

    def _explained_of(self) -> str:
        loss = self.loss if isinstance(self.loss, Loss) else resolve(self.loss, classes=is_classifier(self))
        if loss.quadratic and not getattr(self, "fit_intercept", True):
            return "sum of squares"
        return loss.explains

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = getattr(self, "missing", "error") != "error"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def transform(self, X: Any) -> Any:
        """The chosen columns.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, or table in chunks, of shape (n_samples, n_features)

        Returns
        -------
        array, sparse matrix or frame of shape (n_samples, k)
        """
        check_is_fitted(self)
        if is_dask(X):
            return transform_lazily(self, X)
        chunks = rows_in_chunks(self, X)
        if chunks is None and hasattr(self, "encoder_"):
            return check_rows(self, X, self.support_)
        if chunks is None:
            return super().transform(X)
        return np.ascontiguousarray(chunks.columns(used_columns(self, chunks)).T)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the chosen columns.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns of X; None: those of the fit, and ``x0``, ``x1`` and so on where there were none.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        known = self.path_.column_names
        if input_features is None and known is not None and not hasattr(self, "feature_names_in_"):
            return np.array(self.path_.names(self.k_), dtype=object)
        if hasattr(self, "encoder_"):
            return self.encoder_.get_feature_names_out(input_features)[self.support_]
        return np.asarray(super().get_feature_names_out(input_features))

    @property
    def required_columns_(self) -> list[str]:
        """The columns of the table that predictions need, in its order: what has to be collected for new rows.

        Of a raw table these are its own columns, each once: ``city``, where ``get_feature_names_out`` has
        ``city=Lyon`` and ``city=Nice``. ``x3`` stands for column 3 of a table without names.
        """
        check_is_fitted(self)
        encoder = getattr(self, "encoder_", None)
        if encoder is None:
            return column_names(self.path_.column_names, self.support_)
        used = np.unique(encoder.encoding_.owner[self.support_])
        return [encoder.encoding_.raw_names[column] for column in used]

    def _scores(self, X: Any) -> np.ndarray:
        """Linear scores of rows, shape (n, C)."""
        check_is_fitted(self)
        chunks = rows_in_chunks(self, X)
        if chunks is not None:
            return scores_of_chunks(self, chunks)
        used = check_rows(self, X, self.support_)
        coef = np.atleast_2d(self.coef_)[:, self.support_]
        return np.asarray(used @ coef.T + np.atleast_1d(self.intercept_))

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        mask = np.zeros(self._n_columns, dtype=bool)
        mask[self.support_] = True
        return mask

    @property
    def _n_columns(self) -> int:
        """Number of columns of numbers: those of X, or what a raw table is encoded as."""
        encoder = getattr(self, "encoder_", None)
        return self.n_features_in_ if encoder is None else len(encoder.feature_groups_)

    def _set_size(self, size: int) -> None:
        """Put the model of ``size`` into the fitted attributes."""
        self._set_model(self.path_[size])
        self.stop_ = self.path_.stop

    def _set_model(self, model: Model) -> None:
        coef = np.zeros((*np.shape(model.coef)[:-1], self._n_columns))
        coef[..., model.support] = model.coef
        self.coef_, self.intercept_ = self._reshape(coef, model.intercept)
        # A bound may hold the coefficient of a chosen column at zero: it is on the path, but not in the support.
        chosen = model.coef != 0
        self.support_ = model.support[chosen if chosen.ndim == 1 else chosen.any(axis=0)]
        self.objective_ = model.objective
        self.k_ = len(model.units)

    def _path_of(self, models: dict[int, Model], moves: list[Move], stop: Stop) -> Path:
        """The path of models that have columns as units, and no costs."""
        names = getattr(self, "feature_names_in_", None)
        return Path(models, moves, stop, self.n_features_in_, names, None, None, *self._output_labels())

    def _output_labels(self) -> tuple[list[str] | None, list[str] | None]:
        """Names of several outputs, or of the two classes of a single one."""
        return None, None

    def _reshape(self, coef: np.ndarray, intercept: Any) -> tuple[np.ndarray, Any]:
        """Coefficients and intercept in the shapes that users of scikit-learn expect."""
        return coef, intercept

    def _after_loading(self) -> None:
        """Called after a file was read: check that its parts agree, and set what the path does not hold."""
        self._check_loaded_parameters()
