"""What share of every column a model explains: the same whatever model it is found from."""

import numpy as np

from pauca.design import make_design
from pauca.objectives.least_squares import GramRows
from pauca.subsets import explained_shares
from pauca.subsets.explained_shares import ExplainedShares


def test_shares_are_the_same_whatever_models_came_before(monkeypatch):
    monkeypatch.setattr(explained_shares, "CACHED_NUMBERS", 20)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 30)) + rng.standard_normal((80, 1))
    X[:, 7] = X[:, 3] - X[:, 5]
    design = make_design(X, np.full(80, 1 / 80), center=True)
    gram, penalty = design.gram(np.arange(30)), np.linspace(0.0, 0.1, 30)
    shares = ExplainedShares(GramRows(design), penalty)
    for model in ([3, 5], [3, 5, 9], [9, 3, 5, 12, 7], [3, 12, 7, 20], [20], list(range(10, 25)), list(range(11, 26))):
        inverse = np.linalg.inv(gram[np.ix_(model, model)] + np.diag(penalty[model]) + 1e-10 * np.eye(len(model)))
        direct = np.einsum("js,st,jt->j", gram[:, model], inverse, gram[:, model])
        np.testing.assert_allclose(shares.of(model), direct, atol=1e-8)
