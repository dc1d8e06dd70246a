"""Learning from rows that are seen once, in a time that does not depend on the number of features."""

from __future__ import annotations

from pauca.stream.learner import EpochSGD

__all__ = ["EpochSGD"]
