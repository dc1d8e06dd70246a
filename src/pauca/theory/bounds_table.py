"""All bounds that apply to given constants, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pauca.losses import REGRESSION_LOSSES
from pauca.theory.constants import Constants, number, share
from pauca.theory.foba import foba_additions
from pauca.theory.greedy import (
    ball_steps,
    forward_features,
    forward_features_if_curved,
    norm_bound,
    replacement_features,
    replacement_swaps,
)
from pauca.theory.lower_bounds import least_features_absolute, least_features_squared
from pauca.theory.sampling import magnitude_draws, repeats, sampling_features, sampling_features_if_curved

SPARSITY = "Shalev-Shwartz, Srebro and Zhang (2010)"
TWO_STAGES = "Li, Yang, Zhang and Jin (2017)"
FOBA = "Zhang (2011)"

# The lower bounds are proved for loss, norm and accuracy in these ranges.
NORM_ABOVE = 2.0
SQUARED_BELOW, ABSOLUTE_BELOW = 0.05, 0.1


@dataclass(frozen=True)
class Bound:
    """One bound: how many of what, for which method, by which theorem.

    Attributes
    ----------
    method : str
        The way to a sparse model; "any method" for lower bounds.
    number : float
        How many.
    unit : str
        Of what: "features", "draws", "steps", "swaps", "repeats", or "norm".
    result : str
        The theorem.
    source : str
        Its authors and year.
    """

    method: str
    number: float
    unit: str
    result: str
    source: str

    def __str__(self) -> str:
        return f"{self.method:42} {self.number:>14,.10g} {self.unit:9} {self.result}, {self.source}"


class BoundsTable(list[Bound]):
    """A list of bounds that prints as a table: method, number, unit, theorem and source."""

    def __str__(self) -> str:
        rows = [(row.method, f"{row.number:,.10g}", row.unit, row.result, row.source) for row in self]
        if not rows:
            return "no bounds"
        a, b, c, d, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
        return "\n".join(
            f"{method:<{a}}  {count:>{b}}  {unit:<{c}}  {result:<{d}}  {source}"
            for method, count, unit, result, source in rows
        )

    __repr__ = __str__


def bounds_table(
    loss: Any,
    *,
    accuracy: float,
    norm: float | None = None,
    n_reference: int | None = None,
    curvature: float | None = None,
    decrease: float | None = None,
    confidence: float = 0.9,
    scale: float = 1.0,
    ridge: float = 0.0,
) -> BoundsTable:
    """All bounds that apply to a loss and what is known of the model to compare with.

    With the l1 norm of that model there are the bounds by norm. With its size, its decrease of Q and the smallest
    curvature along sparse directions there are those by size. Losses that are smooth and have bounded slopes have two
    rows where a theorem has two forms.

    Parameters
    ----------
    loss : str, Loss or Constants
        The loss.
    accuracy : float
        The excess of the objective Q that is allowed.
    norm : float, default=None
        The l1 norm of the model to compare with, and the radius of the ball. Before there is a model, ``norm_bound``
        bounds it by its size (Lemma 2.2), and the norm of a ridge regression is an estimate.
    n_reference : int, default=None
        The number of its features.
    curvature : float, default=None
        The smallest curvature of Q along directions of as many nonzero entries as the theorem says.
    decrease : float, default=None
        By how much its Q is below that of the empty model.
    confidence : float, default=0.9
        For what is drawn at random.
    scale, ridge : float, default=1.0, 0.0
        The largest mean square of a column, and the ridge of Q.

    Returns
    -------
    bounds : BoundsTable
        A list of Bound that prints as a table.

    Examples
    --------
    >>> from pauca.theory import bounds_table
    >>> table = bounds_table("squared_error", norm=5.0, accuracy=0.01)
    >>> table[5].number, table[5].unit
    (5000, 'features')
    >>> print(table)
    repeats of a sampling, for 90 %              4  repeats   after Theorem 2.1  Shalev-Shwartz, Srebro and Zhang (2010)
    sampling by magnitude, an even chance    2,500  draws     Theorem 2.1        Shalev-Shwartz, Srebro and Zhang (2010)
    sampling by magnitude, 90 % in one try  12,500  draws     Theorem 2          Li, Yang, Zhang and Jin (2017)
    greedy in the l1 ball, small excess     20,000  steps     Theorem 2.4        Shalev-Shwartz, Srebro and Zhang (2010)
    greedy in the l1 ball, small gap        40,000  steps     Theorem 2.4        Shalev-Shwartz, Srebro and Zhang (2010)
    forward selection                        5,000  features  Theorem 2.7        Shalev-Shwartz, Srebro and Zhang (2010)
    any method, on some data                   157  features  Theorem 4.2        Shalev-Shwartz, Srebro and Zhang (2010)
    """
    known = Constants.of(loss)
    number("accuracy", accuracy)
    share("confidence", confidence)
    by_size = (n_reference, curvature, decrease)
    if norm is None and None in by_size:
        raise ValueError("There is nothing to compare with: give norm, or n_reference, curvature and decrease.")
    if 0 < sum(value is not None for value in by_size) < len(by_size):
        raise ValueError("n_reference, curvature and decrease belong together: give all three or none.")
    # Each form of a theorem by itself: the functions give the smaller of two where both hold.
    forms = []
    if known.smoothness is not None:
        forms.append((Constants(smoothness=known.smoothness), ""))
    if known.lipschitz is not None:
        forms.append((Constants(lipschitz=known.lipschitz), ", by slopes" if forms else ""))
    often = f"repeats of a sampling, for {100 * confidence:g} %"
    rows = [Bound(often, repeats(confidence), "repeats", "after Theorem 2.1", SPARSITY)]
    if norm is not None:
        rows += _by_norm(forms, norm, accuracy, confidence, scale, ridge)
        rows += _lower(loss, norm, accuracy)
    if n_reference is not None and curvature is not None and decrease is not None:
        rows += _by_size(forms, n_reference, curvature, decrease, accuracy, scale, ridge)
    return BoundsTable(rows)


def _by_norm(
    forms: list[tuple[Constants, str]], norm: float, accuracy: float, confidence: float, scale: float, ridge: float
) -> Iterator[Bound]:
    about: dict[str, Any] = {"accuracy": accuracy, "scale": scale, "ridge": ridge}
    percent = f"{100 * confidence:g} %"
    for known, form in forms:
        draws = sampling_features(known, norm=norm, **about)
        yield Bound(f"sampling by magnitude, an even chance{form}", draws, "draws", "Theorem 2.1", SPARSITY)
    for known, form in forms:
        if known.smoothness is not None:
            draws = magnitude_draws(known, norm=norm, confidence=confidence, **about)
            yield Bound(f"sampling by magnitude, {percent} in one try{form}", draws, "draws", "Theorem 2", TWO_STAGES)
    for stop, words in (("accuracy", "small excess"), ("gap", "small gap")):
        for known, form in forms:
            steps = ball_steps(known, radius=norm, stop=stop, **about)
            result = "Theorem 2.4" if known.smoothness is not None else "Corollary 2.6"
            yield Bound(f"greedy in the l1 ball, {words}{form}", steps, "steps", result, SPARSITY)
    for known, form in forms:
        features = forward_features(known, norm=norm, **about)
        yield Bound(f"forward selection{form}", features, "features", "Theorem 2.7", SPARSITY)


def _lower(loss: Any, norm: float, accuracy: float) -> Iterator[Bound]:
    """Lower bounds are proved for two losses only, and constants do not determine the loss."""
    if norm > NORM_ABOVE and _is("squared_error", loss) and accuracy <= SQUARED_BELOW:
        least = least_features_squared(radius=norm, accuracy=accuracy)
        yield Bound("any method, on some data", least, "features", "Theorem 4.2", SPARSITY)
    if norm > NORM_ABOVE and _is("absolute_error", loss) and accuracy <= ABSOLUTE_BELOW:
        least = least_features_absolute(radius=norm, accuracy=accuracy)
        yield Bound("any method, on some data", least, "features", "Theorem 4.1", SPARSITY)


def _is(name: str, loss: Any) -> bool:
    return type(loss) is REGRESSION_LOSSES[name] or (isinstance(loss, str) and loss == name)


def _by_size(
    forms: list[tuple[Constants, str]],
    n_reference: int,
    curvature: float,
    decrease: float,
    accuracy: float,
    scale: float,
    ridge: float,
) -> Iterator[Bound]:
    curved: dict[str, Any] = {"n_reference": n_reference, "curvature": curvature}
    about: dict[str, Any] = {"accuracy": accuracy, "scale": scale, "ridge": ridge}
    norm = norm_bound(decrease=decrease, **curved)
    yield Bound("the model to compare with, at most", norm, "norm", "Lemma 2.2", SPARSITY)
    for known, form in forms:
        draws = sampling_features_if_curved(known, decrease=decrease, **curved, **about)
        yield Bound(f"sampling, where Q is curved{form}", draws, "draws", "Corollary 2.3", SPARSITY)
    for known, _ in forms:
        if known.smoothness is not None:
            features = forward_features_if_curved(known, decrease=decrease, **curved, **about)
            yield Bound("forward selection, where Q is curved", features, "features", "Theorem 2.8", SPARSITY)
            k = replacement_features(known, **curved, scale=scale, ridge=ridge)
            swaps = replacement_swaps(known, k=k, decrease=decrease, **curved, **about)
            yield Bound("replacements, any accuracy", k, "features", "Theorem 2.9", SPARSITY)
            yield Bound("replacements, for this accuracy", swaps, "swaps", "Theorem 2.9", SPARSITY)
    # The decrease is that of the model to compare with: FoBa may go on below it, and there is no bound on how long.
    additions = foba_additions(decrease=decrease, tol=accuracy)
    yield Bound("FoBa with this tolerance, until no worse", additions, "steps", "Proposition 3.1", FOBA)
