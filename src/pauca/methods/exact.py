"""Exact, branch and bound on the perspective relaxation: the best model of every size, and a proof of it."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

from pauca.checks import ParameterChecks
from pauca.methods.exchange import Exchange
from pauca.methods.forward import GrowingMethod
from pauca.relaxations.optimality_bounds import NoBoundError, Proofs
from pauca.runs.run import Goal, History, Move, Stop
from pauca.subsets.base import Subset, is_lower

STOPPED_BEFORE = "no lower bound was computed: the search was stopped before"


@dataclass(frozen=True)
class Exact(GrowingMethod):
    """The best model of every size by branch and bound, with a proof.

    First ``Exchange`` finds good models of every size. Then each size has a search tree: a node has some features in
    and some out, and the perspective relaxation bounds what the models below it can reach. Nodes that cannot hold a
    better model are closed, and when none is open the model is proved to be best. A better one that turns up replaces
    it. The sizes do not depend on each other.

    A search that is stopped, by ``time_limit``, a callback or Ctrl-C, keeps the models and the bounds found so far:
    ``certificate_`` says how far from the best each model can be at most.

    For squared error with a single output, with a ridge or with more rows than (linearly independent) columns; and for
    other smooth losses of one output or two classes with a ridge, on tables that are not large. With ten
    features of a hundred a proof takes a fraction of a second as a rule; where columns are many or nearly dependent,
    and the ridge is small, it may take for ever, and the bound is then what you get.

    Parameters
    ----------
    relative_gap : float, default=0.0
        Stop at each size when no model can be better by more than this share of the objective. 0 asks for a proof.

    References
    ----------
    Bertsimas and Van Parys (2020) and Hazimeh, Mazumder and Saab (2022) for branch and bound with this relaxation;
    Dong, Chen and Linderoth (2015) for the diagonal that makes it work without a ridge.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from pauca import SparseRegressor
    >>> from pauca.methods import Exact
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = SparseRegressor(k=5, method=Exact()).fit(X, y)
    >>> model.certificate_.proved[5]
    True
    """

    relative_gap: float = 0.0

    def __post_init__(self) -> None:
        ParameterChecks("Exact").number("relative_gap", self.relative_gap)

    @property
    def search(self) -> Exchange:
        """The method that finds the models to begin with."""
        return Exchange()

    def moves(self, subset: Subset, history: History, goal: Goal) -> Generator[Move | None, None, Stop]:
        """The moves of the search, then those that lead to a better model where the trees have found one."""
        history.no_proof = STOPPED_BEFORE
        stop = yield from self.search.moves(subset, history, goal)
        try:
            proofs = Proofs(subset, history.best)
        except NoBoundError as error:
            history.no_proof = str(error)
            return stop
        for _ in proofs.grow(self.relative_gap):
            history.no_proof, history.n_copies = None, len(proofs.copies)
            yield from _better_models(subset, history, proofs)
            yield None
        yield from _move_to(subset, history.best[max(history.best)].support)
        return stop

    def answer(self, history: History, goal: Goal) -> int:
        """The requested size, or the largest there is."""
        return goal.k if goal.k in history.best else max(history.best)


def _better_models(subset: Subset, history: History, proofs: Proofs) -> Iterator[Move]:
    """Moves to the models that are better than those known, and what is proved of every size."""
    for size in proofs.sizes:
        history.proofs[size] = proof = proofs.proof(size)
        if is_lower(proof.objective, history.best[size].value, subset.negligible):
            yield from _move_to(subset, proofs.support(size))


def _move_to(subset: Subset, support: tuple[int, ...]) -> Iterator[Move]:
    """The move that leads from the current model to another one, of any size."""
    out = tuple(sorted(set(subset.support) - set(support)))
    into = tuple(sorted(set(support) - set(subset.support)))
    if out or into:
        yield ("swap", out, into)
