"""Numerical tolerances that several packages share, each with its reason.

What changes an answer only by rounding is here. What decides how far a search looks (how many candidates are refitted,
say) belongs to the method or subset that looks, beside the evidence for its value.
"""

import sys

TINY = sys.float_info.min
"""Keeps what is divided by it, or must be above zero, from being zero."""

LINE_SEARCH_SLACK = 4e-15
"""A line search takes a step whose value is above the best by no more than this share of it.

A sum over n rows is known to a few units in the last place. Without this slack a search near its minimum halves its
step again and again for nothing: refits of a random field took 400 times as long, for the same answer.
"""

SUFFICIENT_DECREASE = 1e-4
"""Armijo's constant: a step must gain this share of what its slope predicts."""

NEGLIGIBLE = 1e-14
"""A value below this share of the empty model's value is zero: gains down there are rounding."""

LEAST_SHARE = 1e-10
"""A swap must lower the value by this share of it as well, so that rounding cannot make a run go in circles."""

DEPENDENT_BELOW = 1e-10
"""A column is a linear combination of others if they leave less than this share of its variance.

Products of columns are known to about 1e-16, and a residual variance is a difference of them divided by the smallest
that was accepted before: below 1e-10 its sign and size are no longer to be trusted.
"""

COPY_ABOVE = 1 - DEPENDENT_BELOW
"""With a ridge a copy of a chosen column would still lower the value; this correlation makes it a copy."""

TIED_WITHIN = 1e-9
"""Scores closer than this are equal but for rounding; ties go to the lowest index."""
