"""The search for sensors on some of the sequences, and what its models say in the user's units."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pauca.constraints.limits import Limits
from pauca.constraints.units import Units
from pauca.crf.objective import ChainField
from pauca.crf.observations import Observations
from pauca.crf.passes import Passes
from pauca.custom.objective import CustomProblem
from pauca.custom.subset import CustomSubset
from pauca.model import Model
from pauca.model_selection.folds import Fold
from pauca.model_selection.rules import choose_by_folds
from pauca.model_selection.selection import Selection, Weigh
from pauca.results.choice import ACCURACY, Choice
from pauca.search.driver import Method
from pauca.search.problem import SearchRun


@dataclass(frozen=True, eq=False)
class TaggerProblem:
    """Sequences, labels and wishes, all of them checked; any number of searches start from it."""

    observations: Observations
    codes: np.ndarray
    """Number of the label of every position."""
    method: Method
    units: Units
    limits: Limits
    by_weight: bool
    ridge: float
    ridge_transitions: float
    threads: int

    def begin(self, weights: np.ndarray, design: Any = None) -> SearchRun:
        """A search on the sequences that have weight, which is how often each of them occurs."""
        chosen = np.repeat(np.arange(len(weights)), _times(weights))
        whole = np.array_equal(chosen, np.arange(len(weights)))
        data = self.observations if whole else self.observations.take(chosen)
        # A label that these sequences do not have cannot be learned from them.
        present, codes = np.unique(self.codes[self.observations.positions(chosen)], return_inverse=True)
        field = ChainField(
            data,
            codes,
            len(present),
            ridge=self.ridge,
            ridge_transitions=self.ridge_transitions,
            owner=None if self.by_weight else self.units.owner,
            by_weight=self.by_weight,
            threads=self.threads,
        )
        return SearchRun(self.method, Learned(field, present), CustomSubset.start(CustomProblem(field), self.limits))


def _times(weights: np.ndarray) -> np.ndarray:
    """The smallest whole numbers that are in proportion to some weights, which came of whole numbers."""
    shares = weights / weights[weights > 0].min()
    for often in itertools.count(1):
        times = np.rint(shares * often)
        if np.abs(times - shares * often).max() < 1e-6:
            break
    return times.astype(np.intp)


@dataclass(frozen=True, eq=False)
class Learned:
    """What a search has learned from: the field on its sequences, and which labels these have."""

    field: ChainField
    present: np.ndarray

    def weights(self, model: Model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights of columns, transitions and biases of a model of the search."""
        w = np.zeros(self.field.n_coords)
        w[self.field.free], w[model.support] = model.free, model.coef
        return self.field.weights(w)

    def labels(self, model: Model, sequences: Observations) -> np.ndarray:
        """Numbers of the most probable labels of some sequences."""
        weights, transitions, biases = self.weights(model)
        scores = sequences.scores(weights) + biases
        return self.present[Passes(sequences, len(biases)).best_labels(scores, transitions)]


def by_accuracy(rule: str, problem: TaggerProblem) -> Weigh:
    """A choice by the share of positions labelled rightly in sequences held out."""

    def weigh(selection: Selection, sizes: list[int]) -> Choice:
        found = selection.fold_runs()
        if not found:
            return choose_by_folds(np.array(sizes[-1:]), np.zeros((1, 1)), rule, ACCURACY)
        scores = np.array([_accuracies(problem, fold, run, sizes) for fold, run in found])
        return choose_by_folds(np.array(sizes), scores, rule, ACCURACY)

    return weigh


def _accuracies(problem: TaggerProblem, fold: Fold, run: SearchRun, sizes: list[int]) -> list[float]:
    held_out = problem.observations.take(fold.test)
    truth = problem.codes[problem.observations.positions(fold.test)]
    models = run.models(0)
    # A search that ended early has no better to offer than its largest model.
    places = [max(one for one in models if one <= size) for size in sizes]
    found = {one: float(np.mean(run.design.labels(models[one], held_out) == truth)) for one in set(places)}
    return [found[one] for one in places]


def told(learned: Learned, model: Model, *, by_weight: bool) -> Model:
    """A model in the user's units.

    By sensor: coefficients of shape (C, columns), an intercept for each label, and transitions as what is always in. By
    weight: the chosen weights, and transitions and biases as what is always in.
    """
    weights, transitions, biases = learned.weights(model)
    if by_weight:
        free = np.concatenate([transitions.ravel(), biases])
        return replace(model, coef=weights.ravel()[model.support], free=free)
    columns = np.unique(model.support // len(biases))
    return replace(model, support=columns, coef=weights[columns].T.copy(), intercept=biases, free=transitions.ravel())
