"""Few coordinates of any smooth convex objective that the user brings."""

from pauca.custom.objective import Objective
from pauca.custom.path import Selected
from pauca.custom.select import select

__all__ = ["Objective", "Selected", "select"]
