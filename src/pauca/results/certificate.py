"""What is proved of the models on a path: lower bounds of every size, in numbers and words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from pauca.relaxations.size_proof import SizeProof
from pauca.wording import aligned, column_names, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# So many features are named in a line.
NAMES_SHOWN = 8


@dataclass(frozen=True, eq=False)
class Certificate:
    """How far the models of a path can be from the best ones.

    ``lower_bound``, ``gap``, ``relative_gap``, ``proved``, ``always_in`` and ``never_in`` are dicts by size.

    Attributes
    ----------
    proofs : dict of int to SizeProof
        What is proved of each size; where there is no bound, lower bounds are minus infinity.
    n_candidates : int
        Number of features that may be chosen.
    n_forced : int
        Number of features that are always in.
    limited : bool
        Whether a budget or ``max_per_group`` limits which features go together: best is then best within the limits.
    column_names : sequence of str or None
    reason : str or None
        Why there is no bound.
    search_ridge : float or None
        Where ridges were chosen: objectives and bounds are those of the search, which had this ridge; None where the
        models on the path have it too.
    n_copies : int
        Number of columns that copy others and are not among the candidates: no model has two copies of one column.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from pauca import SparseRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> certificate = SparseRegressor(k=4).fit(X, y).certify()
    >>> certificate.proved[4], certificate.message(4)
    (True, 'Proved to be the best of all 210 subsets of 4 features.')
    >>> print(certificate)
    4 of 4 sizes are proved: no model with as many features is better.
    <BLANKLINE>
    size  objective  lower bound  what is known
    -------------------------------------------
    1       1945.23      1945.23  best of all 10 subsets, always with bmi
    2        1602.6       1602.6  best of all 45 subsets, always with bmi, s5
    3       1541.53      1541.53  best of all 120 subsets, always with bmi, bp, s5
    4       1506.14      1506.14  best of all 210 subsets, always with bmi, bp, s1, s5
    """

    proofs: Mapping[int, SizeProof]
    n_candidates: int
    n_forced: int = 0
    limited: bool = False
    column_names: Sequence[str] | np.ndarray | None = None
    reason: str | None = None
    search_ridge: float | None = None
    n_copies: int = 0

    def __eq__(self, other: object) -> bool:
        """Equal certificates say the same of the same columns."""
        if not isinstance(other, Certificate):
            return NotImplemented
        mine, others = (
            (
                dict(one.proofs),
                one.n_candidates,
                one.n_forced,
                one.limited,
                one.reason,
                one.search_ridge,
                one.n_copies,
                None if one.column_names is None else [str(name) for name in one.column_names],
            )
            for one in (self, other)
        )
        return mine == others

    __hash__ = None  # type: ignore[assignment]

    @property
    def sizes(self) -> list[int]:
        """The sizes with a proof or a bound, ascending."""
        return sorted(self.proofs)

    @property
    def lower_bound(self) -> dict[int, float]:
        """No model of the size has an objective below this; minus infinity where there is no bound."""
        return {size: self.proofs[size].lower_bound for size in self.sizes}

    @property
    def gap(self) -> dict[int, float]:
        """Objective less lower bound: by how much a model of the same size can be better at most."""
        return {size: self.proofs[size].gap for size in self.sizes}

    @property
    def relative_gap(self) -> dict[int, float]:
        """The gap as a share of the objective."""
        return {size: self.proofs[size].relative_gap for size in self.sizes}

    @property
    def proved(self) -> dict[int, bool]:
        """Whether the model is proved to be best: the relative gap is at most 1e-6, which is left to rounding."""
        return {size: self.proofs[size].proved for size in self.sizes}

    @property
    def always_in(self) -> dict[int, list[str]]:
        """Features proved to be in every best model of the size."""
        return {size: column_names(self.column_names, self.proofs[size].always_in) for size in self.sizes}

    @property
    def never_in(self) -> dict[int, list[str]]:
        """Features proved to be in no best model of the size."""
        return {size: column_names(self.column_names, self.proofs[size].never_in) for size in self.sizes}

    def message(self, size: int) -> str:
        """What is proved of a size, in words.

        Parameters
        ----------
        size : int

        Returns
        -------
        str
            Empty where nothing is known of this size, and where there is nothing to choose.
        """
        proof = self.proofs.get(size)
        if proof is None or proof.lower_bound == -np.inf:
            return "" if self.reason is None else f"{self.reason[0].upper()}{self.reason[1:]}."
        noun = f"{size} feature{'' if size == 1 else 's'}"
        if proof.proved:
            subsets = self._n_subsets(size)
            if subsets == "1":
                return ""
            return f"Proved to be the best of all {subsets} subsets of {noun}{self._within}{self._searched}."
        if proof.lower_bound <= 0:
            return f"Nothing is proved of the models of {noun}."
        return (
            f"No model of {noun} is better by more than {_percent(proof.relative_gap)}{self._searched} (lower bound)."
        )

    @property
    def _within(self) -> str:
        """What the subsets are counted within, where there is more to say than their size."""
        copies = f" without {'a copy' if self.n_copies == 1 else 'copies'} of other columns" if self.n_copies else ""
        return (" within the limits" if self.limited else "") + copies

    @property
    def overview(self) -> str:
        """How many sizes are proved, in a sentence; or why there is no bound."""
        if not any(proof.lower_bound > -np.inf for proof in self.proofs.values()):
            return f"{self.reason[0].upper()}{self.reason[1:]}." if self.reason else "No size has a lower bound."
        proved = sum(proof.proved for proof in self.proofs.values())
        sizes = "1 size is" if len(self.sizes) == 1 else f"{len(self.sizes)} sizes are"
        what = f"no model with as many features is better{self._within}{self._searched}"
        return f"{proved} of {sizes} proved: {what}." if proved else f"None of {sizes} proved."

    def summary(self) -> str:
        """What is proved of every size, as text: a line for each."""
        if not any(proof.lower_bound > -np.inf for proof in self.proofs.values()):
            return self.overview
        rows = [["size", "objective", "lower bound"]]
        for size in self.sizes:
            proof = self.proofs[size]
            rows.append([str(size), f"{proof.objective:.6g}", f"{proof.lower_bound:.6g}"])
        words = ["what is known", *map(self._known, self.sizes)]
        lines = [f"{line}  {word}" for line, word in zip(aligned(rows), words, strict=True)]
        return "\n".join([self.overview, "", lines[0], "-" * len(lines[0]), *lines[1:]])

    def _known(self, size: int) -> str:
        """What is known of a size, in few words."""
        proof, always = self.proofs[size], [printable(name) for name in self.always_in[size]]
        words = f"no model is better by more than {_percent(proof.relative_gap)}"
        if proof.lower_bound <= 0:
            words = "nothing"
        elif proof.proved:
            subsets = self._n_subsets(size)
            words = "the only subset" if subsets == "1" else f"best of all {subsets} subsets"
        more = f" and {len(always) - NAMES_SHOWN} more" if len(always) > NAMES_SHOWN else ""
        return f"{words}, always with {', '.join(always[:NAMES_SHOWN])}{more}" if always else words

    def _n_subsets(self, size: int) -> str:
        return _count(comb(self.n_candidates - self.n_forced, max(0, size - self.n_forced)))

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        proved = sum(self.proofs[size].proved for size in self.sizes)
        return f"<Certificate of {len(self.sizes)} sizes, {proved} proved>"

    @property
    def _searched(self) -> str:
        """What the sentence is about, where the models have another ridge."""
        return "" if self.search_ridge is None else f" at ridge {self.search_ridge:.3g}, the ridge of the search"

    def table(self) -> list[dict[str, Any]]:
        """The certificate as a list of records, one per size.

        Returns
        -------
        list of dict
            With the keys size, objective, lower_bound, gap, relative_gap, proved, nodes (of the search tree), always_in
            and never_in.
        """
        return [
            {
                "size": size,
                "objective": proof.objective,
                **self._figures(proof),
                "nodes": proof.nodes,
                "always_in": self.always_in[size],
                "never_in": self.never_in[size],
            }
            for size, proof in sorted(self.proofs.items())
        ]

    def record(self, size: int) -> dict[str, Any]:
        """The columns of a path's table for one size; ``search_`` marks what is about the objective of the search."""
        proof = self.proofs.get(size)
        known = {**dict.fromkeys(["lower_bound", "gap", "relative_gap"], np.nan), "proved": size == 0}
        if proof is not None:
            known = self._figures(proof)
        if self.search_ridge is None:
            return known
        objective = np.nan if proof is None else proof.objective
        return {f"search_{name}": value for name, value in {"objective": objective, **known}.items()}

    @staticmethod
    def _figures(proof: SizeProof) -> dict[str, Any]:
        return {
            "lower_bound": proof.lower_bound,
            "gap": proof.gap,
            "relative_gap": proof.relative_gap,
            "proved": proof.proved,
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw objective and lower bound against size; models that are proved to be best are filled.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from pauca.results.plots import plot_certificate

        return plot_certificate(self, ax)


def _count(number: int) -> str:
    """A number of subsets: exact up to a million."""
    return f"{number:,}" if number < 1_000_000 else f"{number:.2g}" if number < 10**300 else "the"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"
