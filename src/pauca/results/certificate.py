"""What is proved of the models on a path: lower bounds of every size, in numbers and words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from pauca.relaxations.size_proof import SizeProof
from pauca.results.instructions import IN_PYTHON, Instructions, stopped_in_words
from pauca.wording import aligned, column_names, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# So many features are named in a line.
NAMES_SHOWN = 8


# Where columns outnumber rows, much smaller ridges than this leave gaps that no time closes. On tables of 71 x 4088 and
# 72 x 7129, sizes 1 to 5, 20 seconds prove all of them at 0.3, one or two at 0.1, and one at 0.001.
RIDGE_FOR_PROOFS = 0.3

# A bound below so large a share of the objective says nothing.
NEARLY_ALL = 0.995


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
    ridge : float or None
        The ridge of the models on the path; None in files of earlier versions.
    stopped_after : float or None
        The time limit in seconds, where it ended the proofs.
    interrupted : bool
        Whether Ctrl-C ended them.

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
    ridge: float | None = None
    stopped_after: float | None = None
    interrupted: bool = False

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
                one.ridge,
                one.stopped_after,
                one.interrupted,
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
        return self.message_for(size, IN_PYTHON)

    def message_for(self, size: int, how: Instructions) -> str:
        """What is proved of a size, with what this kind of reader can do about it."""
        return how.in_words(self._message(size, how))

    def _message(self, size: int, how: Instructions) -> str:
        proof = self.proofs.get(size)
        if proof is None or proof.lower_bound == -np.inf:
            return "" if self.reason is None else f"{self.reason[0].upper()}{self.reason[1:]}."
        noun = f"{size} feature{'' if size == 1 else 's'}"
        if proof.proved:
            if self._n_subsets(size) == 1:
                return ""
            best = f"Proved to be the best of {self._all_subsets(size)} of {noun}{self._within}{self._searched}"
            return f"{best}.{self._shown(how, size)}"
        if proof.relative_gap > NEARLY_ALL:
            stopped = "" if proof.nodes else self._stopped(how)  # a tree with nodes hardly rises from there
            return f"Nothing is proved of the models of {noun}: {self._why_zero}.{stopped}"
        better = f"No model of {noun} is better by more than {_percent(proof.relative_gap)}"
        return f"{better}{self._searched} (lower bound).{self._stopped(how)}{self._shown(how, size)}"

    @property
    def _within(self) -> str:
        """What the subsets are counted within, where there is more to say than their size."""
        copies = f" without {'a copy' if self.n_copies == 1 else 'copies'} of other columns" if self.n_copies else ""
        return (" within the limits" if self.limited else "") + copies

    @property
    def has_bounds(self) -> bool:
        """Whether there is a lower bound of any size; if not, ``reason`` says why."""
        return any(proof.lower_bound > -np.inf for proof in self.proofs.values())

    @property
    def overview(self) -> str:
        """How many sizes are proved, in a sentence; or why there is no bound."""
        return self.overview_for(IN_PYTHON)

    def overview_for(self, how: Instructions) -> str:
        """The overview, with what this kind of reader can do about it."""
        if not self.has_bounds:
            return (
                how.in_words(f"{self.reason[0].upper()}{self.reason[1:]}.")
                if self.reason
                else "No size has a lower bound."
            )
        proved = sum(proof.proved for proof in self.proofs.values())
        sizes = "1 size is" if len(self.sizes) == 1 else f"{len(self.sizes)} sizes are"
        stopped = self._stopped(how) if proved < len(self.sizes) else ""
        if not proved:
            return f"None of {sizes} proved.{stopped}"
        what = f"no model with as many features is better{self._within}{self._searched}"
        return f"{proved} of {sizes} proved: {what}.{stopped}{self._shown(how)}"

    def summary(self) -> str:
        """What is proved of every size, as text: a line for each."""
        if not self.has_bounds:
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
        if proof.relative_gap > NEARLY_ALL:
            words = "nothing"
        elif proof.proved:
            words = "the only subset" if self._n_subsets(size) == 1 else f"best of {self._all_subsets(size)}"
        more = f" and {len(always) - NAMES_SHOWN} more" if len(always) > NAMES_SHOWN else ""
        return f"{words}, always with {', '.join(always[:NAMES_SHOWN])}{more}" if always else words

    def _n_subsets(self, size: int) -> int:
        """How many there are, whether or not they are within the limits."""
        return comb(self.n_candidates - self.n_forced, max(0, size - self.n_forced))

    def _all_subsets(self, size: int) -> str:
        """``all 252 subsets``: those within limits on which features go together are not counted."""
        return "all subsets" if self.limited else f"all {_count(self._n_subsets(size))} subsets"

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        proved = sum(self.proofs[size].proved for size in self.sizes)
        return f"<Certificate of {len(self.sizes)} sizes, {proved} proved>"

    @property
    def _searched(self) -> str:
        """What the sentence is about, where the models have another ridge."""
        return "" if self.search_ridge is None else f" at ridge {self.search_ridge:.3g}, the ridge of the search"

    def _shown(self, how: Instructions, size: int | None = None) -> str:
        """That nothing is proved at the ridge of the models, where it is another; of one ``size``, or of all."""
        if self.search_ridge is None or self.ridge is None:
            return ""
        if size is None:
            return f" The models shown have ridge {self.ridge:.3g}, at which others may be better."
        search = how.search_at.format(size=size, ridge=self.ridge)
        return f" The model shown has ridge {self.ridge:.3g}, at which another set may be better{search}."

    @property
    def _why_zero(self) -> str:
        """Why a lower bound says nothing."""
        ridge = self.ridge if self.search_ridge is None else self.search_ridge
        if ridge is None or ridge >= RIDGE_FOR_PROOFS:
            return "the lower bound is next to zero, and a larger ridge would raise it"
        common = f"is common {f'at ridge {ridge:.3g}' if ridge else 'without a ridge'} where columns outnumber rows"
        chance = f"ridge={RIDGE_FOR_PROOFS:g} on standardised columns has a chance"
        return f"the lower bound is next to zero, which {common}; {chance}"

    def _stopped(self, how: Instructions) -> str:
        """That the time limit or Ctrl-C ended the proofs, where one of them did."""
        return stopped_in_words(self.stopped_after, how, interrupted=self.interrupted)

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
        """The columns of a path's table for one size; ``search_`` marks what is about the objective of the search.

        None where there is no bound of any size.
        """
        if not self.has_bounds:
            return {}
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
