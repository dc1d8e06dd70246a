"""Size and ridges chosen together: the surface against separate fits, units, leakage, and what is said of it."""

import pickle
import signal
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, RepeatedKFold

import pauca
from pauca import PaucaWarning, SparseClassifier, SparseRegressor
from pauca.clock import OutOfTime
from pauca.losses import Huber, LogLoss, SquaredError
from pauca.model_selection import size_selection
from pauca.model_selection.comparison import CAUTION, Comparison, ScoredFold
from pauca.model_selection.grids import GAINED_BY_LIGHTEST, SMALLEST_RIDGE, RidgeGrid, fit_ridges
from pauca.model_selection.rules import HeldOutLosses, choose, without_isolated_minima
from pauca.model_selection.size_and_ridge import SEARCH_SHARE, SurfaceSelection
from pauca.runs import run as driver

pytestmark = pytest.mark.filterwarnings("ignore:The largest size")

SPLITS = list(KFold(3, shuffle=True, random_state=1).split(np.zeros((90, 1))))


def table(n=90, d=8, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.6 * rng.standard_normal((n, 1))
    return X, X[:, :3] @ [2.0, -1.0, 0.7] + noise * rng.standard_normal(n)


def held_out(name, model, X, y):
    scores = X @ model.coef_.ravel() + float(np.ravel(model.intercept_)[0])
    if name == "log_loss":
        return LogLoss().value(np.where(y > 0, 1.0, -1.0), scores)
    return (SquaredError() if name == "squared_error" else Huber(1.5)).value(y, scores)


LIGHTEST_OF_GRID = SMALLEST_RIDGE[True]


def given_away(n):
    """Two classes that the sign of a column gives away, with some rows close to zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 4))
    return X, X[:, 0] > 0


def test_where_a_column_gives_the_classes_away_lighter_ridges_are_compared():
    X, y = given_away(600)
    model = SparseClassifier(k=[0, 1, 2], cv=4).fit(X, y)
    surface = model.path_.choice.surface
    assert model.ridge_ < 0.5 * LIGHTEST_OF_GRID
    assert np.all(np.diff(surface.ridges) > 0)
    again = SparseClassifier(
        k=[0, 1, 2], cv=4, ridge=surface.ridges[:3], search_ridge=surface.search_ridges, selection_rule="best"
    ).fit(X, y)
    np.testing.assert_allclose(again.path_.choice.surface.mean, surface.mean[:, :3], atol=1e-4)


def test_of_few_rows_that_are_separated_no_lighter_ridge_is_taken():
    X, y = given_away(40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PaucaWarning)
        model = SparseClassifier(k=[0, 1, 2], cv=4).fit(X, y)
    assert model.k_
    assert model.ridge_ > 0.5 * LIGHTEST_OF_GRID


def test_where_the_lightest_ridge_gains_little_no_lighter_ones_are_compared():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 4))
    model = SparseClassifier(k=[0, 1, 2], cv=3, selection_rule="best").fit(
        X, X[:, 0] + 0.2 * rng.logistic(size=2000) > 0
    )
    surface = model.path_.choice.surface
    assert len(surface.ridges) == len(fit_ridges(2000, 4, True))
    gained = replace(surface, ridge=surface.ridges[0]).gained_by_lightest(1)
    left = 1 - surface.mean[surface.search_ridges == surface.search_ridge][0, :2, 1]
    assert gained == pytest.approx(1 - left[0] / left[1])
    assert abs(gained) < GAINED_BY_LIGHTEST
    assert replace(surface, ridge=surface.ridges[1]).gained_by_lightest(1) == 0


@pytest.mark.parametrize("half_decades", [True, False])
def test_lighter_ridges_go_on_in_the_same_steps_to_the_last(half_decades):
    first = (1e-4, 3e-4, 1e-3) if half_decades else (1e-4, 1e-3)
    grid, fit = RidgeGrid((0.03, 3.0), first, grows=True), first
    for power in (-5, -6, -7, -8):
        added = tuple(float(f"{step}e{power}") for step in ((1, 3) if half_decades else (1,)))
        grid, fit = grid.lighter(), (*added, *fit)
        assert grid.fit == fit
        assert grid.n_added == len(fit) - len(first)
        assert grid.grows == (power > -8)


def test_of_lighter_ridges_wrong_labels_count_more_and_nothing_else_does():
    measure = SimpleNamespace(blocks=np.arange(3), weight=np.array([1.0, 1.0, 0.0]))
    rng = np.random.default_rng(0)
    fold = ScoredFold(measure, [{0: rng.random((4, 3)), 1: rng.random((4, 3))}])
    plain, careful = Comparison([fold], [0, 1]), Comparison([fold], [0, 1])
    assert careful.losses.mean.shape == (1, 4, 2)
    careful.be_careful(2)
    more = (CAUTION - 1) * plain.losses.sums[:, :2, :, 2] / 2
    np.testing.assert_allclose(careful.losses.mean[:, :2], plain.losses.mean[:, :2] + more)
    np.testing.assert_array_equal(careful.losses.mean[:, 2:], plain.losses.mean[:, 2:])
    np.testing.assert_array_equal(careful.losses.observed, plain.losses.observed)
    assert CAUTION > 1


@pytest.mark.parametrize("stop", [OutOfTime, KeyboardInterrupt])
def test_if_lighter_ridges_are_cut_off_the_choice_is_that_without_them(stop, monkeypatch):
    X, y = given_away(600)
    whole = SurfaceSelection._refitter

    def cut_off(selection, number, ridges):
        if selection.grid.n_added == 0 and len(ridges) < len(selection.grid.fit):
            raise stop
        return whole(selection, number, ridges)

    monkeypatch.setattr(SurfaceSelection, "_refitter", cut_off)
    with pytest.warns(PaucaWarning, match="sizes 0 to 2|interrupted|time limit"):
        model = SparseClassifier(k=[0, 1, 2], cv=4).fit(X, y)
    assert model.k_
    assert model.ridge_ == model.path_.choice.surface.ridges[0] == LIGHTEST_OF_GRID


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("name", ["squared_error", "log_loss", "huber"])
def test_the_surface_equals_separate_fits(name, standardize):
    X, y = table()
    X = X * np.arange(1, 9)
    y = np.sign(y) if name == "log_loss" else y
    kind = SparseClassifier if name == "log_loss" else SparseRegressor
    options = {"loss": Huber(1.5) if name == "huber" else name, "method": "forward", "standardize": standardize}
    searches, ridges, sizes = [0.1, 2.0], [0.02, 0.5], [0, 1, 3]
    chosen = kind(k=sizes, ridge=ridges, search_ridge=searches, cv=SPLITS, **options).fit(X, y)
    surface = chosen.path_.choice.surface
    losses = np.zeros((2, 2, 3, 90))
    for s, search in enumerate(searches):
        for r, ridge in enumerate(ridges):
            for train, test in SPLITS:
                path = kind(k=3, ridge=ridge, search_ridge=search, **options).fit(X[train], y[train])
                for place, size in enumerate(sizes):
                    losses[s, r, place, test] = held_out(name, path.at(size), X[test], y[test])
    mean, null = losses.mean(axis=-1), losses[0, 0, 0].mean()
    np.testing.assert_allclose(surface.mean, 1 - mean / null, atol=1e-5)
    best = np.unravel_index(mean.argmin(), mean.shape)
    error = (losses - losses[best]).std(axis=-1, ddof=1) / np.sqrt(90)
    np.testing.assert_allclose(surface.standard_error, error / null, atol=1e-5)
    whole = kind(k=3, ridge=chosen.ridge_, search_ridge=chosen.search_ridge_, **options).fit(X, y)
    for one, other in zip(chosen.path_, whole.path_, strict=True):
        np.testing.assert_allclose(one.coef, other.coef, rtol=1e-5, atol=1e-8)
        assert one.objective == pytest.approx(other.objective)


def test_of_what_is_as_good_as_the_best_the_smallest_then_the_most_shrunk_is_taken():
    X, y = table(noise=3.0)
    for rule in ("best", 0.25, "1se"):
        choice = SparseRegressor(selection_rule=rule).fit(X, y).path_.choice
        surface, errors = choice.surface, {"best": 0.0, "1se": 1.0}.get(rule, rule)
        good = surface.mean >= surface.mean.max() - errors * surface.standard_error - 1e-12
        size = np.flatnonzero(good.any(axis=(0, 1)))[0]
        ridge = np.flatnonzero(good[:, :, size].any(axis=0))[-1]
        assert (choice.chosen, surface.ridge) == (surface.sizes[size], surface.ridges[ridge])


@pytest.mark.parametrize("kind", [SparseRegressor, SparseClassifier])
def test_units_of_the_columns_change_nothing(kind):
    X, y = table(noise=2.0)
    y = y if kind is SparseRegressor else y > 0
    scale = 10.0 ** np.linspace(-6, 6, 8)
    plain, scaled = (kind(k=range(5), method="forward").fit(table, y) for table in (X, X * scale))
    np.testing.assert_array_equal(plain.support_, scaled.support_)
    assert (plain.ridge_, plain.search_ridge_) == (scaled.ridge_, scaled.search_ridge_)
    np.testing.assert_allclose(plain.coef_, scaled.coef_ * scale, rtol=1e-6, atol=1e-12)
    assert plain.objective_ == pytest.approx(scaled.objective_)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_units_of_the_target_change_nothing(loss):
    X, y = table(n=40, d=5, noise=2.0)
    options = {"k": range(3), "loss": loss, "method": "forward", "cv": 2}
    plain, scaled = (SparseRegressor(**options).fit(X, t) for t in (y, 1000 * y))
    np.testing.assert_array_equal(plain.support_, scaled.support_)
    np.testing.assert_allclose(1000 * plain.coef_, scaled.coef_, rtol=1e-3)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("loss", ["squared_error", "huber"])
def test_folds_see_nothing_of_each_other_the_scale_of_the_ridges_included(loss, standardize):
    X, y = table()
    train, test = np.arange(60), np.arange(60, 90)
    seen = []

    def spy(model, rows, target):
        seen.append(model.coef_.copy())
        return 0.0

    for wild in (1.0, 1e3):
        there, target = X.copy(), y.copy()
        there[test] *= wild
        target[test] *= wild
        options = {"loss": loss, "standardize": standardize, "method": "forward"}
        SparseRegressor(k=[3], ridge="auto", cv=[(train, test)], scoring=spy, **options).fit(there, target)
    half = len(seen) // 2
    np.testing.assert_allclose(seen[:half], seen[half:], rtol=1e-6)


def test_a_standardised_ridge_is_that_of_standardised_columns():
    X, y = table()
    X = X * np.arange(1, 9)
    spread = X.std(axis=0)
    model = SparseRegressor(k=3, ridge=0.2).fit(X, y)
    other = SparseRegressor(k=3, ridge=0.2, standardize=False).fit(X / spread, y)
    np.testing.assert_array_equal(model.support_, other.support_)
    np.testing.assert_allclose(model.coef_, other.coef_ / spread, rtol=1e-9)
    judge = Ridge(alpha=0.2 * len(y)).fit(X[:, model.support_] / spread[model.support_], y)
    np.testing.assert_allclose(model.coef_[model.support_] * spread[model.support_], judge.coef_, rtol=1e-9)
    residual = y - model.predict(X)
    penalty = 0.1 * np.sum((spread * model.coef_) ** 2)
    assert model.objective_ == pytest.approx(0.5 * np.mean(residual**2) + penalty)


def test_the_search_may_have_a_ridge_of_its_own():
    X, y = table(d=30, n=40, noise=4.0)
    searched = SparseRegressor(k=4, ridge=5.0).fit(X, y)
    model = SparseRegressor(k=4, search_ridge=5.0).fit(X, y)
    assert (model.ridge_, model.search_ridge_) == (0.0, 5.0)
    np.testing.assert_array_equal(model.support_, searched.support_)
    judge = np.linalg.lstsq(np.c_[np.ones(40), X[:, model.support_]], y)[0]
    np.testing.assert_allclose(model.coef_[model.support_], judge[1:], rtol=1e-8)


def test_ridge_alone_is_chosen_for_a_given_size():
    X, y = table(noise=6.0, n=40)
    model = SparseRegressor(k=4, ridge="auto").fit(X, y)
    assert model.k_ == 4
    assert model.ridge_ > 0
    assert model.path_.choice.surface.mean.shape == (2, len(fit_ridges(40, 8, False)), 1)
    assert SparseRegressor(k=4).fit(X, y).ridge_ == SparseRegressor(criterion="bic").fit(X, y).ridge_ == 0.0
    assert SparseRegressor(k=range(3), ridge=0.1).fit(X, y).path_.choice.surface is None


def test_the_grid_starts_at_a_floor_that_falls_with_the_rows():
    assert fit_ridges(500, 100, False) == (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
    assert fit_ridges(60, 2000, False) == (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)
    assert fit_ridges(3, 10**6, True) == fit_ridges(10**6, 3, True)
    assert len(fit_ridges(10**9, 10, False)) <= 14


def test_rows_of_a_group_count_once():
    """Copies of rows that are known to belong together say no more than one of them."""
    X, y = table(noise=3.0)
    once = SparseRegressor(k=range(5), cv=SPLITS).fit(X, y)
    groups = np.repeat(np.arange(90), 2)
    twice = [tuple(np.flatnonzero(np.isin(groups, side)) for side in split) for split in SPLITS]
    copies = SparseRegressor(k=range(5), cv=twice, ridge=once.path_.choice.surface.ridges.tolist())
    copies.fit(np.repeat(X, 2, axis=0), np.repeat(y, 2), groups=groups)
    np.testing.assert_allclose(
        copies.path_.choice.surface.standard_error, once.path_.choice.surface.standard_error, atol=1e-8
    )
    alone = SparseRegressor(k=range(5), cv=twice, ridge=once.path_.choice.surface.ridges.tolist())
    error = alone.fit(np.repeat(X, 2, axis=0), np.repeat(y, 2)).path_.choice.surface.standard_error
    assert error.max() < 0.8 * once.path_.choice.surface.standard_error.max()


def test_repeated_folds_are_averaged_row_by_row():
    X, y = table(noise=3.0)
    once = SparseRegressor(k=range(4), cv=SPLITS).fit(X, y).path_.choice
    again = SparseRegressor(k=range(4), cv=SPLITS * 3).fit(X, y).path_.choice
    np.testing.assert_allclose(again.surface.mean, once.surface.mean, atol=1e-9)
    np.testing.assert_allclose(again.surface.standard_error, once.surface.standard_error, atol=1e-9)
    cv = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    assert SparseRegressor(k=range(4), cv=cv).fit(X, y).path_.choice.fold_scores.shape == (6, 4)


def test_dependent_columns_have_no_model_without_a_ridge():
    X, y = table(noise=0.01)
    X = np.c_[X[:, :3], X[:, 0] + X[:, 1], X[:, 1] - X[:, 2], X[:, 0] - X[:, 2]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PaucaWarning)
        model = SparseRegressor(k=range(7), search_ridge=[0.3]).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert model.ridge_ > 0 or model.k_ <= 3


def test_prices_leave_the_scores_of_sizes_to_the_models_on_the_path():
    """Forward selection would compare the cheap column at size 1, where exchange takes the one that predicts."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 5))
    y = 2.0 * X[:, 0] + 0.9 * X[:, 1] + rng.standard_normal(120) > 0
    fits = [SparseClassifier(k=range(3), ridge=0.1, costs=costs).fit(X, y) for costs in (None, [10, 1, 1, 1, 1])]
    assert [model.path_.names(1) for model in fits] == [["x0"], ["x0"]]
    np.testing.assert_allclose(*(model.path_.choice.mean for model in fits), rtol=1e-6)


def test_other_sizes_at_their_own_ridges():
    X, y = table(noise=4.0)
    model = SparseRegressor().fit(X, y)
    surface = model.path_.choice.surface
    for size in (1, 5):
        search_ridge, ridge = surface.best_of(size)
        other = model.at(size, ridge="best")
        assert (other.ridge_, other.search_ridge_, other.k_) == (ridge, search_ridge, size)
        alone = SparseRegressor(k=size, ridge=ridge, search_ridge=search_ridge).fit(X, y)
        np.testing.assert_allclose(other.coef_, alone.coef_, rtol=1e-8)
        assert model.at(size).ridge_ == model.ridge_
    assert model.alternatives(1)[0]["objective"] >= model.objective_ - 1e-12
    assert model.stability(4).size == model.k_
    with pytest.raises(ValueError, match="No ridges were compared"):
        SparseRegressor(k=2).fit(X, y).at(1, ridge="best")
    has_the_best_ridges_that_its_path_has(pickle.loads(pickle.dumps(model)), model)
    with pytest.raises(KeyError, match="was not scored"):
        model.at(99, ridge="best")


def has_the_best_ridges_that_its_path_has(loaded, model):
    """Without the data of the fit; for other sizes it says what to do."""
    surface = model.path_.choice.surface
    for size in surface.sizes[1:].tolist():
        if surface.best_of(size) == (model.search_ridge_, model.ridge_):
            np.testing.assert_array_equal(loaded.at(size, ridge="best").coef_, model.at(size).coef_)
        else:
            with pytest.raises(ValueError, match=rf"best ridge of size {size} is .*: take at\({size}\), or fit"):
                loaded.at(size, ridge="best")


def test_files_carry_the_surface(tmp_path):
    X, y = table(noise=4.0)
    model = SparseRegressor(k=range(4)).fit(X, y)
    model.save(tmp_path / "model.json")
    loaded = pauca.load(tmp_path / "model.json")
    assert (loaded.ridge_, loaded.search_ridge_, loaded.k_) == (model.ridge_, model.search_ridge_, model.k_)
    choice, other = model.path_.choice, loaded.path_.choice
    np.testing.assert_array_equal(choice.surface.mean, other.surface.mean)
    assert (choice.message, choice.rule, choice.best) == (other.message, other.rule, other.best)
    has_the_best_ridges_that_its_path_has(loaded, model)
    assert set(choice.surface.table()[0]) == {"search_ridge", "ridge", "size", "score", "standard_error"}


def test_where_loss_still_falls_at_the_last_size_it_is_said():
    X, y = table(noise=0.1)
    with pytest.warns(PaucaWarning, match="largest size that was compared, 2"):
        model = SparseRegressor(k=range(3)).fit(X, y)
    assert "still falling at 2" in model.summary()
    assert "still falling" not in SparseRegressor(k=range(9)).fit(X, y).summary()


def test_after_a_time_limit_only_what_was_compared_is_told():
    X, y = table(n=300, d=200)
    with pytest.warns(PaucaWarning, match="time limit"):
        model = SparseRegressor(time_limit=1e-6).fit(X, y)
    assert model.stop_ == "time"
    assert "before the time limit" in model.path_.choice.message


def test_after_the_time_limit_no_fold_is_begun(monkeypatch):
    """To begin one takes several passes over its rows."""
    begun, begin = [], SurfaceSelection._begin

    def counted(self, number, design):
        begun.append(number)
        return begin(self, number, design)

    monkeypatch.setattr(SurfaceSelection, "_begin", counted)
    monkeypatch.setattr(size_selection, "GRACE", 0.0)
    X, y = table(n=300, d=200)
    with pytest.warns(PaucaWarning, match="time limit"):
        model = SparseRegressor(time_limit=1e-6).fit(X, y)
    assert begun == [0]
    assert model.stop_ == "time"


def test_what_is_left_of_a_time_limit_is_spent_on_searches_that_their_share_has_cut_off(monkeypatch):
    X, y = table(d=6)
    plain = SparseRegressor(k=range(4), cv=SPLITS).fit(X, y)
    monkeypatch.setattr(SurfaceSelection, "search_share", 1e-9)  # one move of a search of a fold at a time
    limited = SparseRegressor(k=range(4), cv=SPLITS, time_limit=1e6).fit(X, y)
    assert limited.stop_ == plain.stop_ == "size"
    np.testing.assert_array_equal(plain.path_.choice.surface.mean, limited.path_.choice.surface.mean)


def test_sizes_that_a_fold_was_not_scored_at_are_not_compared(monkeypatch):
    """The time ends in the second round, before the last fold: its models of the first say nothing of larger ones."""
    X, y = table(n=200, d=60, noise=0.3)
    y = y + X[:, 3:40].sum(axis=1)
    advance, rounds = SurfaceSelection._advance, []

    def cut(self, number, goal, budget, design):
        rounds.append(number)
        if rounds.count(number) == 2 and number == len(self.folds):
            raise OutOfTime
        advance(self, number, goal, budget, design)

    monkeypatch.setattr(SurfaceSelection, "_advance", cut)
    with pytest.warns(PaucaWarning):
        model = SparseRegressor(method="forward").fit(X, y)
    assert max(model.path_.choice.sizes) == 20 < max(model.path_.sizes)
    assert model.stop_ == "time"


def test_within_a_time_limit_the_answer_is_that_without_one():
    X, y = table(noise=3.0)
    plain, limited = (SparseRegressor(k=range(9), time_limit=limit).fit(X, y) for limit in (None, 1e6))
    np.testing.assert_array_equal(plain.path_.choice.surface.mean, limited.path_.choice.surface.mean)


def test_searches_of_a_fold_leave_time_to_score_what_they_find(monkeypatch):
    limits, plain = [], SurfaceSelection._continue

    def watched(selection, run, goal, budget):
        limits.append(budget.time_limit)
        return plain(selection, run, goal, budget)

    monkeypatch.setattr(SurfaceSelection, "_continue", watched)
    X, y = table()
    SparseRegressor(k=range(4), cv=SPLITS, time_limit=1e6).fit(X, y)
    # A quarter of the time is for all rows, and a third of what is left for the first fold; there are two searches.
    assert limits[0] == pytest.approx(1e6 / 4 / 2, rel=1e-3)
    assert limits[2] == pytest.approx(SEARCH_SHARE * 1e6 / 3 / 2, rel=1e-3)


@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupt_in_the_folds_is_told(monkeypatch):
    monkeypatch.setattr("pauca.runs.run._interrupts", driver._Interrupts())
    X, y = table()

    def press(progress):
        if progress.fold == 0:
            signal.raise_signal(signal.SIGINT)

    with pytest.warns(PaucaWarning, match="interrupt"):
        model = SparseRegressor(callback=press).fit(X, y)
    assert model.stop_ == "interrupted"
    assert model.k_ > 0
    assert "No size was scored on held-out rows before the interrupt" in model.summary()


def losses_with_means(mean, spread=5.0):
    """Losses on ten rows, with these means, that differ from size to size by far more than chance explains or less."""
    mean = np.array(mean)
    rows = spread * np.random.default_rng(0).standard_normal((len(mean), 10))
    rows -= rows.mean(axis=1, keepdims=True)
    return HeldOutLosses((mean[:, None] + rows)[None, None] / 10, np.full(10, 0.1))


def test_a_size_is_low_by_chance_as_far_as_its_rows_differ_from_those_of_its_successors():
    rows = np.random.default_rng(0).random((5, 30)) / 30 + np.array([0.0, 1.0, 1.0, 0.0, 0.1])[:, None] / 30
    found = without_isolated_minima(HeldOutLosses(rows[None, None], np.full(30, 1 / 30)), np.arange(1, 6), 2)[0, 0]
    for place, own in enumerate(rows):
        difference = rows[place : place + 3].mean(axis=0) - own
        error = np.sqrt(30 * difference.var(ddof=1))
        assert found[place] == pytest.approx(own.sum() + np.clip(difference.sum(), 0.0, 1.5 * error))


def test_a_size_whose_successors_are_worse_is_no_better_than_they_are():
    sizes = np.arange(8)
    mean = np.array([1.0, 0.6, 0.3, 0.5, 0.5, 0.5, 0.4, 0.4])
    found = without_isolated_minima(losses_with_means(mean), sizes, 2)[0, 0]
    np.testing.assert_allclose(found[2], (0.3 + 0.5 + 0.5) / 3)  # low by luck
    np.testing.assert_allclose(found[[0, 1, 3, 4, 5, 6, 7]], mean[[0, 1, 3, 4, 5, 6, 7]])  # nothing worse follows
    np.testing.assert_allclose(without_isolated_minima(losses_with_means(mean), sizes, 0)[0, 0], mean)
    few = mean[[0, 2, 7]]
    np.testing.assert_allclose(without_isolated_minima(losses_with_means(few), sizes[[0, 2, 7]], 4)[0, 0], few)
    barred = losses_with_means([0.2, 0.0, 0.4])
    barred.sums[0, 0, 1] = np.inf
    np.testing.assert_allclose(without_isolated_minima(barred, np.array([1, 2, 3]), 4)[0, 0], [0.3, np.inf, 0.4])
    assert choose(losses_with_means(mean), sizes, "best").place[2] == 2
    assert choose(losses_with_means(mean), sizes, "best", ahead=2).place[2] == 6


def test_what_is_no_chance_is_not_held_against_a_size():
    """Two features leave half the loss of one on every row; with more, the models overfit."""
    mean = [0.7, 0.53, 0.27, 0.5, 0.6, 0.7, 0.8]
    assert choose(losses_with_means(mean, spread=0.02), np.arange(7), 0.25, ahead=4).place[2] == 2
    assert choose(losses_with_means(mean), np.arange(7), "best", ahead=4).place[2] != 2


def test_a_steep_curve_keeps_its_first_good_size():
    """Two features explain everything: what one alone loses does not count against two."""
    mean = np.array([1.0, 0.8, 0.1, 0.101, 0.102, 0.103, 0.104])
    losses = HeldOutLosses(np.broadcast_to(mean[:, None] / 10, (1, 1, 7, 10)).copy(), np.full(10, 0.1))
    assert choose(losses, np.arange(7), "best", ahead=4).place[2] == 2


def test_when_the_time_is_up_the_answer_still_has_the_ridge_that_was_chosen(monkeypatch):
    X, signal_ = table(n=120, d=12, seed=3)
    y = signal_ > 0
    whole = SparseClassifier(k=range(5), ridge=(0.001, 0.1)).fit(X, y)
    searched = whole.path_.choice.surface.search_ridge
    assert whole.ridge_ != searched  # otherwise nothing is refitted
    monkeypatch.setattr("pauca.model_selection.size_and_ridge.GRACE", -1e9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PaucaWarning)
        cut = SparseClassifier(k=range(5), ridge=(0.001, 0.1), time_limit=1000).fit(X, y)
    assert cut.stop_ == "time"
    assert cut.ridge_ == whole.ridge_
    np.testing.assert_allclose(cut.coef_, whole.coef_, rtol=1e-6, atol=1e-8)


def table_with_a_category(n=200, levels=40, seed=0):
    """Five columns that help, and the indicators of a category that does not."""
    rng = np.random.default_rng(seed)
    X, level = rng.standard_normal((n, 5)), rng.integers(0, levels, n)
    y = X @ [1.0, 0.8, 0.6, 0.5, 0.4] + 1.5 * rng.standard_normal(n)
    return np.column_stack([X, np.eye(levels)[level][:, 1:]]), y, [*"abcde", *["level"] * (levels - 1)]


@pytest.mark.parametrize("kind", [SparseRegressor, SparseClassifier])
def test_a_category_of_many_levels_does_not_displace_columns_that_help(kind):
    taken = {True: 0, False: 0}
    for seed in range(3):
        X, y, groups = table_with_a_category(seed=seed)
        y = y if kind is SparseRegressor else y > 0
        found = kind(feature_groups=groups).fit(X, y)
        plain = kind(k=5, ridge=1e-2, feature_groups=groups).fit(X, y)
        taken[True] += len(found.support_) > 5
        taken[False] += len(plain.support_) > 5
    assert taken == {True: 0, False: 3}


def test_the_ridge_of_a_search_that_is_found_counts_units_and_that_of_the_fit_does_not():
    X, y, groups = table_with_a_category(levels=20)
    options = {"ridge": [0.3], "search_ridge": "auto", "feature_groups": groups, "always": ["level"]}
    model = SparseRegressor(k=4, cv=3, **options).fit(X, y)
    assert (model.search_ridge_, model.ridge_, len(model.support_)) == (0.3, 0.3, 22)
    penalty = 0.5 * model.ridge_ * np.sum((X.std(axis=0) * model.coef_) ** 2)
    assert model.objective_ == pytest.approx(0.5 * np.mean((y - model.predict(X)) ** 2) + penalty)


def test_on_halves_and_folds_a_category_is_searched_as_in_the_model():
    X, y, groups = table_with_a_category()
    model = SparseRegressor(k=range(1, 7), cv=3, feature_groups=groups).fit(X, y)
    assert model.search_ridge_ > 0
    chosen = model.stability(n_resamples=8).frequency
    assert chosen.get("level", 0.0) < 0.7 < chosen["a"]
    assert not any("level" in names for names in model.at(4).evaluate().fold_choices)


def test_a_ridge_of_the_search_that_is_given_means_what_it_says():
    X, y, groups = table_with_a_category()
    alike = SparseRegressor(k=5, ridge=0.01, feature_groups=groups).fit(X, y)
    given = SparseRegressor(k=[5], ridge=[0.01], search_ridge=[0.01], cv=3, feature_groups=groups).fit(X, y)
    assert given.path_[5].units.tolist() == alike.path_[5].units.tolist()
    assert 5 in alike.path_[5].units  # the category


def test_models_are_fitted_as_they_were_searched_at_one_ridge_in_the_same_unit():
    assert RidgeGrid((0.1,), (0.1,), search_in_units=True, fit_in_units=True).fits_as_searched
    assert not RidgeGrid((0.1,), (0.1,), fit_in_units=True).fits_as_searched
    assert not RidgeGrid((0.1,), (0.2,)).fits_as_searched
    assert not RidgeGrid((0.1,), (0.1, 0.2)).fits_as_searched
