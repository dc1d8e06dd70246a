"""Tables as Gaussian graphs: searches on some rows, and the choice of the number of edges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pauca.constraints.limits import Limits
from pauca.design import Design, make_design
from pauca.estimators.fit_warnings import ended_by_time
from pauca.graphical.covariance import covariance, moments_about, shrink_correlations
from pauca.graphical.edges import Edges
from pauca.graphical.objective import GaussianGraph
from pauca.graphical.path import GraphPath
from pauca.graphical.subset import GraphSubset
from pauca.model import Model
from pauca.model_selection.folds import Fold
from pauca.model_selection.grids import SizeRange
from pauca.model_selection.rules import choose_by_criterion, choose_by_folds, nothing_scored
from pauca.model_selection.scoring import Models
from pauca.model_selection.size_selection import ChoiceRule, Selection
from pauca.results.choice import Choice, Rule
from pauca.runs.problem import Problem
from pauca.runs.run import Method, SearchRun, Stop
from pauca.wording import quoted_columns

# How folds are scored.
SCORING = "log-likelihood per row above that without edges"

# Where k is to be chosen, at most so many edges for each column are compared.
EDGES_PER_COLUMN = 4


@dataclass(frozen=True, eq=False)
class GraphProblem:
    """A checked table and settings from which any number of searches start."""

    X: np.ndarray
    names: np.ndarray | None
    method: Method
    limits: Limits
    shrinkage: float
    center: bool

    def design(self, weights: np.ndarray) -> Design:
        """The columns, standardised on the rows with weight."""
        return make_design(self.X, weights, center=self.center)

    def begin(self, weights: np.ndarray, design: Design | None = None) -> SearchRun:
        """A search on the rows with weight."""
        design = design or self.design(weights)
        if not design.usable.all():
            idle = np.flatnonzero(~design.usable)
            raise ValueError(
                f"Columns that are constant on the rows of a fold: {quoted_columns(self.names, idle)}. Leave them out, "
                "give k as a number, or choose it by criterion='ebic', which needs no folds."
            )
        graph = GaussianGraph(self.covariance(design))
        return SearchRun(self.method, design, GraphSubset.start(graph, self.limits))

    def covariance(self, design: Design) -> np.ndarray:
        """The covariance that graphs are fitted to."""
        return shrink_correlations(covariance(design), self.shrinkage)


def size_range_for(sizes: tuple[int, ...] | str, n_nodes: int, most: int) -> SizeRange:
    """The numbers of edges to compare: up to as many as columns at first."""
    if not isinstance(sizes, str):
        return SizeRange.given(sizes)
    most = max(1, min(most, EDGES_PER_COLUMN * n_nodes))
    return SizeRange(min(n_nodes, most), None, most)


def by_likelihood(rule: Rule) -> ChoiceRule:
    """A choice by the likelihood of held-out rows."""

    def weigh(selection: Selection, sizes: list[int]) -> Choice:
        found = selection.fold_models()
        if not found:
            return nothing_scored(sizes[-1], rule, SCORING)
        edges = _edges(selection)
        scores = []
        for fold, models in found:
            moments = _held_out(selection.problem, fold, selection.weights)
            values = np.array([_value(edges, _at_most(models, size), moments) for size in (0, *sizes)])
            scores.append(0.5 * (values[0] - values[1:]))
        return choose_by_folds(np.array(sizes), np.array(scores), rule, SCORING)

    return weigh


def by_criterion(criterion: str) -> ChoiceRule:
    """A choice by an information criterion on the rows of the fit."""

    def weigh(selection: Selection, sizes: list[int]) -> Choice:
        models, edges = selection.whole.models(0), _edges(selection)
        moments, n_rows = covariance(selection.whole.design), int(np.count_nonzero(selection.weights))
        p = len(moments)
        fits = [n_rows * (_value(edges, models[size], moments) + p * np.log(2.0 * np.pi)) for size in sizes]
        return choose_by_criterion(criterion, fits, [p + size for size in sizes], sizes, n_rows, len(edges))

    return weigh


def fit_warnings(k: Any, path: GraphPath, found: int) -> Iterator[str]:
    """What to warn of after a fit; as a rule nothing."""
    if isinstance(k, int) and found < k and path.stop in {Stop.EXHAUSTED, Stop.LIMITS, Stop.NO_GAIN}:
        yield f"There are fewer edges than k={k}: {_why_fewer(path, found)}."
    if isinstance(k, int):
        yield from ended_by_time(k, found, path.stop, "edges")
    if path.choice is not None and path.n_features:
        yield from _choice_warnings(path.choice, path.n_features, path.stop)
    if path.stop is Stop.INTERRUPTED:
        yield f"The search was interrupted; the graphs up to {max(path.sizes)} edges were kept."


def _why_fewer(path: GraphPath, found: int) -> str:
    if path.stop is Stop.NO_GAIN:
        return f"the search ended at {found}: no other lowers the objective"
    if found < path.n_features:
        return f"only {found} of {path.n_features} may be used: 'never' leaves out the others"
    return f"only {found} exist"


def _choice_warnings(choice: Choice, n_edges: int, stop: Stop) -> Iterator[str]:
    """What is unusual about a choice of size; that no edge was chosen does not make columns independent."""
    may_depend = "Columns may still depend on each other: more rows would show it."
    if choice.chosen == 0 and choice.best > 0:
        yield (
            f"No edge was chosen: held-out rows are most likely with {choice.best}, but by less than one standard "
            f"error. {may_depend} selection_rule='best' takes the most likely number."
        )
    elif choice.chosen == 0 and choice.by_folds:
        yield f"No edge was chosen: none makes held-out rows more likely. {may_depend}"
    elif choice.chosen == 0:
        yield f"No edge was chosen: none lowers the {choice.criterion_name}. {may_depend}"
    elif stop is Stop.SIZE and len(choice.sizes) > 1 and choice.chosen == max(choice.sizes) < n_edges:
        yield (
            f"The largest number of edges that was compared, {choice.chosen}, was chosen; a range of larger ones may "
            "be better."
        )


def _edges(selection: Selection) -> Edges:
    subset = selection.whole.subset
    assert isinstance(subset, GraphSubset)
    return subset.graph.edges


def _held_out(problem: Problem, fold: Fold, weights: np.ndarray) -> np.ndarray:
    """Second moments of the held-out rows, about the means of the others."""
    assert isinstance(problem, GraphProblem)
    share = np.zeros_like(weights)
    share[fold.test] = weights[fold.test] / weights[fold.test].sum()
    return moments_about(problem.design(share), problem.design(fold.weights).mean)


def _value(edges: Edges, model: Model, moments: np.ndarray) -> float:
    """``-logdet Theta + tr(S Theta)`` of a graph for moments S that it was not fitted to."""
    assert model.free is not None
    between = moments[edges.first[model.support], edges.second[model.support]]
    # On those that it was fitted to, the trace is p.
    logdet = len(moments) - model.objective
    return float(np.diagonal(moments) @ model.free + 2.0 * (between @ model.coef)) - logdet


def _at_most(models: Models, size: int) -> Model:
    """The graph of a size, or of the next smaller one: a path that ended early has no larger one."""
    return models[max(known for known in models if known <= size)]
