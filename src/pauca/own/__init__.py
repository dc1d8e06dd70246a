"""The user's own objective: any smooth convex function of a parameter vector."""

from pauca.own.objective import Objective, Problem
from pauca.own.select import follow, select
from pauca.own.selected import Selected
from pauca.own.subset import OwnSubset

__all__ = ["Objective", "OwnSubset", "Problem", "Selected", "follow", "select"]
