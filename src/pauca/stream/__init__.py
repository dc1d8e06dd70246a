"""Streams of rows: epoch SGD within an l1 ball, and from what it learns to few features."""

from pauca.stream.learner import EpochSGD
from pauca.stream.passes import StreamProgress

__all__ = ["EpochSGD", "StreamProgress"]
