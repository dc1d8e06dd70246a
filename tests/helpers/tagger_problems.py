"""Sequences with few informative columns."""

import pandas as pd
from chains import make_chains

LENGTHS = (30, 1, 45, 20, 38, 27)


def problem(n_columns=7, n_labels=3, seed=0, lengths=LENGTHS, informative=3):
    return make_chains(lengths, n_labels, n_columns, seed, informative=informative)


def frames(X):
    return [pd.DataFrame(one, columns=[f"sensor {j}" for j in range(one.shape[1])]) for one in X]


def dicts(X):
    return [[{f"sensor {j}": value for j, value in enumerate(row)} for row in one.tolist()] for one in X]
