"""The conditional random field of Liu, Fujimaki and Ye (2014), to the letter: the same weights in the same order."""

from functools import partial

import numpy as np
import pytest
from chains import in_log_space, make_chains
from scipy.optimize import minimize, minimize_scalar

from pauca import PaucaWarning, SparseTagger
from pauca.crf import published_tagger


class Field:
    """The mean negative log-likelihood of chains of one length; weights (columns x labels), then dense transitions."""

    def __init__(self, X, y, n_labels):
        self.X, self.y, self.n = np.array(X, dtype=float), np.array(y), n_labels
        self.d = self.X.shape[2] * n_labels
        self.own = np.eye(n_labels)[self.y]
        self.steps = np.einsum("cta,ctb->ab", self.own[:, :-1], self.own[:, 1:])

    def value_and_gradient(self, w):
        weights, transitions = w[: self.d].reshape(-1, self.n), w[self.d :].reshape(self.n, self.n)
        scores = self.X @ weights
        log_partition, marginals, counts = in_log_space(scores, transitions)
        value = log_partition.sum() - np.sum(self.own * scores) - np.sum(self.steps * transitions)
        by_weight = np.einsum("ctj,cta->ja", self.X, marginals - self.own)
        by_step = counts.sum(axis=0) - self.steps
        return value / self.y.size, np.concatenate([by_weight.ravel(), by_step.ravel()]) / self.y.size

    def refit(self, F, start):
        free = np.array([*sorted(F), *range(self.d, len(start))])

        def restricted(u):
            w = np.zeros(len(start))
            w[free] = u
            value, gradient = self.value_and_gradient(w)
            return value, gradient[free]

        w = np.zeros(len(start))
        w[free] = minimize(restricted, start[free], jac=True, method="BFGS", options={"gtol": 1e-7}).x
        return w


def gains_alone(field, w):
    """How far the value falls along each weight, the others and the transitions fixed."""
    value, gains = field.value_and_gradient(w)[0], np.zeros(field.d)
    for j in range(field.d):
        along = partial(lambda j, step: field.value_and_gradient(w + step * (np.arange(len(w)) == j))[0], j)
        gains[j] = value - minimize_scalar(along, tol=1e-4).fun
    return gains


def follow(field, moves, rule):
    """Check moves against Algorithm 1, with refits of our own; ties may fall either way."""
    F, delta, to_remove = set(), {}, None
    w = field.refit(F, np.zeros(field.d + field.n**2))
    for action, unit in moves:
        value, gradient = field.value_and_gradient(w)
        assert (action == "drop") == (to_remove is not None)
        if action == "add":
            scores = np.abs(gradient[: field.d]) if rule == "gradient" else gains_alone(field, w)
            assert scores[unit] >= (1 - 1e-3) * scores.max()
        else:
            assert costs[unit] <= (1 + 1e-3) * to_remove  # noqa: F821
        F = F ^ {unit}
        w = field.refit(F, w)
        now = field.value_and_gradient(w)[0]
        if action == "add":
            delta[len(F)] = value - now
        costs = {j: field.value_and_gradient(np.where(np.arange(len(w)) == j, 0.0, w))[0] - now for j in F}
        cheapest = min(costs.values())
        to_remove = cheapest if len(F) > 1 and cheapest < delta[len(F)] / 2 else None
    assert to_remove is None
    return now


@pytest.mark.parametrize(("seed", "rule"), [(0, "gradient"), (3, "gradient"), (0, "objective")])
def test_weights_come_and_go_as_printed(seed, rule):
    X, y = make_chains([10] * 7, 3, 3, seed=seed, informative=2)
    model = published_tagger(4, rule=rule, ridge_transitions=0.0).fit(X, y)
    assert model.objective_ == pytest.approx(follow(Field(X, y, 3), model.path_.moves, rule), rel=1e-4)
    assert np.all(model.intercept_ == 0)


@pytest.mark.parametrize("seed", [12, 15])
def test_a_weight_that_others_make_needless_is_dropped_as_printed(seed):
    """The first column is nearly the mean of the others, so its weight comes early and goes again."""
    X, y = make_chains([12] * 8, 2, 3, seed=seed, informative=2)
    rng = np.random.default_rng(seed)
    X = [np.c_[0.5 * one.sum(axis=1) + 0.15 * rng.standard_normal(len(one)), one] for one in X]
    with pytest.warns(PaucaWarning, match="no other lowers"):
        model = published_tagger(5, ridge_transitions=0.0).fit(X, y)
    assert any(move[0] == "drop" for move in model.path_.moves)
    assert model.objective_ == pytest.approx(follow(Field(X, y, 2), model.path_.moves, "gradient"), rel=1e-4)


def test_a_constant_column_may_take_the_place_of_biases():
    X, y = make_chains([30] * 6, 2, 3, seed=1)
    X = [np.c_[one, np.ones(len(one))] for one in X]
    with_bias = SparseTagger(k=3, unit="weight", ridge=1e-3).fit([one[:, :3] for one in X], y)
    without = SparseTagger(k=5, unit="weight", ridge=1e-3, fit_biases=False).fit(X, y)
    assert with_bias.intercept_.any()
    assert not without.intercept_.any()
    assert len(without.coef_[0]) == 4


def test_standardize_changes_ridges_and_not_models():
    X, y = make_chains([30] * 6, 2, 2, seed=1, binary=False)
    y = [np.where(np.arange(30) % 5 == 0, 1 - one, one) for one in y]
    scaled = [one * [1.0, 100.0] for one in X]
    models = [SparseTagger(k=2, ridge=0.0, standardize=flag).fit(scaled, y) for flag in (True, False)]
    assert models[0].objective_ == pytest.approx(models[1].objective_, rel=1e-4)
