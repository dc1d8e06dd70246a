"""Units of choice: groups of columns, judged by enumeration."""

import numpy as np
import pandas as pd
import pytest
from constraint_judges import all_least_squares, least, optimum, subsets
from group_tables import LABELS, three_classes
from scipy import sparse
from sklearn.linear_model import LinearRegression

from pauca import PaucaWarning, SparseClassifier, SparseRegressor, Stop
from pauca.methods import Exchange, FoBa, Forward
from problems import METHODS, ar_problem, integers, objective


def members(labels):
    """Columns of every group, in the order of the labels."""
    return [[j for j, label in enumerate(labels) if label == one] for one in sorted(set(labels))]


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
    assert lines[0].startswith("2 groups of 4, 5 coefficients, objective ")
    rows = [line.split() for line in lines[4:]]
    assert lines[2].split() == ["group", "feature", "coefficient", "importance"]
    assert [row[0] for row in rows[:6]] == ["d", "col7", "a", "col3", "col6", "(intercept)"]
    assert [row[1] for row in rows if row and row[0] in "ad"] == ["col4", "col1"]
    assert float(rows[0][2]) == pytest.approx(model.coef_[4], rel=1e-5)
    assert "if the group is left out" in model.summary()


@pytest.mark.parametrize("form", [pd.Index, pd.Series, tuple, np.array])
def test_columns_of_a_group_come_in_any_collection(table, form):
    X, y = table
    frame = pd.DataFrame(X, columns=[f"col{j}" for j in range(8)])
    wanted = SparseRegressor(k=1, feature_groups={"first": ["col0", "col1", "col2"]}).fit(frame, y)
    model = SparseRegressor(k=1, feature_groups={"first": form(["col0", "col1", "col2"])}).fit(frame, y)
    assert model.path_.group_labels.tolist() == wanted.path_.group_labels.tolist()
    by_place = SparseRegressor(k=1, feature_groups={"first": range(3)}).fit(X, y)
    assert by_place.path_.group_labels[1:].tolist() == ["x3", "x4", "x5", "x6", "x7"]
    np.testing.assert_allclose(by_place.coef_, wanted.coef_)


def test_sentences_speak_of_groups(table):
    summary = SparseRegressor(k=2, feature_groups=LABELS).fit(*table).summary()
    assert "The requested size was reached." in summary


def test_more_groups_than_there_are(table):
    with pytest.warns(PaucaWarning, match="k=5 .* were requested, but only 4 of [0-9]+ can be used together") as caught:
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
        if method == "exchange" and loss != "squared_error":
            # Pairs to try are found from estimates, which are calibrated by other looks at groups than at columns.
            assert grouped[size].objective == pytest.approx(plain[size].objective, rel=0.02)
            continue
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
        np.testing.assert_allclose(a.objective, b.objective, rtol=1e-10)
        # Groups are fitted by another solver; coefficients are known to about the root of what values are.
        np.testing.assert_allclose(a.coef, b.coef, atol=1e-5)


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
    [("squared_error", 15, 14), ("multi", 15, 14), ("log_loss", 8, 7.5), ("multinomial", 4, 3.5)],
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
