"""Projections onto an l1 ball, and onto the intersection of an l1 and an l2 ball; of vectors and of active sets.

An active set is a vector given by the indices and values of its nonzero entries. The cost of a projection grows with
their number, not with the length of the vector.
"""

from pauca.projections.active_sets import ActiveSet, active_onto_l1_and_l2_balls, active_onto_l1_ball
from pauca.projections.intersection import onto_l1_and_l2_balls
from pauca.projections.l1_ball import onto_l1_ball

__all__ = [
    "ActiveSet",
    "active_onto_l1_and_l2_balls",
    "active_onto_l1_ball",
    "onto_l1_and_l2_balls",
    "onto_l1_ball",
]
