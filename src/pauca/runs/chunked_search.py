"""Searches on a table in chunks for losses without closed forms: on gathered columns, and checked against all others.

Columns are guessed by the same search on a sample of the rows, and gathered. The search runs on them; then one pass
finds the slopes of all columns at every model that the search visited. Columns that it would have looked at, had it
seen them, are gathered too, and the search runs again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pauca.design import ChunkedDesign, GatheredColumns
from pauca.design.chunks.base import ChunkError
from pauca.design.chunks.chunk_sums import Sums, converted
from pauca.losses import Loss
from pauca.runs.problem import LinearProblem, Target
from pauca.runs.run import Budget, Goal, SearchRun, Stop
from pauca.subsets.base import SLACK
from pauca.subsets.screening_violations import Unseen, VisitedModel, centred_model, likely_additions, rivals
from pauca.subsets.smooth import SmoothSubset

# Beside the units that the search on the sample takes, the next best ones at each of its models are gathered.
RUNNERS_UP = 2

# Gathered units: at least so many times the requested size and so many more, and at most so many in a round.
LEAST_TIMES, LEAST_MORE = 2, 16
MOST_IN_A_ROUND = 128

# Rounds of searching and checking: a round that widens takes two passes.
MOST_ROUNDS = 5

# Without a requested size, the search on the sample goes as far as this.
GUESSED_SIZE = 30


OUT_OF_UNITS = frozenset({Stop.EXHAUSTED, Stop.NO_GAIN})
"""Why a search ends because no units are left."""


class Gathering:
    """The columns of a table in chunks that a search has gathered, and what is known of the models it visited."""

    def __init__(self, problem: LinearProblem, weights: np.ndarray, design: ChunkedDesign, size: int | None) -> None:
        self._problem, self._weights, self._design = problem, weights, design
        self._size = GUESSED_SIZE if size is None else size
        self._known: dict[tuple[int, frozenset[int]], np.ndarray] = {}
        self._cross: dict[int, np.ndarray] = {}
        self._calibration = np.ones(len(problem.units))
        self.rounds = 0
        everything = getattr(problem.method, "starts_full", False)
        self.columns = GatheredColumns(problem.X, design.n_features if everything else self._most())
        if everything:
            self._gather_all()
        else:
            self._gather(self._guess())

    def _most(self) -> int:
        """The most columns that may ever be gathered."""
        units, sizes = self._problem.units, self._problem.units.sizes()
        first = LEAST_TIMES * self._size + LEAST_MORE + len(self._problem.limits.always)
        wanted = max(first, (1 + RUNNERS_UP) * self._size) + MOST_IN_A_ROUND * MOST_ROUNDS
        return int(np.sort(sizes)[::-1][:wanted].sum()) if not units.single else wanted

    def problem(self) -> LinearProblem:
        """The problem on the gathered columns."""
        return replace(self._problem, X=self.columns)

    # Guesses.

    def _guess(self) -> list[int]:
        """Units that a search on the sample takes or nearly takes, the most likely first."""
        sample = self._design.sample
        assert sample is not None
        usable = np.flatnonzero(self._problem.units.any(self._design.usable))
        least = LEAST_TIMES * self._size + LEAST_MORE
        found = dict.fromkeys([*self._problem.limits.always, *usable[:least].tolist()])
        target, weights = self._problem.target, self._weights[sample.rows]
        if not weights.sum() > 0:
            weights = np.ones(len(weights))
        y = target.y[..., sample.rows]
        if target.loss.classifies and len(np.unique(y)) < len(np.unique(target.y)):
            return list(found)  # a class is too rare for the sample: all that matters is found by the checks
        problem = replace(self._problem, X=sample.X, target=Target(y, target.loss, target.n_outputs))
        run = problem.begin(weights / weights.sum())
        assert isinstance(run.subset, SmoothSubset)
        run.advance(Goal(self._size), Budget())
        self._calibration = run.subset.cache.calibration
        found = dict.fromkeys(self._problem.limits.always)
        ranked: list[list[int]] = []
        for visited in visited_models(run):
            at = run.subset.moved_to(visited.support)
            found.update(dict.fromkeys(at.support))
            ranked.append(likely_additions(at, RUNNERS_UP))
        # The next best of all models before the second best of any.
        for place in range(RUNNERS_UP):
            found.update(dict.fromkeys(units[place] for units in ranked if place < len(units)))
        if len(found) < least:
            found.update(dict.fromkeys(likely_additions(run.subset.restarted(), least)))
        return [int(unit) for unit in found]

    def _gather(self, units: Sequence[int]) -> None:
        chosen = [*units, *self._problem.limits.missing_parents(units)]
        features = self._problem.units.of(chosen)
        while len(features) > self.columns.room and len(chosen) > 1:
            chosen = chosen[:-1]
            features = self._problem.units.of(chosen)
        self.columns.gather(features)

    def _gather_all(self) -> None:
        chunks = self._problem.X
        needed = chunks.n_rows * chunks.n_features * 8
        if needed > chunks.memory:
            raise ChunkError(
                f"method='backward' starts from all {chunks.n_features} columns, which take {needed / 1e9:.1f} GB in "
                "memory for this loss; the table is read in chunks because it is too large for that. Use a method that "
                "grows, such as 'exchange' or 'forward'."
            )
        self.columns.gather(np.arange(chunks.n_features))

    # Checks.

    def widened(self, runs: Sequence[SearchRun]) -> bool:
        """Gather what some runs would have looked at; whether there was anything."""
        self.rounds += 1
        if len(self.columns.features) == self._design.n_features or self.rounds > MOST_ROUNDS:
            return False
        visited = [list(visited_models(run)) for run in runs]
        self._read_slopes(runs, visited)
        ratios: dict[int, float] = {}
        for number, (run, places) in enumerate(zip(runs, visited, strict=True)):
            for place in places:
                for unit, ratio in self._rivals(number, run, place):
                    ratios[unit] = max(ratios.get(unit, 0.0), ratio)
        if not ratios or not self.columns.room:
            return False
        self._gather(sorted(ratios, key=lambda unit: (-ratios[unit], unit))[:MOST_IN_A_ROUND])
        return True

    def _rivals(self, number: int, run: SearchRun, place: VisitedModel) -> Iterator[tuple[int, float]]:
        """Units that were not gathered and might have been chosen, and by how much their estimates are above."""
        assert isinstance(run.subset, SmoothSubset)
        design, units = self._design, self._problem.units
        outside = units.any(design.usable & (self.columns.place < 0))
        slope = self._known[number, place.support]
        unseen = Unseen(slope, self._cross, design.spread, outside, self._calibration)
        yield from rivals(
            run.subset.moved_to(place.support),
            place,
            unseen,
            rule=getattr(run.method, "rule", "refit"),
            slack=getattr(run.method, "shortlist", SLACK) or SLACK,
            swaps=getattr(run.method, "swaps", False),
        )

    def _read_slopes(self, runs: Sequence[SearchRun], visited: Sequence[Sequence[VisitedModel]]) -> None:
        """Slopes of all columns at the models that are not known yet, in one pass, and products with their columns."""
        new = [
            list(dict.fromkeys(place.support for place in places if (number, place.support) not in self._known))
            for number, places in enumerate(visited)
        ]
        if not any(new):
            return
        used = sorted({int(j) for supports in new for one in supports for j in self._problem.units.of(sorted(one))})
        columns = np.array(used, dtype=np.intp)
        states = [_models(run, supports, columns) for run, supports in zip(runs, new, strict=True)]
        objectives: list[Any] = [run.subset.objective for run in runs]  # type: ignore[attr-defined]
        products = np.array([place for place, j in enumerate(used) if j not in self._cross], dtype=np.intp)
        found = self._problem.X.sum(
            slopes_of_models,
            objectives[0].smooth,
            self._design.mean,
            columns,
            states,
            products,
            beside=(self._problem.target.y, tuple(one.design.weights for one in objectives), self._weights),
        )
        inverse = np.divide(1.0, self._design.spread, out=np.zeros_like(self._design.mean), where=self._design.usable)
        for number, supports in enumerate(new):
            for place, support in enumerate(supports):
                self._known[number, support] = -found[number][place] * inverse
        for place, row in zip(products, found[-1], strict=True):
            self._cross[used[place]] = row * inverse[used[place]] * inverse


def _models(run: SearchRun, supports: Sequence[frozenset[int]], columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of some models on columns about their means, shape (T, C, U), and their constants, shape (T, C)."""
    subset: Any = run.subset
    outputs = subset.objective.n_outputs
    coef, constant = np.zeros((len(supports), outputs, len(columns))), np.zeros((len(supports), outputs))
    for place, support in enumerate(supports):
        features, own, constant[place] = centred_model(subset.moved_to(support))
        coef[place][:, np.searchsorted(columns, features)] = own
    return coef, constant


def slopes_of_models(
    block: np.ndarray,
    y: np.ndarray,
    weights: tuple[np.ndarray, ...],
    of_all_rows: np.ndarray,
    loss: Loss,
    mean: np.ndarray,
    columns: np.ndarray,
    states: Sequence[tuple[np.ndarray, np.ndarray]],
    products: np.ndarray,
) -> Sums:
    """Sums of ``v L'(y, score) (x - mean)`` for all columns at some models: (T, C, d) for each of several row weights.

    And products of some of the models' columns with all.
    """
    totals = [np.zeros((*constant.shape, block.shape[1])) for _, constant in states]
    cross = np.zeros((len(products), block.shape[1]))
    for rows, Z in converted(block, mean):
        chosen = np.ascontiguousarray(Z[:, columns].T)
        for total, v, (coef, constant) in zip(totals, weights, states, strict=True):
            if len(coef):
                weighted = _derivatives(loss, y[..., rows], chosen, coef, constant) * v[rows]
                np.add(total, (weighted.reshape(-1, len(Z)) @ Z).reshape(total.shape), out=total)
        cross += (chosen[products] * of_all_rows[rows]) @ Z
    return (*totals, cross)


def _derivatives(loss: Loss, y: np.ndarray, chosen: np.ndarray, coef: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """Derivatives of the loss at some models, shape (T, C, rows)."""
    n_models, outputs, width = coef.shape
    scores = (coef.reshape(n_models * outputs, width) @ chosen).reshape(n_models, outputs, -1) + constant[:, :, None]
    if loss.joint:
        return np.stack([loss.derivative(y, one) for one in scores])
    return loss.derivative(np.broadcast_to(y, scores.shape), scores)


def visited_models(run: SearchRun) -> Iterator[VisitedModel]:
    """The models that a search visited, each with the unit that it added next, if it did."""
    assert run.history is not None
    support = frozenset(run.subset.restarted().support)
    best = {frozenset(model.support) for model in run.history.best.values()}
    for action, *features in run.history.moves:
        units = [(one,) if isinstance(one, int) else one for one in features]
        sets = [frozenset(one) for one in units]
        if action == "add" or not sets[0]:  # of several that were added at once the last gains least
            yield VisitedModel(support, units[-1][-1], support in best)
        elif support in best:
            yield VisitedModel(support, None, True)
        support = support | sets[0] if action == "add" else support - sets[0]
        support = support | sets[1] if action == "swap" else support
    yield VisitedModel(support, None, support in best, run.history.stop in OUT_OF_UNITS)
