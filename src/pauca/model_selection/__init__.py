"""Choosing a size: which sizes to compare, folds, scores, information criteria and rules."""
