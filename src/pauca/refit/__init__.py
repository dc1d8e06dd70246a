"""Solvers of small problems that are solved again and again as features come and go."""

from pauca.refit.inverse_factor import InverseFactor

__all__ = ["InverseFactor"]
