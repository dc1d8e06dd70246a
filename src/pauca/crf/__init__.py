"""Conditional random fields on sequences with few sensors."""

from pauca.crf.estimator import SparseTagger

__all__ = ["SparseTagger"]
