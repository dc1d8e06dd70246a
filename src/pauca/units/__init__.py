"""What is chosen, and what may be chosen together."""

from pauca.units.limits import Limits
from pauca.units.units import Units

__all__ = ["Limits", "Units"]
