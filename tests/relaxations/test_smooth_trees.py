"""Trees of smooth losses against enumeration, where bounds tell next to nothing."""

import itertools

import numpy as np
import pytest

from pauca.constraints.limits import Limits
from pauca.losses import Poisson
from pauca.relaxations.smooth import SmoothForest, SmoothProblem
from pauca.relaxations.tree import Incumbent


def counts_in_few_rows(seed, ridge):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((6, 12))
    y = rng.poisson(1.0, 6).astype(float)
    return SmoothProblem(X, y, np.full(6, 1 / 6), Poisson(), np.full(12, ridge), center=False)


@pytest.mark.parametrize("seed", [0, 1])
def test_trees_with_a_tiny_ridge_bound_fewer_nodes_than_there_are_models(seed, monkeypatch):
    problem, relaxed = counts_in_few_rows(seed, 1e-6), []
    relax = SmoothForest._relax
    monkeypatch.setattr(SmoothForest, "_relax", lambda self, *given: relaxed.append(1) or relax(self, *given))
    supports = [np.array(one) for one in itertools.combinations(range(12), 3)]
    values = [problem.fit(one)[0] for one in supports]
    start = Incumbent(3, values[0], tuple(supports[0].tolist()))
    forest = SmoothForest(problem, problem.value(np.zeros(6)), [start], Limits())
    forest.plant()
    while forest.open:
        forest.advance()
    tree = forest.trees[3]
    assert tree.value == pytest.approx(min(values), rel=1e-8)
    assert tree.lower_bound >= min(values) * (1 - 1e-6)
    assert len(relaxed) < len(supports) / 2


def test_a_fit_that_is_certain_to_be_above_the_cut_ends_early():
    problem, support = counts_in_few_rows(0, 0.1), np.arange(3)
    value, _ = problem.fit(support)
    _, bound = problem.fit(support, cut=0.5 * value)
    assert 0.5 * value <= bound <= value
    assert problem.fit(support, cut=value)[0] == pytest.approx(value, rel=1e-8)
