"""Chains for the tests, and slow reference results for the compiled kernels."""

from itertools import pairwise, product

import numpy as np
from scipy.special import logsumexp, softmax


def make_chains(lengths, n_labels, n_columns, seed=0, *, binary=True, informative=None):
    """Lists of X and y: labels that tend to stay, and columns some of which follow them."""
    rng = np.random.default_rng(seed)
    informative = n_columns if informative is None else informative
    rates = rng.uniform(0.05, 0.95, (n_labels, n_columns))
    rates[:, informative:] = 0.5
    X_list, y_list = [], []
    for length in lengths:
        y = np.empty(length, dtype=int)
        y[0] = rng.integers(n_labels)
        for t in range(1, length):
            y[t] = y[t - 1] if rng.random() < 0.7 else rng.integers(n_labels)
        X_list.append(rng.random((length, n_columns)) < rates[y] if binary else rates[y] + rng.normal(size=(length, 1)))
        y_list.append(y)
    return X_list, y_list


def bounds_of(X_list):
    return np.concatenate([[0], np.cumsum([len(X) for X in X_list])])


def point_of(field, weights, transitions, biases):
    """The coordinates of a field for given weights of unscaled columns."""
    data = field.observations
    biases = biases + data.transpose_dot(data.row_shares[:, None])[:, 0] @ weights
    scaled = weights * data.scales()[:, None]
    return np.concatenate([scaled.ravel(), transitions.ravel(), biases, np.zeros(2 * field.n_labels)])


def path_score(scores, transitions, labels):
    steps = sum(transitions[a, b] for a, b in pairwise(labels))
    return scores[np.arange(len(labels)), labels].sum() + steps


def enumerated(scores, transitions):
    """Log partition, marginals, counts of transitions and best labels of one chain, over all label sequences."""
    length, n = scores.shape
    paths = list(product(range(n), repeat=length))
    values = np.array([path_score(scores, transitions, np.array(path)) for path in paths])
    total = logsumexp(values)
    marginals, counts = np.zeros((length, n)), np.zeros((n, n))
    for path, share in zip(paths, np.exp(values - total), strict=True):
        marginals[np.arange(length), path] += share
        for a, b in pairwise(path):
            counts[a, b] += share
    return total, marginals, counts, np.array(paths[int(values.argmax())])


def log_sum(values, axis):
    """``logsumexp`` without what SciPy's looks at before: there are thousands of small ones."""
    largest = values.max(axis=axis, keepdims=True)
    return np.squeeze(largest + np.log(np.exp(values - largest).sum(axis=axis, keepdims=True)), axis)


def in_log_space(scores, transitions):
    """Log partition, marginals and counts of transitions, in logarithms throughout.

    The scores are those of one chain (length x labels), or of several chains of one length. Messages sum to one at
    every step: large numbers would lose digits.
    """
    length = scores.shape[-2]
    ahead, behind = np.empty(scores.shape), np.zeros(scores.shape)
    totals = np.zeros(scores.shape[:-1])
    for t in range(length):
        ahead[..., t, :] = scores[..., t, :] + (log_sum(ahead[..., t - 1, :, None] + transitions, -2) if t else 0.0)
        totals[..., t] = log_sum(ahead[..., t, :], -1)
        ahead[..., t, :] -= totals[..., t, None]
    for t in range(length - 2, -1, -1):
        behind[..., t, :] = log_sum(transitions + (scores[..., t + 1, :] + behind[..., t + 1, :])[..., None, :], -1)
        behind[..., t, :] -= behind[..., t, :].max(axis=-1, keepdims=True)
    pairs = ahead[..., :-1, :, None] + transitions + (scores + behind)[..., 1:, None, :]
    shares = softmax(pairs, axis=(-2, -1))
    return totals.sum(axis=-1), softmax(ahead + behind, axis=-1), shares.sum(axis=-3)
