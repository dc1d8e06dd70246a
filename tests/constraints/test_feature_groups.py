"""Units of choice: groups of columns, features with a coefficient per output or class, judged by enumeration."""

import numpy as np
import pandas as pd
import pytest
from constraint_judges import all_least_squares, least, losses_and_slopes, optimum, slopes_of, subsets, value_of
from scipy import sparse
from scipy.special import softmax
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from pauca import PaucaWarning, SparseClassifier, SparseRegressor, Stop
from pauca.losses import Multinomial
from pauca.methods import Exchange, FoBa, Forward
from problems import METHODS, ar_problem, integers, objective

LABELS = ["b", "a", "c", "a", "d", "b", "a", "d"]
"""Eight columns, four groups of one to three columns, none of them contiguous."""


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    with threadpool_limits(1):
        yield


def members(labels):
    """Columns of every group, in the order of the labels."""
    return [[j for j, label in enumerate(labels) if label == one] for one in sorted(set(labels))]


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8)) @ (np.eye(8) + 0.3 * rng.standard_normal((8, 8)))
    y = X @ [1.0, -1, 0, 0.5, 2, 0, 1, 0] + rng.standard_normal(60)
    return X, y


def three_classes(n=90, d=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)))
    p = softmax(1.2 * X @ rng.standard_normal((d, 3)), axis=1)
    return X, np.array(["low", "mid", "top"])[(p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)]


# Groups: labels and what they say.


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("loss", ["squared_error", "huber"])
def test_groups_are_whole_or_absent(table, method, loss):
    X, y = table
    path = SparseRegressor(k=3, feature_groups=LABELS, method=method, loss=loss).fit(X, y).path_
    assert path.sizes[-1] == 3
    for model in path:
        columns = sorted(j for unit in model.units for j in members(LABELS)[unit])
        assert model.support.tolist() == columns
        assert len(model.units) == len(model.importance) == model.size
        assert model.coef.shape == (len(columns),)


def test_labels_of_any_kind_mean_the_same(table):
    X, y = table
    numbers = [{"a": -5, "b": 3, "c": 40, "d": 41}[label] for label in LABELS]
    names = [f"col{j}" for j in range(8)]
    frame = pd.DataFrame(X, columns=names)
    plain = SparseRegressor(k=2, feature_groups=LABELS).fit(X, y)
    others = [
        SparseRegressor(k=2, feature_groups=np.array(LABELS, dtype=object)).fit(X, y),
        SparseRegressor(k=2, feature_groups=tuple(LABELS)).fit(X, y),
        SparseRegressor(k=2, feature_groups=pd.Series(LABELS)).fit(X, y),
        SparseRegressor(k=2, feature_groups=pd.Categorical(LABELS)).fit(X, y),
        SparseRegressor(k=2, feature_groups=numbers).fit(X, y),
        SparseRegressor(k=2, feature_groups=np.array(numbers, dtype=float)).fit(X, y),
        SparseRegressor(k=2, feature_groups=dict(enumerate(LABELS))).fit(X, y),
        SparseRegressor(k=2, feature_groups=dict(zip(reversed(names), reversed(LABELS), strict=True))).fit(frame, y),
        SparseRegressor(k=2, feature_groups=LABELS).fit(sparse.csr_array(X), y),
    ]
    for other in others:
        np.testing.assert_allclose(other.coef_, plain.coef_, rtol=1e-8)
        assert other.path_.moves == plain.path_.moves
    assert plain.feature_groups_.tolist() == plain.path_.groups(2) == ["a", "d"]
    assert others[4].feature_groups_.tolist() == [-5, 41]
    assert others[7].path_.groups(2) == ["a", "d"]
    assert others[7].path_.names(2) == ["col1", "col3", "col4", "col6", "col7"]


def test_what_a_fit_says_of_its_groups(table):
    X, y = table
    frame = pd.DataFrame(X, columns=[f"col{j}" for j in range(8)])
    model = SparseRegressor(k=3, feature_groups=LABELS).fit(frame, y)
    path = model.path_
    assert model.k_ == 3
    assert len(model.support_) > 3
    assert list(model.get_feature_names_out()) == path.names(3)
    assert model.transform(frame).shape == (60, len(model.support_))
    assert path.group_labels.tolist() == ["a", "b", "c", "d"]
    assert path.groups(0) == []
    for record in path.table():
        size = record["size"]
        before = set() if size == 0 else set(path.groups(size - 1))
        assert set(record["entered"]) == set(path.groups(size)) - before
        assert set(record["left"]) == before - set(path.groups(size))
        assert record["features"] == path.names(size)
    assert path.to_frame().loc[1, "entered"] == path.groups(1)
    for action, *units in path.moves:
        assert action in {"add", "swap", "drop"}
        assert set(np.ravel(units)) <= set(range(4))
    small = model.at(1)
    assert small.feature_groups_.tolist() == path.groups(1)
    assert small.k_ == 1


def test_summary_shows_groups_and_their_columns(table):
    X, y = table
    model = SparseRegressor(k=2, feature_groups=LABELS).fit(pd.DataFrame(X, columns=[f"col{j}" for j in range(8)]), y)
    lines = model.summary().splitlines()
    assert lines[0].startswith("2 groups of 4, objective ")
    rows = [line.split() for line in lines[4:]]
    assert lines[2].split() == ["group", "feature", "coefficient", "importance"]
    assert [row[0] for row in rows[:6]] == ["d", "col7", "a", "col3", "col6", "(intercept)"]
    assert [row[1] for row in rows if row and row[0] in "ad"] == ["col4", "col1"]
    assert float(rows[0][2]) == pytest.approx(model.coef_[4], rel=1e-5)
    assert "if the group were left out" in model.summary()


def test_sentences_speak_of_groups(table):
    summary = SparseRegressor(k=2, feature_groups=LABELS).fit(*table).summary()
    assert "The size asked for was reached." in summary


def test_more_groups_than_there_are(table):
    with pytest.warns(PaucaWarning, match="k=5 .* were asked for, but only 4 of [0-9]+ can be used together") as caught:
        model = SparseRegressor(k=5, feature_groups=LABELS).fit(*table)
    assert model.k_ == 4
    assert model.stop_ is Stop.EXHAUSTED
    assert "k=5 groups" in str(caught[0].message)


def test_groups_are_asked_for_where_there_are_none(table):
    model = SparseRegressor(k=2).fit(*table)
    assert not hasattr(model, "feature_groups_")
    with pytest.raises(ValueError, match=r"no groups were given to this fit; names\(size\)"):
        model.path_.groups(2)
    with pytest.raises(KeyError, match="no model of size 9"):
        SparseRegressor(k=2, feature_groups=LABELS).fit(*table).path_.groups(9)


def test_groups_of_an_earlier_fit_are_forgotten(table):
    model = SparseRegressor(k=2, feature_groups=LABELS).fit(*table).set_params(feature_groups=None).fit(*table)
    assert not hasattr(model, "feature_groups_")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("loss", ["squared_error", "huber", "poisson"])
def test_groups_of_one_column_are_no_groups(method, loss):
    X, y = integers(n=70, d=7, seed=3)
    y = np.random.default_rng(0).poisson(np.exp(y / 40)) if loss == "poisson" else y
    plain = SparseRegressor(k=5, loss=loss, method=method).fit(X, y).path_
    grouped = SparseRegressor(k=5, loss=loss, method=method, feature_groups=range(7)).fit(X, y).path_
    for size in range(6):
        assert grouped[size].support.tolist() == plain[size].support.tolist() == grouped[size].units.tolist()
        np.testing.assert_allclose(grouped[size].coef, plain[size].coef, rtol=1e-5, atol=1e-9)
        assert grouped[size].objective == pytest.approx(plain[size].objective, rel=1e-7)
        np.testing.assert_allclose(grouped[size].importance, plain[size].importance, rtol=1e-4, atol=1e-9)


def test_groups_of_one_column_are_no_groups_with_several_outputs_and_classes(table):
    X, y = table
    Y = np.column_stack([y, X[:, 1] - y])
    for a, b in zip(*(SparseRegressor(k=4, feature_groups=g).fit(X, Y).path_ for g in (None, range(8))), strict=True):
        assert a.support.tolist() == b.support.tolist()
        np.testing.assert_allclose(a.coef, b.coef, rtol=1e-6)
    X, y = three_classes()
    for a, b in zip(*(SparseClassifier(k=4, feature_groups=g).fit(X, y).path_ for g in (None, range(8))), strict=True):
        assert a.support.tolist() == b.support.tolist()
        np.testing.assert_allclose(a.coef, b.coef, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("shift", [[0, 0], [3, 5], [10, 1]])
def test_the_order_of_columns_within_and_between_groups_does_not_matter(table, shift):
    X, y = table
    order = np.random.default_rng(shift).permutation(8)
    plain = SparseRegressor(k=2, feature_groups=LABELS).fit(X, y)
    mixed = SparseRegressor(k=2, feature_groups=[LABELS[j] for j in order]).fit(X[:, order], y)
    assert mixed.feature_groups_.tolist() == plain.feature_groups_.tolist()
    np.testing.assert_allclose(mixed.coef_, plain.coef_[order], rtol=1e-6)


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_units_of_columns_do_not_matter_to_groups(table, loss):
    """A group is judged by the space it spans: its columns may be in any units, and shifted."""
    X, y = table
    y = np.random.default_rng(0).poisson(np.exp(y / 4)) if loss == "poisson" else y
    scale = 10.0 ** np.array([3, -4, 0, 2, -1, 5, 1, -2])
    plain = SparseRegressor(k=3, loss=loss, feature_groups=LABELS).fit(X, y).path_
    scaled = SparseRegressor(k=3, loss=loss, feature_groups=LABELS).fit(X * scale + 7 * scale, y).path_
    for a, b in zip(plain, scaled, strict=True):
        assert a.units.tolist() == b.units.tolist()
        np.testing.assert_allclose(a.coef, b.coef * scale[b.support], rtol=1e-4, atol=1e-7)


# Groups whose columns depend on one another.


def dummies(n=90, seed=0, noise=0.3):
    """Two categories as full sets of dummies, which add up to the intercept, and two numbers."""
    rng = np.random.default_rng(seed)
    city, size = rng.integers(0, 4, n), rng.integers(0, 3, n)
    numbers = rng.standard_normal((n, 2))
    X = np.column_stack([np.eye(4)[city], np.eye(3)[size], numbers])
    y = np.array([0, 2, -1, 1.0])[city] + 0.3 * size + 0.5 * numbers[:, 0] + noise * rng.standard_normal(n)
    return X, y, ["city"] * 4 + ["size"] * 3 + ["u", "v"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_full_sets_of_dummies_are_fitted_in_silence(method, kind):
    X, y, labels = dummies()
    model = SparseRegressor(k=3, feature_groups=labels, method=method).fit(kind(X), y)
    assert model.feature_groups_.tolist() == ["city", "size", "u"]
    assert np.all(np.isfinite(model.coef_))
    assert np.abs(model.coef_).max() < 10
    for one in model.path_:
        assert one.objective == pytest.approx(objective(X, y, one.support), rel=1e-7)
    reduced = np.delete(X, [0, 4], axis=1)
    expected = LinearRegression().fit(reduced[:, :6], y).predict(reduced[:, :6])
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-6)


def test_full_sets_of_dummies_for_classes():
    X, y, labels = dummies(n=200, noise=2.0)
    y = np.digitize(y, [0, 1])
    model = SparseClassifier(k=2, feature_groups=labels).fit(X, y)
    assert model.feature_groups_[0] == "city"
    assert np.abs(model.coef_).max() < 10
    for one in model.path_:
        assert one.objective == pytest.approx(least("log_loss", X, y, one.support), rel=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("groups", [list("aabbcc"), None], ids=["groups", "outputs"])
def test_units_in_the_span_of_chosen_ones_are_never_chosen(method, groups):
    """With groups, or several outputs, just as with single columns: the unseen ridge must not make them worth it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    y = X @ [1.0, 2, 3, 1] + rng.standard_normal(60)
    X = np.column_stack([X, X[:, 0] + X[:, 1], X[:, 0] - X[:, 1]])
    target, k = (y, 3) if groups else (np.column_stack([y, -y]), 6)
    with pytest.warns(PaucaWarning, match="linear combinations of chosen ones were left out"):
        model = SparseRegressor(k=k, feature_groups=groups, method=method).fit(X, target)
    assert len(model.support_) == 4


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_column_inside_a_group(table, method):
    X, y = table
    X = X.copy()
    X[:, 3] = 7.0
    with pytest.warns(PaucaWarning, match="Constant columns were left out: 'x3'") as caught:
        model = SparseRegressor(k=2, feature_groups=LABELS, method=method).fit(X, y)
    assert len(caught) == 1
    assert model.coef_[3] == 0
    without = np.delete(X, 3, axis=1)
    labels = [label for j, label in enumerate(LABELS) if j != 3]
    other = SparseRegressor(k=2, feature_groups=labels, method=method).fit(without, y)
    assert model.feature_groups_.tolist() == other.feature_groups_.tolist()
    np.testing.assert_allclose(np.delete(model.coef_, 3), other.coef_, rtol=1e-6)
    assert "a" in model.feature_groups_


def test_a_constant_column_that_was_left_out_is_not_in_the_support(table):
    X, y = table
    X = X.copy()
    X[:, 3] = 7.0
    with pytest.warns(PaucaWarning, match="Constant columns were left out: 'x3'"):
        model = SparseRegressor(k=2, feature_groups=LABELS).fit(X, y)
    assert 3 not in model.support_


@pytest.mark.parametrize("method", METHODS)
def test_a_group_of_constant_columns_is_never_chosen(table, method):
    X, y = table
    X = X.copy()
    X[:, [4, 7]] = [1.0, -2.0]
    with pytest.warns(PaucaWarning, match="Constant columns were left out: 'x4', 'x7'"):
        model = SparseRegressor(k=4, feature_groups=LABELS, method=method).fit(X, y)
    assert model.feature_groups_.tolist() == ["a", "b", "c"]


# Groups judged by enumeration.


def grouped_problem(loss, seed, n=70):
    rng = np.random.default_rng(seed)
    labels = rng.permutation([0, 0, 0, 1, 1, 2, 3, 3, 4, 5, 5])
    X = ar_problem(n, len(labels), 3, rho=0.7, seed=seed)[0]
    w = np.where(np.isin(labels, rng.choice(6, 3, replace=False)), rng.normal(0, 1, len(labels)), 0.0)
    if loss == "multi":
        W = np.column_stack([w, np.roll(w, 1), rng.normal(0, 0.3, len(w))])
        return X, X @ W + 1.5 * rng.standard_normal((n, 3)), labels
    if loss == "multinomial":
        W = w[:, None] * rng.normal(0, 1, (len(w), 3))
        return X, np.argmax(X @ W + rng.gumbel(size=(n, 3)), axis=1), labels
    if loss == "log_loss":
        return X, (X @ w + rng.logistic(size=n) > 0).astype(int), labels
    return X, X @ w + 2 * rng.standard_normal(n), labels


def values_of_groups(loss, X, y, labels, largest):
    groups = [np.flatnonzero(labels == g) for g in range(6)]
    if loss in {"squared_error", "multi"}:
        return {S: q for S, q in all_least_squares(X, y, groups).items() if len(S) <= largest}
    return {S: least("log_loss", X, y, [j for g in S for j in groups[g]]) for S in subsets(6, largest)}


@pytest.mark.parametrize(
    ("loss", "seeds", "needed"),
    [("squared_error", 15, 14), ("multi", 15, 14), ("log_loss", 15, 14), ("multinomial", 8, 7)],
)
@pytest.mark.filterwarnings("ignore:The data are separable")
def test_groups_against_enumeration(loss, seeds, needed):
    """Exchange finds nearly all optima of every size; Forward by true gains is exact at size one."""
    make = SparseClassifier if loss in {"log_loss", "multinomial"} else SparseRegressor
    found = tried = 0
    for seed in range(seeds):
        X, y, labels = grouped_problem(loss, seed)
        largest = 3 if loss in {"squared_error", "multi"} else 2
        values = values_of_groups(loss, X, y, labels, largest)
        exchange = make(k=largest, feature_groups=labels).fit(X, y).path_
        forward = make(k=1, feature_groups=labels, method=Forward(rule="refit")).fit(X, y).path_
        best = [optimum(values, size=size) for size in range(1, largest + 1)]
        assert forward[1].objective == pytest.approx(best[0], rel=1e-6)
        for size in range(1, largest + 1):
            reached = exchange[size].objective
            assert reached == pytest.approx(values[tuple(exchange[size].units.tolist())], rel=1e-6)
            assert reached >= best[size - 1] * (1 - 1e-6)
            found += reached <= best[size - 1] * (1 + 1e-6)
            tried += 1
    assert found / tried >= needed / seeds


@pytest.mark.parametrize("rule", ["objective", "gradient", "refit"])
@pytest.mark.parametrize("loss", ["squared_error", "log_loss", "multi"])
def test_every_rule_ranks_groups(loss, rule):
    """A group that explains nearly all is taken first by every rule, however many columns it has."""
    for seed in range(4):
        X, _, labels = grouped_problem("squared_error", seed)
        rng = np.random.default_rng(seed)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        true = seed + 1
        score = X[:, labels == true] @ rng.uniform(1, 2, (labels == true).sum())
        y = score + 0.3 * rng.standard_normal(len(X))
        if loss == "log_loss":
            y = (y > 0).astype(int)
        if loss == "multi":
            y = np.column_stack([y, -2 * score])
        make = SparseClassifier if loss == "log_loss" else SparseRegressor
        model = make(k=1, feature_groups=labels, method=Forward(rule=rule), ridge=1e-3).fit(X, y)
        assert model.feature_groups_.tolist() == [true]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("loss", ["squared_error", "huber", "absolute_error"])
def test_paths_of_groups_fall_with_size(table, method, loss):
    values = [
        m.objective for m in SparseRegressor(k=4, feature_groups=LABELS, loss=loss, method=method).fit(*table).path_
    ]
    assert np.all(np.diff(values) < 0)


def test_worth_of_groups_of_squared_loss_is_what_leaving_them_out_costs(table):
    X, y = table
    model = SparseRegressor(k=3, feature_groups=LABELS).fit(X, y).path_[3]
    for unit, importance in zip(model.units, model.importance, strict=True):
        rest = [j for j in model.support if j not in members(LABELS)[unit]]
        assert importance == pytest.approx(objective(X, y, rest) - model.objective, rel=1e-6)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_groups_with_ridge_weights_and_no_intercept(table, ridge, fit_intercept):
    X, y = table
    X, y = X + 0.5, y + 1
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    params = {"k": 3, "feature_groups": LABELS, "ridge": ridge, "standardize": False, "fit_intercept": fit_intercept}
    weighted = SparseRegressor(**params).fit(X, y, sample_weight=weights)
    repeated = SparseRegressor(**params).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert weighted.path_.moves == repeated.path_.moves
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6)
    for one in weighted.path_:
        best = objective(X, y, one.support, weights=weights, ridge=ridge, center=fit_intercept)
        assert one.objective == pytest.approx(best, rel=1e-7)


# Several outputs.


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("loss", ["squared_error", "huber", "poisson"])
def test_outputs_share_a_support_and_are_each_fitted_on_it(table, method, loss):
    X, y = table
    rng = np.random.default_rng(0)
    Y = np.column_stack([y, X[:, 2] - X[:, 5] + rng.standard_normal(60), 0.3 * y + rng.standard_normal(60)])
    if loss == "poisson":
        Y = rng.poisson(np.exp(Y / 4)).astype(float)
    threshold = {"loss": loss}
    if loss == "huber":
        from pauca.losses import Huber

        threshold = {"loss": Huber(1.0)}
    model = SparseRegressor(k=4, method=method, **threshold).fit(X, Y)
    assert model.coef_.shape == (3, 8)
    assert model.intercept_.shape == (3,)
    assert model.predict(X).shape == (60, 3)
    assert len(model.support_) == 4
    assert np.all(model.coef_[:, model.support_] != 0)
    others = np.setdiff1d(np.arange(8), model.support_)
    assert not model.coef_[:, others].any()
    total = 0.0
    for c in range(3):
        alone = SparseRegressor(k=4, **threshold).fit(X[:, model.support_], Y[:, c])
        np.testing.assert_allclose(model.coef_[c, model.support_], alone.coef_, rtol=1e-4, atol=1e-6)
        assert model.intercept_[c] == pytest.approx(alone.intercept_, rel=1e-4, abs=1e-6)
        total += alone.objective_
    assert model.objective_ == pytest.approx(total, rel=1e-7)


def test_outputs_of_the_same_numbers_choose_as_one(table):
    X, y = table
    one = SparseRegressor(k=5).fit(X, y).path_
    three = SparseRegressor(k=5).fit(X, np.column_stack([y, -2 * y, y + 5])).path_
    for a, b in zip(one, three, strict=True):
        assert a.support.tolist() == b.support.tolist()
        assert b.objective == pytest.approx(6 * a.objective, rel=1e-7)
        np.testing.assert_allclose(b.coef, np.outer([1, -2, 1], a.coef), rtol=1e-6)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "poisson"])
def test_a_target_of_one_column_is_a_target_of_two_dimensions(table, loss):
    X, y = table
    y = np.abs(y).round() if loss == "poisson" else y
    flat, tall = (SparseRegressor(k=3, loss=loss).fit(X, t) for t in (y, y[:, None]))
    assert (flat.coef_.shape, tall.coef_.shape) == ((8,), (1, 8))
    assert np.shape(flat.intercept_) == ()
    assert tall.intercept_.shape == (1,)
    assert (flat.predict(X).shape, tall.predict(X).shape) == ((60,), (60, 1))
    np.testing.assert_array_equal(flat.coef_, tall.coef_[0])
    assert flat.score(X, y) == pytest.approx(tall.score(X, y[:, None]))
    assert tall.at(2).coef_.shape == (1, 8)


def test_names_of_outputs_are_in_the_summary(table):
    X, y = table
    Y = pd.DataFrame({"weight": y, "height": X[:, 0] - y})
    model = SparseRegressor(k=2).fit(pd.DataFrame(X, columns=list("abcdefgh")), Y)
    assert model.summary().splitlines()[2].split() == ["feature", "weight", "height", "importance"]
    row = next(line.split() for line in model.summary().splitlines() if line.startswith("(intercept)"))
    np.testing.assert_allclose([float(cell) for cell in row[1:]], model.intercept_, rtol=1e-4)
    assert model.path_.output_names == ["weight", "height"]
    assert SparseRegressor(k=2).fit(X, Y.to_numpy()).path_.output_names == ["y0", "y1"]
    assert SparseRegressor(k=2).fit(X, Y["weight"]).path_.output_names is None
    many = SparseRegressor(k=2).fit(X, np.column_stack([y] * 9))
    assert many.summary().splitlines()[2].split() == ["feature", *(f"y{c}" for c in range(6)), "importance"]


def test_several_outputs_against_enumeration():
    found = 0
    for seed in range(15):
        X, Y = ar_problem(50, 9, 4, rho=0.8, seed=seed)
        rng = np.random.default_rng(seed)
        Y = np.column_stack([Y, X @ rng.normal(0, 0.5, 9) + rng.standard_normal(50)])
        values = all_least_squares(X, Y)
        path = SparseRegressor(k=4).fit(X, Y).path_
        first = SparseRegressor(k=1, method=Forward(rule="refit")).fit(X, Y).objective_
        assert first == pytest.approx(optimum(values, size=1), rel=1e-7)
        for size in range(1, 5):
            best = optimum(values, size=size)
            assert path[size].objective >= best * (1 - 1e-7)
            found += path[size].objective <= best * (1 + 1e-7)
    assert found >= 57


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_several_outputs_of_sparse_tables(kind):
    X, y = integers(n=70, d=9, seed=1)
    Y = np.column_stack([y, X[:, 0] * 2 - y])
    model, dense = SparseRegressor(k=3).fit(kind(X), Y), SparseRegressor(k=3).fit(X, Y)
    assert model.support_.tolist() == dense.support_.tolist()
    np.testing.assert_allclose(model.coef_, dense.coef_, rtol=1e-7)
    np.testing.assert_allclose(model.predict(kind(X)), dense.predict(X), rtol=1e-7)


def test_several_outputs_with_weights_and_ridge(table):
    X, y = table
    Y = np.column_stack([y, X[:, 1] + 2 * y])
    weights = np.random.default_rng(1).integers(0, 3, len(y))
    weighted = SparseRegressor(k=3, ridge=0.2, standardize=False).fit(X, Y, sample_weight=weights)
    repeated = SparseRegressor(k=3, ridge=0.2, standardize=False).fit(
        np.repeat(X, weights, axis=0), np.repeat(Y, weights, axis=0)
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-7)
    for one in weighted.path_:
        best = sum(objective(X, Y[:, c], one.support, weights=weights, ridge=0.2) for c in range(2))
        assert one.objective == pytest.approx(best, rel=1e-7)


# Several classes.


@pytest.mark.parametrize("method", METHODS)
def test_shapes_and_probabilities_of_three_classes(method):
    X, y = three_classes()
    model = SparseClassifier(k=3, method=method).fit(X, y)
    assert model.classes_.tolist() == ["low", "mid", "top"]
    assert model.coef_.shape == (3, 8)
    assert model.intercept_.shape == (3,)
    assert len(model.support_) == 3
    assert model.decision_function(X).shape == (90, 3)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    assert np.all(p > 0)
    np.testing.assert_allclose(np.log(p), model.predict_log_proba(X))
    assert model.predict(X).tolist() == model.classes_[p.argmax(axis=1)].tolist()
    losses, _ = losses_and_slopes("log_loss", y, model.decision_function(X))
    assert model.objective_ == pytest.approx(losses.mean(), rel=1e-6)
    assert model.summary().splitlines()[2].split() == ["feature", "low", "mid", "top", "importance"]
    assert model.at(1).coef_.shape == (3, 8)


def test_two_classes_have_one_row():
    X, y = three_classes()
    y = np.where(y == "top", "yes", "no")
    model = SparseClassifier(k=3).fit(X, y)
    assert (model.coef_.shape, model.intercept_.shape) == ((1, 8), (1,))
    assert model.decision_function(X).shape == (90,)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_allclose(np.log(p[:, 1] / p[:, 0]), model.decision_function(X), rtol=1e-9)
    assert set(model.predict(X)) == {"yes", "no"}
    joint = SparseClassifier(k=3, loss=Multinomial()).fit(X, y)
    np.testing.assert_allclose(joint.coef_, model.coef_, rtol=1e-9)
    assert model.summary().splitlines()[2].split() == ["feature", "coefficient", "importance"]


@pytest.mark.parametrize("kind", ["ints", "floats", "bools", "strings"])
def test_classes_of_any_kind_come_back_as_they_were(kind):
    X, y = three_classes()
    code = np.unique(y, return_inverse=True)[1]
    given = {"ints": code * 10 - 5, "floats": code + 0.0, "bools": code > 0, "strings": np.array(["z", "é", "a"])[code]}
    model = SparseClassifier(k=3).fit(X, given[kind])
    assert model.predict(X).dtype == given[kind].dtype
    assert set(model.predict(X)) <= set(given[kind])
    assert model.score(X, given[kind]) > 0.6
    assert model.classes_.tolist() == sorted(set(given[kind].tolist()))


def test_multinomial_equals_scikit_learn_on_the_support():
    X, y = three_classes()
    ridge = 0.05
    model = SparseClassifier(k=3, ridge=ridge, standardize=False).fit(X, y)
    other = LogisticRegression(C=1 / (ridge * len(y)), tol=1e-10, max_iter=10_000).fit(X[:, model.support_], y)
    np.testing.assert_allclose(model.coef_[:, model.support_], other.coef_, atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X[:, model.support_]), atol=1e-6)
    for one in model.path_:
        along, shift = slopes_of("log_loss", X, y, one, ridge=ridge)
        assert max(np.abs(along).max(initial=0), np.abs(shift).max()) < 1e-5
        assert one.objective == pytest.approx(value_of("log_loss", X, y, one, ridge=ridge), rel=1e-7)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_margins_tell_each_class_from_all_others(loss):
    X, y = three_classes()
    options = {"k": 3, "loss": loss, "ridge": 0.05, "standardize": False}
    model = SparseClassifier(**options).fit(X, y)
    assert model.coef_.shape == (3, 8)
    assert not hasattr(model, "predict_proba")
    assert model.predict(X).tolist() == model.classes_[model.decision_function(X).argmax(axis=1)].tolist()
    total = 0.0
    for c, label in enumerate(model.classes_):
        alone = SparseClassifier(**options).fit(X[:, model.support_], y == label)
        total += alone.objective_
        if loss == "squared_hinge":
            np.testing.assert_allclose(model.coef_[c, model.support_], alone.coef_[0], rtol=1e-4, atol=1e-5)
            svm = LinearSVC(C=1.0, intercept_scaling=1e4, max_iter=1).set_params(max_iter=200_000, tol=1e-8)
            svm.C = 1 / (2 * 0.05 * len(y))
            svm.fit(X[:, model.support_], y == label)
            np.testing.assert_allclose(model.coef_[c, model.support_], svm.coef_[0], atol=2e-3)
    assert model.objective_ == pytest.approx(total, rel=3e-3 if loss == "hinge" else 1e-7)


def test_multinomial_with_groups_weights_and_sparse_tables():
    X, y = integers(n=80, d=8, seed=2)
    y = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    params = {"k": 2, "feature_groups": LABELS, "ridge": 0.01, "standardize": False}
    weighted = SparseClassifier(**params).fit(sparse.csr_array(X), y, sample_weight=weights)
    repeated = SparseClassifier(**params).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert weighted.feature_groups_.tolist() == repeated.feature_groups_.tolist()
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-4, atol=1e-7)
    best = least("log_loss", X, y, weighted.support_, weights=weights, ridge=0.01)
    assert weighted.objective_ == pytest.approx(best, rel=1e-6)


def test_balanced_classes_are_sample_weights():
    X, y = three_classes()
    share = {label: (y == label).mean() for label in np.unique(y)}
    balanced = SparseClassifier(k=2, class_weight="balanced").fit(X, y)
    by_hand = SparseClassifier(k=2).fit(X, y, sample_weight=[1 / share[label] for label in y])
    named = SparseClassifier(k=2, class_weight={label: 1 / s for label, s in share.items()}).fit(X, y)
    np.testing.assert_allclose(balanced.coef_, by_hand.coef_, rtol=1e-8)
    np.testing.assert_allclose(named.coef_, by_hand.coef_, rtol=1e-8)


def test_resumed_runs_of_groups_and_outputs_go_the_same_way(table):
    X, y = table
    Y = np.column_stack([y, X[:, 2] + y])
    for target in (y, Y):
        for method in ("exchange", "forward", FoBa(nu=0.8), Exchange(scouts=())):
            whole = SparseRegressor(k=4, feature_groups=LABELS, method=method).fit(X, target)
            part = SparseRegressor(k=2, feature_groups=LABELS, method=method, warm_start=True).fit(X, target)
            before = len(part.path_.moves)
            part.set_params(k=4).fit(X, target)
            assert part.path_.moves == whole.path_.moves
            assert len(part.path_.moves) > before
            np.testing.assert_allclose(part.coef_, whole.coef_, rtol=1e-10)
