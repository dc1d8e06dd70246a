"""How certain the coefficients of a model are, given its features, with the caveats."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pauca.wording import AT_BOUND, aligned, held_at_bound, printable

if TYPE_CHECKING:
    from pandas import DataFrame

CAUTION = (
    "These intervals take the chosen features as given. The same rows chose them, so the intervals are too narrow, and "
    "coefficients tend to be too large: they describe this model, they are no test of whether a feature matters."
)
INTERCEPT = "(intercept)"
SHRUNKEN = "The ridge pulls coefficients towards zero, and the intervals are about the coefficients as they are pulled."


# With fewer rows than this on the rarer side of a column of zeros and ones, of every class if there are classes,
# resampled rows hardly tell how much its coefficient varies.
FEWEST_ROWS = 5


# Counts that vary more than this many times as much as a likelihood allows have intervals a fifth too narrow.
TOO_DISPERSED = 1.5


@dataclass(frozen=True, eq=False, repr=False)
class Inference:
    """Standard errors and intervals of the coefficients of a model, for its chosen features.

    Attributes
    ----------
    names : list of str
        The chosen features, and "(intercept)" where there is one, as in ``coef``.
    coef, standard_error, lower, upper : ndarray of shape (q,)
        Coefficients, their standard errors and the ends of their intervals.
    confidence : float
        The share of samples whose interval is to hold the coefficient, if the features had been given.
    method : {"likelihood", "bootstrap"}
        Standard errors from the curvature of the likelihood, as in statsmodels, with intervals by Student's t for
        squared error and by the normal elsewhere; or from fits to resampled rows, with the quantiles of their
        coefficients for intervals.
    n_resamples : int
        How many resamples the bootstrap had.
    shrunken : bool
        Whether the model has a ridge.
    notes : tuple of str
        What must be known of raw columns, such as the baselines of categories.
    rare : tuple of str
        Features of zeros and ones that are too rare for the bootstrap, whose intervals cannot be trusted.
    outputs : list of str or None
        The class or output of every coefficient, where a feature has several; None for a single one.
    at_bound : ndarray of bool of shape (q,), or None
        Which coefficients are at one of their bounds. The likelihood has no standard errors and intervals for them
        (NaN), and those of the others hold them there. None where none is.
    overdispersion : float or None
        How many times as large as the likelihood takes it to be the variance of counts is, where intervals rely on it.
    ratio : str
        What the exponential of a coefficient is, such as "hazard ratio" or "odds ratio"; empty where it means nothing.
    """

    names: list[str]
    coef: np.ndarray
    standard_error: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    confidence: float
    method: str
    n_resamples: int = 0
    shrunken: bool = False
    notes: tuple[str, ...] = ()
    rare: tuple[str, ...] = ()
    outputs: list[str] | None = None
    ratio: str = ""
    at_bound: np.ndarray | None = None
    overdispersion: float | None = None

    @property
    def caution(self) -> str:
        """What must be known to read the table."""
        return " ".join(
            [
                CAUTION,
                *([SHRUNKEN] if self.shrunken else []),
                *([self._too_rare] if self.rare else []),
                *([] if self.at_bound is None else [self._bounded]),
                *([self._overdispersed] if (self.overdispersion or 0.0) > TOO_DISPERSED else []),
            ]
        )

    @property
    def _bounded(self) -> str:
        assert self.at_bound is not None
        names = list(dict.fromkeys(name for name, at in zip(self.names, self.at_bound, strict=True) if at))
        what = held_at_bound(names)
        if self.method == "likelihood":
            have, them = ("it has", "it") if len(names) == 1 else ("they have", "them")
            return f"{what}: {have} no standard error, and the other intervals hold {them} there."
        return f"{what}: an interval that ends at a bound only says that resampled rows lead there too."

    @property
    def _overdispersed(self) -> str:
        assert self.overdispersion is not None
        return (
            f"The counts vary {self.overdispersion:.3g} times as much as the likelihood takes them to (Pearson's "
            f"dispersion): the intervals are {math.sqrt(self.overdispersion):.2g} times too narrow for that alone. "
            "loss='negative_binomial' or inference(\"bootstrap\") allows for it."
        )

    @property
    def _too_rare(self) -> str:
        one = len(self.rare) == 1
        return (
            f"The {'interval' if one else 'intervals'} of {', '.join(self.rare)} cannot be trusted: fewer than "
            f"{FEWEST_ROWS} rows of some outcome tell {'it' if one else 'them'} apart from the other rows, and "
            "resampling so few makes an interval far too narrow."
        )

    def table(self) -> list[dict[str, Any]]:
        """Records with the keys feature, coefficient, standard_error, lower, upper, and output if there are several.

        Where coefficients are logarithms of ratios, also with ratio, ratio_lower and ratio_upper; where some
        coefficient is at a bound, also with at_bound.
        """
        outputs = [{}] * len(self.names) if self.outputs is None else [{"output": one} for one in self.outputs]
        held = [{}] * len(self.names) if self.at_bound is None else [{"at_bound": bool(one)} for one in self.at_bound]
        columns = zip(outputs, held, self.names, self.coef, self.standard_error, self.lower, self.upper, strict=True)
        return [
            {
                **output,
                "feature": name,
                "coefficient": float(coef),
                "standard_error": float(error),
                "lower": float(lower),
                "upper": float(upper),
                **(self._ratios(name, coef, lower, upper) if self.ratio else {}),
                **at_bound,
            }
            for output, at_bound, name, coef, error, lower, upper in columns
        ]

    @staticmethod
    def _ratios(name: str, *logarithms: float) -> dict[str, float]:
        with np.errstate(over="ignore"):
            found = np.exp(logarithms) if name != INTERCEPT else np.full(3, np.nan)  # which compares nothing
        return dict(zip(("ratio", "ratio_lower", "ratio_upper"), found.tolist(), strict=True))

    def to_frame(self) -> DataFrame:
        """The table as a pandas frame indexed by feature, and by output if there are several."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError('to_frame needs pandas; install it with: pip install "pauca[frames]"') from error
        index = "feature" if self.outputs is None else ["output", "feature"]
        return pd.DataFrame(self.table()).set_index(index)

    def summary(self) -> str:
        """The table and its caution, as text."""
        head = ["feature", "coefficient", "standard error", f"{100 * self.confidence:g} % interval"]
        head += [self.ratio, "interval"] if self.ratio else []
        head = head if self.outputs is None else ["output", *head]
        body = [
            [
                *([record["output"]] if self.outputs is not None else []),
                record["feature"],
                f"{record['coefficient']:.6g}",
                *self._interval_cells(record),
                *(self._ratio_cells(record) if self.ratio else []),
            ]
            for record in self.table()
        ]
        lines = aligned([head, *body], left=1 if self.outputs is None else 2)
        return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:], "", *map(printable, self.notes), self.caution])

    @staticmethod
    def _interval_cells(record: dict[str, Any]) -> list[str]:
        if np.isnan(record["standard_error"]) and record.get("at_bound"):
            return ["", AT_BOUND]
        mark = f" ({AT_BOUND})" if record.get("at_bound") else ""
        return [f"{record['standard_error']:.3g}", f"{record['lower']:.4g} to {record['upper']:.4g}{mark}"]

    @staticmethod
    def _ratio_cells(record: dict[str, Any]) -> list[str]:
        if np.isnan(record["ratio"]):
            return ["", ""]
        ratio, lower, upper = (_ratio_text(record[key]) for key in ("ratio", "ratio_lower", "ratio_upper"))
        held = np.isnan(record["ratio_lower"]) and record.get("at_bound")
        return [ratio, AT_BOUND if held else f"{lower} to {upper}"]

    def __repr__(self) -> str:
        return self.summary()


def _ratio_text(ratio: float) -> str:
    """A ratio with four digits, and with two beyond the noughts or nines where it is next to 1: 1.252, 1.00036."""
    away = abs(ratio - 1.0)
    near = 1e-9 < away < 1e-2
    return f"{ratio:.{1 - math.floor(math.log10(away))}f}" if near else f"{ratio:.4g}"
