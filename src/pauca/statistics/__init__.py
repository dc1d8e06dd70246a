"""What is said of a fitted model besides its predictions: how good they are, how sure its coefficients are.

Functions of plain arrays, without a model or an estimator.
"""
