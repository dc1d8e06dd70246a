"""Names for the features of a model in a pipeline, from the steps before it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from pauca.estimators.fitted import FittedModel
from pauca.estimators.raw_tables import display_names


def name_features(pipeline: Pipeline) -> Any:
    """Name the features of a pipeline's last step by what the steps before it call them: the words of a vectoriser.

    A pipeline hands on numbers without names, so that a model in it speaks of ``x3793``. After this its summary, plots,
    reports, files and exports speak of the names. ``feature_names_in_`` keeps its meaning in scikit-learn.

    Parameters
    ----------
    pipeline : sklearn.pipeline.Pipeline
        Fitted; its last step is an estimator of pauca.

    Returns
    -------
    estimator
        The last step, which was named in place.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> import pauca
    >>> texts = ["a good film", "a dull film", "good fun", "bad luck", "so good", "not bad"]
    >>> pipeline = make_pipeline(CountVectorizer(), pauca.SparseClassifier(k=1, ridge=0.1))
    >>> model = pauca.name_features(pipeline.fit(texts, [1, 0, 1, 0, 1, 0]))
    >>> model.path_.names(1)
    ['good']
    """
    if not isinstance(pipeline, Pipeline):
        raise TypeError(f"name_features takes a fitted Pipeline, got {type(pipeline).__name__}.")
    model = pipeline[-1]
    if not isinstance(model, FittedModel):
        raise TypeError(f"The last step must be an estimator of pauca that has a path, got {type(model).__name__}.")
    check_is_fitted(model)
    if len(pipeline) == 1 or hasattr(model, "feature_names_in_"):  # it has the names of its table
        return model
    names = display_names(pipeline[:-1].get_feature_names_out(), model.n_features_in_, None)
    certificate = model.path_.certificate
    named = None if certificate is None else replace(certificate, column_names=names)
    model.path_ = replace(model.path_, column_names=names, certificate=named)
    model._set_size(model.k_)
    return model
