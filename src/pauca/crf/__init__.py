"""Conditional random fields on sequences with few sensors."""

from pauca.crf.estimator import SparseTagger
from pauca.crf.published import published_tagger

__all__ = ["SparseTagger", "published_tagger"]
