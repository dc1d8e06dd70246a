"""What is chosen, and what may be chosen together."""

from pauca.constraints.units import Limits, Units

__all__ = ["Limits", "Units"]
