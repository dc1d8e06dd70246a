"""Gaussian graphical models with few edges."""

from pauca.graphical.estimator import SparsePrecision

__all__ = ["SparsePrecision"]
