"""Conditional random fields on sequences with few sensors."""

from pauca.crf.as_published import published_tagger
from pauca.crf.estimator import SparseTagger

__all__ = ["SparseTagger", "published_tagger"]
