"""What was noteworthy about a search, in sentences for the one warning that tells of it."""

from __future__ import annotations

from collections.abc import Iterator

from pauca.constraints.limits import Limits
from pauca.custom.objective import CustomProblem
from pauca.results.path import Path
from pauca.search.history import Stop

RIDGE = "Add a ridge, such as 1e-3 times the sum of squares of the coordinates that are chosen from."

# A value is below its floor if it is by more than this share of the empty model's.
BELOW = 1e-9

# Why a search may end before its size, where nobody has asked for that.
ENDED = {
    Stop.PERFECT: "the objective is at its floor, and nothing is left to gain. Ask for fewer.",
    Stop.NO_GAIN: "no other lowers the objective by more than rounding. Ask for fewer.",
    Stop.STEPS: "the largest number of steps was reached. Allow more, or go on with resume=path.",
    Stop.TIME: "the time limit was reached. Allow more, or go on with resume=path.",
}


def remarks(path: Path, k: int | None, problem: CustomProblem, limits: Limits) -> Iterator[str]:
    """What the user should know of a search and cannot see from its numbers; as a rule nothing."""
    answer = path[k if k is not None and k in path else max(path.sizes)]
    below = problem.floor is not None and answer.objective < problem.floor - BELOW * abs(path[0].objective)
    if below:
        fell = f"The objective fell to {answer.objective:.6g}"
        yield f"{fell}, below floor={problem.floor:g}: give a lower floor, or none."
    elif k is not None and k not in path:
        yield from _fewer(path, k, problem, limits)
    if path.stop is Stop.INTERRUPTED:
        yield f"The search was interrupted; the models up to size {max(path.sizes)} were kept."
    if not answer.converged:
        yield (
            "The refit did not come to its end: the parameters may be off. Unless it was interrupted, bring the "
            "coordinates to a common scale, or add a ridge."
        )
    if answer.diverged:
        yield (
            "Some parameters have grown large and would grow on, as where some rows can be told apart without error: "
            f"their sizes say little. {RIDGE}"
        )


def _fewer(path: Path, k: int, problem: CustomProblem, limits: Limits) -> Iterator[str]:
    """Why there is no model of the size that was asked for; nothing where the user has asked for that too."""
    found = max(path.sizes)
    noun = "coordinates" if problem.units.single else "groups"
    asked = f"k={k} {noun} were asked for, but"
    if path.stop is Stop.LIMITS and limits.budget is not None:
        fits_not = f"no other fits in budget={limits.budget:g}. Allow more or ask for fewer"
        yield f"{asked} the search ended at {found}: {fits_not}."
    elif path.stop in {Stop.LIMITS, Stop.EXHAUSTED}:
        left_out = " 'never' leaves out the others." if limits.never else ""
        yield f"{asked} only {found} of {int(problem.usable.sum())} can be used together.{left_out}"
    elif path[found].diverged and path.stop in {Stop.NO_GAIN, Stop.PERFECT}:
        yield f"{asked} the search ended at {found}: the objective has come down to its least, and no other lowers it."
    elif path.stop in ENDED:
        yield f"{asked} the search ended at {found}: {ENDED[path.stop]}"
