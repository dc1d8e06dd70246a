"""Statistics of a fitted model: how good its predictions are, and how certain its coefficients.

Functions of plain arrays, without a model or an estimator.
"""
