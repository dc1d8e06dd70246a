"""What is chosen, and what may be chosen together."""

from pauca.constraints.limits import Limits
from pauca.constraints.units import Units

__all__ = ["Limits", "Units"]
