"""The estimators of models in an l1 ball: the choice of the radius, odd data, runs that are ended, files."""

import numpy as np
import pandas as pd
import pytest
from ball_problems import ALL, estimator
from judges import correlated
from scipy import sparse
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GroupKFold

import pauca
from pauca import L1Classifier, L1Regressor, PaucaWarning, Stop
from pauca.runs import run as driver
from problems import ar_problem, integers

# Choosing the radius.


def test_the_radius_is_chosen_by_cross_validation():
    X, y = ar_problem(120, 40, 4, rho=0.5, snr=3.0)
    model = L1Regressor(tol=1e-4).fit(X, y)
    assert np.all(np.diff(model.radii_) > 0)
    assert model.radii_.shape == model.scores_.shape == model.score_errors_.shape
    position = np.flatnonzero(model.radii_ == model.radius_)[0]
    top = model.scores_.argmax()
    enough = model.scores_ >= model.scores_[top] - model.score_errors_[top]
    # What counts is the error of the difference, which is smaller than that of a score.
    assert np.flatnonzero(enough)[0] <= position <= top
    best_scored = L1Regressor(tol=1e-4, selection_rule="best").fit(X, y)
    assert best_scored.radius_ == model.radii_[top]
    given = L1Regressor(radius=model.radius_, tol=1e-4).fit(X, y)
    assert given.objective_ == pytest.approx(model.objective_, abs=2e-4 * model.path_[0].objective)
    assert len(given.radii_) == 0


@pytest.mark.parametrize("target", ["log_loss", "multinomial", "absolute_error"])
def test_the_radius_is_chosen_for_every_kind_of_target(target):
    kind = ALL[target]
    X, y = correlated(kind, n=60, d=6, seed=1)
    model = estimator(kind, cv=3, tol=1e-2).fit(X, y)
    assert model.radius_ in model.radii_
    assert model.gap_ <= 1e-2 * model.path_[0].objective
    again = estimator(kind, cv=3, tol=1e-2, n_jobs=2).fit(X, y)
    np.testing.assert_allclose(again.scores_, model.scores_)


def test_folds_scorers_and_groups_of_rows():
    X, y = ar_problem(60, 8, 3)
    rows = np.repeat(np.arange(12), 5)
    model = L1Regressor(cv=GroupKFold(3), scoring="neg_mean_absolute_error").fit(X, y, groups=rows)
    assert np.all(model.scores_ < 0)
    with pytest.raises(ValueError, match="groups"):
        L1Regressor(cv=3).fit(X, y, groups=rows[:-1])


def _in_mixed_units(scale, tails, seed):
    """Two columns with small entries that count, and one with large entries that counts a little."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((400, 6))
    X[:, 4] = rng.standard_t(tails, 400)
    y = X[:, 0] - X[:, 1] + 0.3 * np.clip(X[:, 4], -1.5, 1.5) + 0.5 * rng.standard_normal(400)
    X[:, 4] *= scale
    return X, y


@pytest.mark.parametrize("kind", [L1Regressor, L1Classifier])
@pytest.mark.parametrize(("scale", "tails"), [(1e2, 3), (1e6, 30)])
def test_columns_with_large_entries_do_not_keep_others_out(kind, scale, tails):
    # In small balls only the large column comes in: scores fall, or the ball no longer binds, long before the others.
    X, y = _in_mixed_units(scale, tails, seed=2)
    y = y > 0 if kind is L1Classifier else y
    model = kind().fit(X, y)
    assert {0, 1} <= set(model.support_)
    assert model.score(X, y) == pytest.approx(kind(standardize=True).fit(X, y).score(X, y), abs=0.03)


def test_where_no_feature_helps_the_ball_is_small():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 5)), rng.standard_normal(50)
    model = L1Regressor().fit(X, y)
    assert np.abs(model.coef_).max() < 0.2
    assert len(model.radii_) < 10  # what is left looks like noise


# Data without an answer of their own.


@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning")
def test_odd_data():
    X, y = ar_problem(20, 5, 2)
    flat = L1Regressor(radius=1).fit(X, np.full(20, 3.0))
    assert (flat.k_, flat.objective_, flat.gap_, flat.intercept_) == (0, 0.0, 0.0, 3.0)
    assert L1Regressor().fit(X, np.full(20, 3.0)).k_ == 0
    constant = L1Regressor(radius=1).fit(np.ones((20, 3)), y)
    assert (constant.k_, constant.gap_) == (0, 0.0)
    twice = L1Regressor(radius=2, tol=1e-9).fit(np.hstack([X, X, -X]), y)
    once = L1Regressor(radius=2, tol=1e-9).fit(X, y)
    assert twice.objective_ == pytest.approx(once.objective_)
    wide = L1Regressor(radius=1e3, tol=1e-6).fit(np.random.default_rng(0).standard_normal((10, 50)), y[:10])
    assert wide.objective_ <= wide.path_[0].objective * 1e-5
    one = L1Regressor(radius=1).fit(X[:1], y[:1])
    assert one.predict(X[:1]) == pytest.approx(y[:1])


@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning")
@pytest.mark.parametrize("classes", [2, 3])
def test_separable_classes_and_classes_without_weight(classes):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    y = np.digitize(X[:, 0], [0.0] if classes == 2 else [-0.5, 0.5])
    model = L1Classifier(radius=20, tol=1e-4).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.gap_ <= 1e-4 * model.path_[0].objective
    if classes == 3:
        two = L1Classifier(radius=3).fit(X, y, sample_weight=(y > 0).astype(float))
        assert np.all(np.isfinite(two.coef_))
        assert set(two.predict(X)) == {1, 2}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"radius": 0}, ValueError, "'radius' parameter of L1Regressor must be a float in the range"),
        ({"radius": -1.0}, ValueError, "or 'auto'. Got -1.0"),
        ({"radius": np.nan}, ValueError, "'radius'"),
        ({"radius": np.inf}, ValueError, "'radius'"),
        ({"radius": "best"}, ValueError, "or 'auto'"),
        ({"radius": None}, TypeError, r"must be a float in the range \(0, inf\) or 'auto'. Got None"),
        ({"radius": True}, TypeError, "'radius'"),
        ({"tol": 0.0}, ValueError, "'tol'"),
        ({"k": 0}, ValueError, "'k'"),
        ({"k": 2.5}, TypeError, "'k'"),
        ({"standardize": "columns"}, TypeError, "'standardize' parameter of L1Regressor must be a bool"),
        ({"solver": "exchange"}, ValueError, "'corrective', 'pairwise', 'away', 'forward'"),
        ({"step_rule": "long"}, ValueError, "'line', 'closed'"),
        ({"step_rule": "closed"}, ValueError, "goes with solver='forward'"),
        ({"step_rule": "closed", "solver": "forward", "loss": "poisson"}, ValueError, "Poisson has none"),
        ({"selection_rule": "all"}, ValueError, "'selection_rule'"),
        ({"cv": 1}, ValueError, "at least 2 folds"),
        ({"scoring": "beauty"}, ValueError, "beauty"),
        ({"ridge": -1}, ValueError, "'ridge'"),
        ({"fit_intercept": "yes"}, TypeError, "'fit_intercept'"),
        ({"max_iter": 0}, ValueError, "'max_iter'"),
        ({"time_limit": 0}, ValueError, "'time_limit'"),
        ({"callback": 3}, TypeError, "'callback'"),
        ({"loss": "hinge"}, ValueError, "classes"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
    ],
)
def test_invalid_parameters_raise(options, error, message):
    X, y = np.abs(integers()[0]), np.arange(60.0)
    with pytest.raises(error, match=message):
        L1Regressor(**{"radius": 1.0, **options}).fit(X, y)


def test_missing_values_are_named_before_any_work():
    X = pd.DataFrame(integers()[0], columns=list("abcdefghijkl"))
    X.loc[3, "d"] = np.nan
    with pytest.raises(ValueError, match=r"contains NaN[^?]*'d'"):
        L1Regressor(radius=1).fit(X, np.arange(60.0))


def test_a_summary_tells_the_radius_and_what_is_proven():
    X, y = ar_problem(120, 40, 4, rho=0.5, snr=3.0)
    given = L1Regressor(radius=2.5, standardize=True).fit(X, y)
    radius, proof = given.summary().splitlines()[-2:]
    assert radius == "radius 2.5, of coefficients in units of column scale"
    for number in (f"{given.lower_bound_:.6g}", f"{given.objective_:.6g}", f"{given.gap_:.3g}"):
        assert number in proof
    X, y = load_diabetes(return_X_y=True)
    for rule, words in (("1se", "the smallest within one standard error of the best of"), ("best", "the best of")):
        found = L1Regressor(selection_rule=rule, standardize=True).fit(X, y)
        place = found.radii_.tolist().index(found.radius_)
        line = found.summary().splitlines()[-2]
        assert f", {words} {len(found.radii_)} by cross-validation: it scores " in line
        assert f"{found.scores_[place]:.4g} (± {found.score_errors_[place]:.2g})" in line
        assert ("; the best, " in line) == (rule == "1se")


# Runs can be watched and ended.


def test_a_callback_is_told_and_may_end_the_search():
    X, y = ar_problem(100, 50, 10)
    calls = []

    def ends(progress):
        calls.append(progress)
        return len(calls) == 3

    with pytest.warns(PaucaWarning, match="The callback asked to stop"):
        model = L1Regressor(radius=8, tol=1e-9, solver="pairwise", callback=ends).fit(X, y)
    assert (model.stop_, len(calls), model.n_iter_) == (Stop.CALLBACK, 3, 3)
    assert calls[0].size == 0
    assert calls[2].objective < calls[1].objective < calls[0].objective == calls[0].null_objective
    assert model.gap_ > 1e-9 * calls[0].null_objective


@pytest.mark.parametrize("radius", [8, "auto"])
def test_ctrl_c_keeps_what_was_found(radius, monkeypatch):
    monkeypatch.setattr("pauca.runs.run._interrupts", driver._Interrupts())
    X, y = ar_problem(100, 50, 10)

    def interrupt(progress):
        if progress.size >= 2:
            raise KeyboardInterrupt

    with pytest.warns(PaucaWarning, match="interrupted"):
        model = L1Regressor(radius=radius, tol=1e-9, callback=interrupt).fit(X, y)
    assert model.stop_ is Stop.INTERRUPTED
    assert np.abs(model.coef_).sum() <= model.radius_ * (1 + 1e-9)
    whole = L1Regressor(radius=model.radius_, tol=1e-6).fit(X, y)
    assert model.lower_bound_ <= whole.objective_ <= model.objective_ + 1e-12


def test_a_time_limit_and_too_few_steps_are_told():
    X, y = ar_problem(100, 50, 10)
    with pytest.warns(PaucaWarning, match=r"The gap is .*, above the required .*. The time limit was reached"):
        model = L1Regressor(radius=8, tol=1e-9, time_limit=1e-9, solver="forward").fit(X, y)
    assert model.n_iter_ == 2
    with pytest.warns(PaucaWarning, match="largest number of steps"):
        L1Regressor(radius=8, tol=1e-9, max_iter=5, solver="forward").fit(X, y)


def test_constant_columns_are_told():
    X, y = ar_problem(30, 4, 2)
    with pytest.warns(PaucaWarning, match="Constant columns were left out: 'x4'"):
        L1Regressor(radius=1).fit(np.column_stack([X, np.ones(30)]), y)


# What can be done with them.


def test_what_is_proven_survives_a_file(tmp_path):
    X, y = ar_problem(60, 10, 3)
    for model in (L1Regressor(radius=2).fit(X, y), L1Regressor().fit(X, y), L1Classifier(radius=2).fit(X, y > 0)):
        model.save(tmp_path / "model.json")
        again = pauca.load(tmp_path / "model.json")
        for name in ("gap_", "lower_bound_", "radius_", "n_iter_", "objective_"):
            assert getattr(again, name) == getattr(model, name)
            assert type(getattr(again, name)) is type(getattr(model, name))
        np.testing.assert_array_equal(again.scores_, model.scores_)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        size = model.path_.sizes[1]
        assert again.at(size).gap_ == model.at(size).gap_


def test_a_frame_with_the_columns_in_use_is_enough():
    X, y = ar_problem(60, 6, 2)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = L1Regressor(radius=1.0).fit(frame, y)
    used = model.get_feature_names_out()
    np.testing.assert_allclose(model.predict(frame[used]), model.predict(frame))
    assert model.summary().splitlines()[0].startswith(f"{model.k_} features of 6, objective")
    assert model.summary().splitlines()[0].endswith(" explained on the rows of the fit")


def test_x_is_left_alone():
    X, y = integers()
    for data in (X.copy(), sparse.csc_array(X)):
        held = data.data.copy() if sparse.issparse(data) else data.copy()
        for loss in ("squared_error", "huber"):
            L1Regressor(radius=2, loss=loss).fit(data, y)
        np.testing.assert_array_equal(held, data.data if sparse.issparse(data) else data)


@pytest.mark.parametrize("make", [L1Classifier, L1Regressor])
def test_the_order_of_rows_changes_rounding_only(make):
    """The last steps lower the objective by less than its rounding, and were thrown away by chance: 1.7e-8."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((60, 6))
        signal = X[:, :3] @ np.array([1.5, -1.0, 0.7])
        if make is L1Classifier:
            y, given = signal + rng.logistic(size=60) > 0, {"loss": "log_loss"}
        else:
            y, given = rng.poisson(np.exp(np.clip(signal, -4, 3))), {"loss": "poisson"}
        order = rng.permutation(60)
        first, second = (
            make(radius=1.0, standardize=True, tol=1e-10, **given).fit(X[rows], y[rows]).coef_
            for rows in (np.arange(60), order)
        )
        np.testing.assert_allclose(first, second, rtol=0, atol=1e-10 * np.abs(first).max())
