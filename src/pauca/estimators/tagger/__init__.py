"""Labels of sequences from few sensors: reading what the user brings, the search, and the estimator."""

from pauca.estimators.tagger.tagger import SparseTagger

__all__ = ["SparseTagger"]
