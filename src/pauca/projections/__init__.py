"""Nearest points: of an l1 ball, and of an l1 ball cut with an l2 ball; for whole vectors and for active sets.

An active set is a vector told by the entries that are not zero: their indices and their values. What is done to one
costs as much as it has entries, however long the vector is.
"""

from pauca.projections.active import ActiveSet, active_onto_l1_and_l2_balls, active_onto_l1_ball
from pauca.projections.intersection import onto_l1_and_l2_balls
from pauca.projections.l1_ball import onto_l1_ball

__all__ = [
    "ActiveSet",
    "active_onto_l1_and_l2_balls",
    "active_onto_l1_ball",
    "onto_l1_and_l2_balls",
    "onto_l1_ball",
]
