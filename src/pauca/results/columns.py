"""What a reader should know of the columns that a model uses."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class UsedColumn:
    """A column of the chosen model, on the rows of the fit.

    Attributes
    ----------
    name : str
    step : float
        A change that a person would speak of: one for small whole numbers, else a round number near the spread.
    median, lowest, highest : float
    """

    name: str
    step: float
    median: float
    lowest: float
    highest: float

    @property
    def binary(self) -> bool:
        """Whether it holds zeros and ones, or nothing else."""
        return self.step == 1.0 and self.lowest == 0.0 and self.highest == 1.0
