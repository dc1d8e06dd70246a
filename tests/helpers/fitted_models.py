"""Fitted models of every kind and loss, for tests of what can be done with them."""

import warnings
from functools import cache

import numpy as np
import pandas as pd

from pauca import (
    L1Classifier,
    L1Regressor,
    SparseClassifier,
    SparseCox,
    SparseRegressor,
    StreamClassifier,
    StreamRegressor,
)
from pauca.losses import GammaInverseLink, Huber, Quantile
from pauca.methods import Exchange, FoBa, Forward

NAMES = ["age", 'the "bmi"', "dose; drop", "größe", "sugar\n2", "it's"]


@cache
def table():
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.standard_normal((80, 6)).round(3), columns=NAMES)
    score = (1.5 * X.iloc[:, 1] - X.iloc[:, 4] + 0.5 * X.iloc[:, 2]).to_numpy() + 0.3 * rng.standard_normal(80)
    return X, score


def _thirds(score):
    return np.digitize(score, [-0.8, 0.8])


def _survival(score):
    return np.array([(value > -1.5, np.exp(-value)) for value in score], dtype=[("event", bool), ("time", float)])


def _words(codes):
    return np.array(["low", "it's high", "höher"])[codes]


MAKERS = {
    "squared_error": lambda X, s: SparseRegressor(k=3).fit(X, s),
    "arrays": lambda X, s: SparseRegressor(k=3, ridge=0.1, tol=1e-9).fit(X.to_numpy(), s),
    "huber": lambda X, s: SparseRegressor(k=2, loss=Huber(0.5), method=FoBa(nu=0.3)).fit(X, s),
    "absolute_error": lambda X, s: SparseRegressor(k=2, loss="absolute_error", method="forward").fit(X, s),
    "quantile": lambda X, s: SparseRegressor(k=2, loss=Quantile(0.8), method=Forward(rule="refit")).fit(X, s),
    "poisson": lambda X, s: SparseRegressor(k=3, loss="poisson").fit(X, np.floor(np.exp(s))),
    "gamma": lambda X, s: SparseRegressor(k=2, loss="gamma").fit(X, np.exp(s)),
    "inverse link": lambda X, s: SparseRegressor(k=2, loss=GammaInverseLink()).fit(X, np.exp(-0.3 * s)),
    "negative binomial": lambda X, s: SparseRegressor(k=2, loss="negative_binomial").fit(
        X, np.floor(np.exp(s)), exposure=np.exp(X.iloc[:, 0] / 9)
    ),
    "cox": lambda X, s: SparseCox(k=2).fit(X, _survival(s)),
    "outputs": lambda X, s: SparseRegressor(k=3).fit(X, pd.DataFrame({"u": s, 'v "2"': -X.iloc[:, 0] + s})),
    "one column": lambda X, s: SparseRegressor(k=3).fit(X, s[:, None]),
    "poisson outputs": lambda X, s: SparseRegressor(k=2, loss="poisson").fit(X, np.floor(np.exp(np.c_[s, -s]))),
    "groups": lambda X, s: SparseRegressor(k=2, feature_groups=list("aabbcc"), always=["c"], never=("a",)).fit(X, s),
    "constraints": lambda X, s: SparseRegressor(
        k=3,
        feature_groups=np.array([1, 1, 1, 2, 2, 2]),
        max_per_group=2,
        costs=dict.fromkeys(NAMES, 1),
        budget=5,
        bounds={NAMES[1]: (0, None), 2: (-np.inf, 0.25)},
        always=pd.Series([4]),
        method=Exchange(scouts=(Forward(),)),
        time_limit=60,
        warm_start=True,
    ).fit(X, s),
    "empty": lambda X, s: SparseRegressor().fit(X, np.ones(len(s))),
    "backward": lambda X, s: SparseRegressor(k=2, method="backward").fit(X, s),
    "size 0": lambda X, s: SparseRegressor(k=2).fit(X, s).at(0),
    "at 1": lambda X, s: SparseRegressor(k=3).fit(X, s).at(np.int64(1)),
    "bools": lambda X, s: SparseClassifier(k=2).fit(X, s > 0),
    "words": lambda X, s: SparseClassifier(k=2, class_weight={"low": 2.0}).fit(X, _words((s > 0).astype(int))),
    "objects": lambda X, s: SparseClassifier(k=2).fit(X.to_numpy(), pd.Series(_words(_thirds(s))).astype(object)),
    "numbers": lambda X, s: SparseClassifier(k=2, class_weight="balanced").fit(X, np.where(s > 0, 2.0, -1.0)),
    "hinge": lambda X, s: SparseClassifier(k=2, loss="hinge").fit(X, (s > 0).astype(np.int8)),
    "multinomial": lambda X, s: SparseClassifier(k=3).fit(X, _words(_thirds(s))),
    "many hinges": lambda X, s: SparseClassifier(k=2, loss="squared_hinge").fit(X, _thirds(s) - 1),
    "separable": lambda X, s: SparseClassifier(k=1).fit(X, X.iloc[:, 0] > 0),
    "ball": lambda X, s: L1Regressor(radius=2, tol=1e-6).fit(X, s),
    "ball auto": lambda X, s: L1Regressor(loss="huber", standardize=True, cv=3).fit(X.to_numpy(), s),
    "ball outputs": lambda X, s: L1Regressor(radius=3, k=2, ridge=0.1).fit(X, np.c_[s, -s]),
    "ball hinge": lambda X, s: L1Classifier(radius=2, loss="hinge").fit(X, s > 0),
    "ball classes": lambda X, s: L1Classifier(radius=5, class_weight="balanced").fit(X, _words(_thirds(s))),
    "class groups": lambda X, s: SparseClassifier(k=1, feature_groups=[7, 7, 7, 9, 9, 9]).fit(X, _thirds(s)),
    "stream": lambda X, s: StreamRegressor(k=3, radius=5.0).fit(X, s),
    "stream as learnt": lambda X, s: StreamRegressor(k=None, loss=Huber(0.5), passes=1).fit(X.to_numpy(), s),
    "stream of classes": lambda X, s: StreamClassifier(k=2, truncation="systematic").fit(X, _words(_thirds(s))),
}


@cache
def fitted(name):
    """One of the models; it is made once, so it must not be changed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MAKERS[name](*table())


def rows_for(model):
    """The table in the form the model was fitted on."""
    X, _ = table()
    return X if hasattr(model, "feature_names_in_") else X.to_numpy()
