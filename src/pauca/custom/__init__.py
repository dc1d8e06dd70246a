"""Few coordinates of any smooth convex objective that the user brings."""

from pauca.custom.objective import Objective
from pauca.custom.select import Selected, select

__all__ = ["Objective", "Selected", "select"]
