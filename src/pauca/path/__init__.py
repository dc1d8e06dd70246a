"""Running a method and what comes of it: goal and budget in, trail and path out."""

from pauca.path.choice import ACCURACY, CRITERIA, EXPLAINED, FOLD_RULES, Choice
from pauca.path.driver import Budget, Goal, Method, Progress, interrupted_once, run
from pauca.path.path import Path, column_names
from pauca.path.stop import Stop
from pauca.path.trail import Event, Trail

__all__ = [
    "ACCURACY",
    "CRITERIA",
    "EXPLAINED",
    "FOLD_RULES",
    "Budget",
    "Choice",
    "Event",
    "Goal",
    "Method",
    "Path",
    "Progress",
    "Stop",
    "Trail",
    "column_names",
    "interrupted_once",
    "run",
]
