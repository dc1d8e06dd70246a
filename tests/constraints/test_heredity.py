"""Heredity of interactions: every model of every method keeps it, greedy steps and best models by brute force."""

import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from pauca import PaucaWarning, SparseClassifier, SparseCox, SparseOrdinalClassifier, SparseRegressor
from pauca.constraints.heredity import Heredity, parents_from_names
from pauca.constraints.limits import Limits

NAMES = ["a", "b", "c", "a:b", "a:c", "b:c", "a^2"]
PARENTS = {3: (0, 1), 4: (0, 2), 5: (1, 2), 6: (0,)}
METHODS = ["forward", "stepwise", "foba", "backward", "exchange", "replacement", "exact"]


def problem(seed, n=60):
    rng = np.random.default_rng(seed)
    main = rng.normal(size=(n, 3))
    a, b, c = main.T
    X = np.column_stack([main, a * b, a * c, b * c, a**2])
    y = X @ (rng.normal(size=7) * [0.3, 0.3, 0.3, 1, 1, 1, 1]) + rng.normal(size=n)
    return pd.DataFrame(X, columns=NAMES), y


def keeps(support, strong):
    chosen = set(support)
    test = all if strong else any
    return all(test(one in chosen for one in PARENTS[child]) for child in chosen & set(PARENTS))


def loss_of(X, y, support):
    Z = np.column_stack([np.ones(len(y)), X.to_numpy()[:, list(support)]])
    return 0.5 * np.mean((y - Z @ np.linalg.lstsq(Z, y, rcond=None)[0]) ** 2)


def best_of(X, y, size, strong):
    return min(loss_of(X, y, s) for s in combinations(range(7), size) if keeps(s, strong))


@pytest.mark.filterwarnings("ignore:Exact has proved nothing")  # proofs are for models without heredity
@pytest.mark.parametrize("strong", [True, False])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["squares", "classes", "absolute", "outputs", "groups", "times", "grades"])
def test_every_model_keeps_heredity(method, strong, kind):
    X, y = problem(1)
    heredity = (
        "strong" if strong else ("weak", {NAMES[child]: [NAMES[one] for one in of] for child, of in PARENTS.items()})
    )
    options = {"method": method, "heredity": heredity, "k": 5}
    if kind == "classes":
        model = SparseClassifier(ridge=0.01, **options).fit(X, y > 0)
    elif kind == "absolute":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PaucaWarning)
            model = SparseRegressor(loss="absolute_error", **options).fit(X, y)
    elif kind == "times":
        times = np.array([(True, time) for time in np.exp(-y)], dtype=[("event", bool), ("time", float)])
        model = SparseCox(**options).fit(X, times)
    elif kind == "grades":
        model = SparseOrdinalClassifier(**options).fit(X, np.digitize(y, np.quantile(y, [0.3, 0.7])))
    elif kind == "outputs":
        model = SparseRegressor(**options).fit(X, np.column_stack([y, X["a"] - y]))
    elif kind == "groups":
        groups = {name: f"g{j}" for j, name in enumerate(NAMES)}
        model = SparseRegressor(feature_groups=groups, **options).fit(X, y)
    else:
        model = SparseRegressor(**options).fit(X, y)
    assert model.k_ == 5 or kind == "absolute"  # where one more feature alone may gain nothing
    assert all(keeps(one.support, strong) for one in model.path_)


@pytest.mark.parametrize("strong", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_steps_and_best_models_by_brute_force(seed, strong):
    X, y = problem(seed)
    heredity = "strong" if strong else "weak"
    steps = SparseRegressor(k=7, method="stepwise", heredity=heredity).fit(X, y).path_
    support = []
    for size in range(1, 8):
        left = [j for j in range(7) if j not in support and keeps([*support, j], strong)]
        support.append(min(left, key=lambda j: loss_of(X, y, [*support, j])))
        assert set(steps[size].support) == set(support)
    support = list(range(7))
    for size in range(6, 0, -1):
        left = [j for j in support if keeps([one for one in support if one != j], strong)]
        support.remove(min(left, key=lambda j: loss_of(X, y, [one for one in support if one != j])))
        back = SparseRegressor(k=size, method="backward", heredity=heredity).fit(X, y)
        assert set(back.support_) == set(support)
    found = SparseRegressor(k=7, heredity=heredity).fit(X, y).path_
    for size in range(1, 8):
        assert found[size].objective == pytest.approx(best_of(X, y, size, strong), rel=1e-9)


@pytest.mark.parametrize("strong", [True, False])
def test_limits_are_those_of_brute_force(strong):
    """What may be added, removed and exchanged leads from models that keep heredity to all neighbours that do."""
    limits = Limits(heredity=Heredity(PARENTS, strong))
    for size in range(8):
        for support in combinations(range(7), size):
            assert limits.allows(support) == keeps(support, strong)
            if not limits.allows(support):
                assert keeps([*support, *limits.missing_parents(support)], strong)
                continue
            others = [j for j in range(7) if j not in support]
            assert np.flatnonzero(limits.addable(support, 7)).tolist() == [
                j for j in others if keeps([*support, j], strong)
            ]
            rests = [[one for one in support if one != out] for out in support]
            assert limits.removable(support).tolist() == [keeps(rest, strong) for rest in rests]
            for out, rest in zip(support, rests, strict=True):
                found = np.flatnonzero(limits.exchangeable(support, out, 7)).tolist()
                # A unit whose parent goes at the same time is never taken in its place.
                assert found == [j for j in others if keeps([*rest, j], strong)]
    assert limits.startable(7).all()
    assert np.flatnonzero(~Limits(never=(0,), heredity=limits.heredity).startable(7)).tolist() == (
        [0, 3, 4, 6] if strong else [0, 6]
    )


def test_an_interaction_brings_its_parents_along():
    """Alone neither parent helps: the model is found by a detour through the interaction."""
    rng = np.random.default_rng(0)
    main = rng.choice([-1.0, 1.0], size=(200, 8))
    X = pd.DataFrame(main, columns=list("abcdefgh"))
    X["a:b"] = X["a"] * X["b"]
    y = 3 * X["a:b"] + 0.5 * X["c"] + 0.4 * X["d"] + rng.normal(size=200) * 0.3
    model = SparseRegressor(k=3, heredity="strong").fit(X, y)
    assert list(model.get_feature_names_out()) == ["a", "b", "a:b"]


def test_parents_are_read_from_names():
    assert parents_from_names(NAMES) == PARENTS
    expanded = (
        PolynomialFeatures(3, include_bias=False).fit(np.zeros((1, 2))).get_feature_names_out(["dose", "mean age"])
    )
    names = expanded.tolist()
    found = {names[child]: [names[one] for one in of] for child, of in parents_from_names(names).items()}
    assert found["dose mean age"] == ["dose", "mean age"]
    assert found["dose^2"] == ["dose"]
    assert found["dose^2 mean age"] == ["dose^2", "dose mean age"]
    assert "mean age" not in found
    assert parents_from_names(["worst area", "worst", "other"]) == {}


def test_with_polynomial_features_and_folds():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    steps = PolynomialFeatures(2, include_bias=False).set_output(transform="pandas"), StandardScaler()
    model = make_pipeline(*steps, SparseRegressor(k=range(1, 9), heredity="weak", method="forward"))
    chosen = model.set_output(transform="pandas").fit(X[["bmi", "bp", "s5", "age"]], y)[-1].get_feature_names_out()
    for name in chosen:
        factors = name.removesuffix("^2").split()
        assert len(factors) == 1 or set(factors) & set(chosen)


@pytest.mark.parametrize(
    ("heredity", "message"),
    [
        ("both", "must be 'strong' or 'weak'"),
        ({"a:b": ("a", "z")}, "names the column 'z'"),
        ({"a:b": ()}, "no parents of 'a:b'"),
        ({"a": ("b",), "b": ("a",)}, "in a circle: 'a', 'b'"),
        ("strong", "'always' holds 'a:b' without"),
    ],
)
def test_invalid_heredity(heredity, message):
    X, y = problem(0)
    with pytest.raises(ValueError, match=message):
        SparseRegressor(k=3, heredity=heredity, always=["a:b"] if heredity == "strong" else None).fit(X, y)
    with pytest.raises(ValueError, match="no interaction among the names"):
        SparseRegressor(k=3, heredity="weak").fit(X.to_numpy(), y)
