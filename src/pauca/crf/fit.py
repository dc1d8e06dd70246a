"""The search for sensors: settings and data of a fit, searches on some of the sequences, and the path they lead to."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pauca.clock import GRACE, deadline_after, limited_until
from pauca.constraints.limits import Limits
from pauca.constraints.parsing import Columns, ConstraintParser
from pauca.constraints.units import Units
from pauca.crf.chain_inference import ChainInference, compile_kernels, load_kernels
from pauca.crf.feature_groups import RedundantSensors, column_sensors, find_redundant
from pauca.crf.input import Sequences
from pauca.crf.objective import ChainCRF
from pauca.crf.observations import Observations, check_magnitudes, check_offsets
from pauca.custom.objective import CustomProblem
from pauca.custom.subset import CustomSubset
from pauca.model import Model
from pauca.model_selection.folds import Fold, make_folds
from pauca.model_selection.grids import size_range_for
from pauca.model_selection.rules import choose_by_folds, nothing_scored
from pauca.model_selection.size_selection import ChoiceRule, Selection, choose_size
from pauca.results.choice import ACCURACY, Choice, Rule
from pauca.results.path import Path
from pauca.runs.parallel import ParallelRuns
from pauca.runs.run import Budget, Goal, Method, SearchRun
from pauca.subsets.base import require_memory
from pauca.wording import column_names

# Refits hold an inverse Hessian and copies of it.
SQUARE_ARRAYS = 6

SENSOR, WEIGHT = "sensor", "weight"


@dataclass(frozen=True, eq=False)
class TaggerSettings:
    """Parameters of a tagger, checked."""

    sizes: int | tuple[int, ...] | str | None
    """A size, sizes to compare, "auto", or None for as many sensors as help."""
    by_weight: bool
    """Whether single weights are selected instead of sensors."""
    method: Method
    cv: Any
    selection_rule: Rule
    n_jobs: int
    ridge: float | None
    ridge_transitions: float | None
    tol: float
    budget: Budget
    """Time limit and callback."""
    feature_groups: Any
    constraints: dict[str, Any]
    """The parameters always, never, costs and budget, as given."""
    fit_biases: bool = True
    standardize: bool = True
    exact_refits: bool = False

    @property
    def largest(self) -> int | None:
        """The largest size that the user gave, if any."""
        if isinstance(self.sizes, str) or self.sizes is None:
            return None
        return self.sizes if isinstance(self.sizes, int) else max(self.sizes)

    @property
    def compares_sizes(self) -> bool:
        """Whether the size is chosen by cross-validation."""
        return isinstance(self.sizes, tuple | str)


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """The sequences of one search: their objective, and the labels that occur in them."""

    crf: ChainCRF
    present: np.ndarray
    """Codes of the labels that occur."""

    def parameters(self, model: Model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights of columns, transitions and biases of a model of the search."""
        w = np.zeros(self.crf.n_coords)
        w[self.crf.free], w[model.support] = model.free, model.coef
        return self.crf.parameters(w)

    def predict(self, model: Model, sequences: Observations) -> np.ndarray:
        """Codes of the most probable labels of some sequences."""
        weights, transitions, biases = self.parameters(model)
        scores = sequences.scores(weights) + biases
        return self.present[ChainInference(sequences, len(biases)).viterbi(scores, transitions)]

    def in_user_units(self, model: Model, *, by_weight: bool) -> Model:
        """A model of the search for columns in the user's units.

        By sensor: coefficients of shape (C, columns), an intercept for each label, and transitions as free parameters.
        By weight: the chosen weights, and transitions and biases as free parameters.
        """
        weights, transitions, biases = self.parameters(model)
        if by_weight:
            free = np.concatenate([transitions.ravel(), biases])
            return replace(model, coef=weights.ravel()[model.support], free=free)
        columns, free = np.unique(model.support // len(biases)), transitions.ravel()
        return replace(model, support=columns, coef=weights[columns].T.copy(), intercept=biases, free=free)


@dataclass(frozen=True, eq=False)
class TaggerProblem:
    """Sequences, labels and constraints, checked; any number of searches start from it."""

    observations: Observations
    codes: np.ndarray
    """Code of the label of every position."""
    method: Method
    units: Units
    limits: Limits
    by_weight: bool
    ridge: float
    ridge_transitions: float
    threads: int
    biases: bool
    standardize: bool
    exact_refits: bool

    def begin(self, weights: np.ndarray, design: Any = None) -> SearchRun:
        """A search on the sequences of positive weight, which is proportional to how often each of them occurs."""
        chosen = np.repeat(np.arange(len(weights)), _repetitions(weights))
        whole = np.array_equal(chosen, np.arange(len(weights)))
        data = self.observations if whole else self.observations.take(chosen)
        # A label that does not occur in these sequences cannot be learned from them.
        present, codes = np.unique(self.codes[self.observations.positions(chosen)], return_inverse=True)
        crf = ChainCRF(
            data,
            codes,
            len(present),
            ridge=self.ridge,
            ridge_transitions=self.ridge_transitions,
            owner=None if self.by_weight else self.units.owner,
            by_weight=self.by_weight,
            biases=self.biases,
            standardize=self.standardize,
            costly=not self.exact_refits,
            threads=self.threads,
        )
        return SearchRun(self.method, TrainingSet(crf, present), CustomSubset.start(CustomProblem(crf), self.limits))

    def accuracies(self, fold: Fold, run: SearchRun, sizes: list[int]) -> list[float]:
        """The share of positions of a fold's test sequences that models of some sizes label correctly."""
        held_out = self.observations.take(fold.test)
        truth = self.codes[self.observations.positions(fold.test)]
        models = run.models(0)
        # A search that ended early has nothing better than its largest model.
        nearest = [max(one for one in models if one <= size) for size in sizes]
        shares = {one: float(np.mean(run.design.predict(models[one], held_out) == truth)) for one in set(nearest)}
        return [shares[one] for one in nearest]


@dataclass(frozen=True)
class TaggerFit:
    """The result of a search."""

    path: Path
    size: int
    """The chosen size."""
    redundant: RedundantSensors


def fit_tagger(settings: TaggerSettings, sequences: Sequences, classes: np.ndarray, codes: np.ndarray) -> TaggerFit:
    """Search for sensors on all sequences, and on those of every fold if the size is to be chosen."""
    load_kernels()  # says what to install before any work
    if settings.budget.time_limit is not None:
        compile_kernels()
    deadline = deadline_after(settings.budget.time_limit)
    n_sequences = len(sequences.bounds) - 1
    if settings.compares_sizes and n_sequences < 2:
        raise ValueError("Choosing k needs at least two sequences, to hold some of them out; give k as a number.")
    problem, redundant = _make_problem(settings, sequences, codes, len(classes))
    weights = np.full(n_sequences, 1.0 / n_sequences)
    if isinstance(settings.sizes, tuple | str):
        folds = make_folds(settings.cv, np.zeros(n_sequences), None, weights, classifies=False)
        selection = Selection(problem, weights, folds, settings.tol)
        runs = ParallelRuns(settings.budget, settings.n_jobs)
        sizes = size_range_for(settings.sizes, len(problem.units) - len(problem.limits.never))
        choice = choose_size(selection, sizes, runs, None, _by_accuracy(settings.selection_rule, problem))
        with limited_until(deadline + GRACE):
            path = _make_path(selection.noted_whole(), problem, sequences, classes, choice.chosen, choice)
        return TaggerFit(path, choice.chosen, redundant)
    run, goal = problem.begin(weights), Goal(settings.sizes, settings.tol)
    history = run.advance(goal, settings.budget)
    size = problem.method.answer(history, goal)
    with limited_until(deadline + GRACE):
        path = _make_path(run, problem, sequences, classes, size, None)
    return TaggerFit(path, size, redundant)


def _make_problem(
    settings: TaggerSettings, sequences: Sequences, codes: np.ndarray, n_labels: int
) -> tuple[TaggerProblem, RedundantSensors]:
    n, n_columns, by_weight = len(codes), sequences.matrix.shape[1], settings.by_weight
    columns = Columns(n_columns, sequences.names)
    sensors = column_sensors(settings.feature_groups, columns)
    parser = ConstraintParser(columns, feature_groups=sensors, noun=f"{SENSOR}s", **settings.constraints)
    _require_memory(n_labels, settings.largest or 0, None if by_weight else parser.units)
    observations = Observations.from_distinct_rows(sequences.matrix, sequences.bounds)
    check_magnitudes(observations, np.arange(n_columns), sequences.names)
    varies = observations.varies()
    if settings.fit_biases:
        check_offsets(observations, varies, sequences.names)
    else:  # a constant column takes the place of a bias
        varies = observations.magnitudes() > 0
    limits = parser.limits(settings.largest, varies)
    redundant = find_redundant(observations, parser.units, limits, varies)
    problem = TaggerProblem(
        observations,
        codes,
        settings.method,
        Units.columns(n_columns * n_labels) if by_weight else parser.units,
        redundant.excluded_weights(n_labels) if by_weight else redundant.excluded(limits),
        by_weight,
        1.0 / n if settings.ridge is None else settings.ridge,
        1.0 / n if settings.ridge_transitions is None else settings.ridge_transitions,
        # Folds run at the same time, each in a thread of its own.
        1 if settings.compares_sizes else settings.n_jobs,
        settings.fit_biases,
        settings.standardize,
        settings.exact_refits,
    )
    return problem, redundant


def _require_memory(n_labels: int, size: int, sensors: Units | None) -> None:
    """Refuse more labels than memory allows: refits hold an inverse Hessian over all transitions and weights.

    Of sensors with several columns the smallest are counted, and none without a size: this is a lower bound.
    """
    columns = size if sensors is None else int(np.sort(sensors.sizes())[:size].sum()) * n_labels
    n_coords = n_labels**2 + 3 * n_labels + columns
    require_memory(
        SQUARE_ARRAYS * 8 * n_coords**2,
        f"A model of {n_labels} labels, with a weight for each of their {n_labels**2} transitions,",
        "Merge rare labels, or leave them out: tens of labels are fine.",
    )


def _repetitions(weights: np.ndarray) -> np.ndarray:
    """The smallest whole numbers in proportion to weights that are shares of whole numbers."""
    shares = weights / weights[weights > 0].min()
    for factor in itertools.count(1):
        repetitions = np.rint(shares * factor)
        if np.abs(repetitions - shares * factor).max() < 1e-6:
            break
    return repetitions.astype(np.intp)


def _by_accuracy(rule: Rule, problem: TaggerProblem) -> ChoiceRule:
    """A choice of size by the accuracy on held-out sequences."""

    def choose(selection: Selection, sizes: list[int]) -> Choice:
        runs = selection.fold_runs()
        if not runs:
            return nothing_scored(sizes[-1], rule, ACCURACY)
        scores = np.array([problem.accuracies(fold, run, sizes) for fold, run in runs])
        return choose_by_folds(np.array(sizes), scores, rule, ACCURACY)

    return choose


def _make_path(
    run: SearchRun, problem: TaggerProblem, sequences: Sequences, classes: np.ndarray, size: int, choice: Choice | None
) -> Path:
    history, training = run.history, run.design
    assert history is not None
    assert history.stop is not None
    by_weight, n_columns = problem.by_weight, problem.observations.n_columns
    models = {size: training.in_user_units(one, by_weight=by_weight) for size, one in run.models(size).items()}
    labels = [str(label) for label in classes.tolist()]
    if by_weight:
        sensors = column_names(sequences.names, range(n_columns))
        names = np.array([f"{sensor} -> {label}" for sensor in sensors for label in labels], dtype=object)
        return Path(models, history.moves, history.stop, len(names), names, choice=choice, noun=WEIGHT)
    return Path(
        models,
        history.moves,
        history.stop,
        n_columns,
        sequences.names,
        problem.units.labels,
        None if problem.units.single else problem.units.owner,
        labels,
        prices=problem.limits.price,
        choice=choice,
        noun=SENSOR,
    )
