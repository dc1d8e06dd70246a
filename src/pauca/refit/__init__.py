"""Solvers of small problems that are solved again and again as features come and go."""

from pauca.refit.cholesky import CholeskyFactor

__all__ = ["CholeskyFactor"]
