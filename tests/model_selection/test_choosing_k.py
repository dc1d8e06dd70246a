"""Choosing k: folds against fits on their own rows, rules by hand, and what must not change the answer."""

import re
import signal
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, StratifiedKFold, TimeSeriesSplit

from pauca import PaucaWarning, SparseClassifier, SparseRegressor
from pauca.losses import Hinge, Huber, LogLoss, Multinomial, Poisson, SquaredError, SquaredHinge
from pauca.methods import Exchange
from pauca.model_selection import rules
from pauca.model_selection.folds import make_folds
from pauca.model_selection.grids import SIZE_GROWTH, SizeRange, size_range_for
from pauca.model_selection.held_out import WRONG_LABEL, FoldLosses, RowBlocks
from pauca.model_selection.ridge_fits import RidgeFits
from pauca.model_selection.rules import choose_by_criterion, choose_by_folds
from pauca.runs import run as driver
from pauca.runs.problem import Target


def table(n=120, d=12, k=3, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X[:, :k] @ np.arange(2, 2 + k) + noise * rng.standard_normal(n)


def target(name, X, rng):
    score = 1.5 * X[:, 0] - X[:, 1]
    if name == "poisson":
        return rng.poisson(np.exp(0.5 * score)).astype(float)
    if name == "log_loss":
        return np.where(score + rng.logistic(size=len(X)) > 0, "yes", "no")
    if name == "multinomial":
        return np.digitize(score + 2.0 * rng.standard_normal(len(X)), [-1, 1])
    return score + rng.standard_normal(len(X))


def losses_by_hand(name, model, X, y):
    """Mean loss of every size of a fitted path on some rows."""
    found = []
    for m in model.path_:
        scores = np.atleast_1d(m.intercept)[:, None] + np.atleast_2d(m.coef) @ X[:, m.support].T
        if name == "multinomial":
            value = Multinomial().value(np.searchsorted(model.classes_, y).astype(float), scores)
        elif name == "log_loss":
            value = LogLoss().value(np.where(y == "yes", 1.0, -1.0), scores[0])
        else:
            value = {"poisson": Poisson(), "squared_error": SquaredError()}[name].value(y, scores[0])
        found.append(value.mean())
    return np.array(found)


@pytest.mark.parametrize("form", [np.asarray, sparse.csc_array])
@pytest.mark.parametrize("name", ["squared_error", "poisson", "log_loss", "multinomial"])
def test_every_fold_is_the_path_on_its_own_rows(name, form):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 6))
    y = target(name, X, rng)
    kind = SparseClassifier if name in {"log_loss", "multinomial"} else SparseRegressor
    options = {"loss": name} if name in {"poisson", "squared_error"} else {}
    splits = list(KFold(3, shuffle=True, random_state=1).split(X))
    choice = kind(k=range(5), cv=splits, ridge=0, **options).fit(form(X), y).path_.choice
    losses = np.array(
        [losses_by_hand(name, kind(k=4, **options).fit(X[train], y[train]), X[test], y[test]) for train, test in splits]
    )
    of_folds, of_all = 1 - losses / losses[:, :1], 1 - losses.mean(axis=0) / losses[:, 0].mean()
    np.testing.assert_allclose(choice.fold_scores, of_folds, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(choice.mean, of_all, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(choice.fold_scores[:, 0], np.zeros(3))
    assert (choice.mean[0], choice.standard_error[0]) == (0.0, 0.0)


def test_no_fold_explains_more_than_all_of_its_own_rows():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 3))
    exposure = np.exp(rng.normal(3, 2, 40))
    y = rng.poisson(exposure * np.exp(2 * X[:, 0] - 1))
    choice = SparseRegressor(loss="poisson", k=range(4)).fit(X, y, exposure=exposure).path_.choice
    assert choice.fold_scores.max() <= 1.0
    assert choice.fold_scores[:, 1].min() > 0.2


def test_errors_of_the_share_explained_are_those_of_a_ratio():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 6))
    y = target("squared_error", X, rng)
    splits = list(KFold(3, shuffle=True, random_state=1).split(X))
    choice = SparseRegressor(k=range(5), cv=splits, ridge=0).fit(X, y).path_.choice
    losses = np.zeros((5, 90))
    for train, test in splits:
        for m in SparseRegressor(k=4).fit(X[train], y[train]).path_:
            losses[m.size, test] = (y[test] - m.intercept - X[test][:, m.support] @ m.coef) ** 2
    total = losses.sum(axis=1, keepdims=True)
    shares = 1 - (total - losses) / (total[0] - losses[0])  # one row left out at a time
    jackknife = np.sqrt(89 / 90 * ((shares - shares.mean(axis=1, keepdims=True)) ** 2).sum(axis=1))
    np.testing.assert_allclose(choice.standard_error, jackknife, rtol=0.1, atol=1e-12)
    exact = SparseRegressor(cv=splits).fit(X, X[:, 0]).path_.choice
    assert exact.standard_error[exact.sizes == 1] < 1e-6  # however the constant's loss varies from row to row


def test_rows_held_out_are_never_seen():
    X, y = table()
    train, test = np.arange(80), np.arange(80, 120)
    wild = X.copy()
    wild[test] = 1e6 * np.random.default_rng(1).standard_normal((40, 12))
    clean = SparseRegressor(k=3).fit(X[train], y[train])
    seen = []

    def spy(model, rows, target):
        seen.append(model.coef_.copy())
        return 0.0

    SparseRegressor(k=[3], ridge=0, cv=[(train, test)], scoring=spy).fit(wild, y)
    np.testing.assert_allclose(seen[-1], clean.coef_, rtol=1e-9)


def test_weights_count_in_fits_and_in_scores():
    X, y = table()
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    folds = np.arange(len(y)) % 4
    splits = [(np.flatnonzero(folds != f), np.flatnonzero(folds == f)) for f in range(4)]
    weighted = SparseRegressor(k=range(12), cv=splits).fit(X, y, sample_weight=weights).path_.choice
    rows = np.repeat(np.arange(len(y)), weights)
    again = [(np.flatnonzero(folds[rows] != f), np.flatnonzero(folds[rows] == f)) for f in range(4)]
    repeated = SparseRegressor(k=range(12), cv=again).fit(X[rows], y[rows]).path_.choice
    np.testing.assert_allclose(weighted.fold_scores, repeated.fold_scores, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("rule", "errors"), [("1se", 1.0), (0.5, 0.5), (2, 2.0)])
def test_the_rule_of_paired_standard_errors_by_hand(rule, errors):
    """What counts is the spread of the differences to the best, not that of the scores."""
    best, difference = np.array([0.1, 0.9, 0.5]), np.array([0.03, 0.05, 0.04])
    sizes, error = np.arange(1, 4), difference.std(ddof=1) / np.sqrt(3)
    for shift, expected in [(0.99, 2), (1.01, 3)]:
        near = best - difference + difference.mean() - shift * errors * error
        scores = np.column_stack([best - 1, near, best])
        assert choose_by_folds(sizes, scores, "best", "s").chosen == 3
        assert choose_by_folds(sizes, scores, rule, "s").chosen == expected


def test_equal_scores_go_to_the_smaller_size():
    scores = np.array([[0.1, 0.3, 0.3], [0.1, 0.3, 0.3]])
    assert choose_by_folds(np.array([0, 2, 4]), scores, "best", "s").chosen == 2
    assert choose_by_criterion("aic", [5.0, 2.0, 0.0], [1, 2, 3], [1, 2, 3], n_rows=9, n_units=3).chosen == 2


def test_noise_is_said_to_be_noise():
    chosen = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((150, 30)), rng.standard_normal(150)
        with pytest.warns(PaucaWarning, match="No feature (clearly )?helps on held-out") if seed == 0 else _quiet():
            model = SparseRegressor().fit(X, y)
        chosen.append(model.k_)
        if model.k_ == 0:
            assert re.search("No feature (clearly )?helps on held-out rows", model.summary())
            np.testing.assert_allclose(model.predict(X), y.mean())
    assert chosen.count(0) >= 3


def _quiet():
    import contextlib
    import warnings

    stack = contextlib.ExitStack()
    stack.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore")
    return stack


def test_a_few_strong_features_are_found():
    for seed in range(2):
        X, y = table(seed=seed)
        model = SparseRegressor().fit(X, y)
        assert {0, 1, 2} <= set(model.support_.tolist())
        assert model.path_.choice.chosen == model.k_ <= 5
        assert SparseRegressor(selection_rule="1se").fit(X, y).support_.tolist() == [0, 1, 2]


@pytest.mark.filterwarnings("ignore:The largest size")
def test_the_search_goes_on_while_more_is_better():
    """Sixty columns that all count: the first look at ten sizes is not the last."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 60))
    y = X @ rng.uniform(0.5, 1.5, 60) + 0.5 * rng.standard_normal(400)
    model = SparseRegressor(method="forward", selection_rule="best").fit(X, y)
    assert model.k_ >= 55


@pytest.mark.filterwarnings("ignore:The largest size")
def test_a_first_minimum_is_not_the_end_while_larger_sizes_may_be_as_good(monkeypatch):
    """One strong column and 39 weak ones: the first of these help too little to be seen, all of them by far."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((120, 40))
    truth = np.array([3.35] + 39 * [0.35])
    y = X @ truth + 2.0 * rng.standard_normal(120)

    def fitted():
        model = SparseRegressor(method="forward", cv=3, ridge=0).fit(X, y)
        return model.k_, model.path_.choice.sizes.max(), np.linalg.norm(model.coef_ - truth)

    size, largest, error = fitted()
    assert size > 20
    assert largest == 40
    monkeypatch.setattr(rules, "WORTH_A_LOOK", np.inf)
    first_size, first_largest, first_error = fitted()
    assert first_size < 14
    assert first_largest == 20
    assert error < first_error


def test_classes_are_compared_further_too_unless_the_answer_is_a_constant(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 40))
    y = X @ np.array([4.0] + 39 * [0.5]) + rng.logistic(size=150) > 0

    def fitted(X, y, ridge):
        model = SparseClassifier(cv=3, ridge=ridge).fit(X, y)
        return model.k_, model.path_.choice.sizes.max()

    size, largest = fitted(X, y, 0.01)
    assert size > 20
    assert largest == 40
    rng = np.random.default_rng(19)
    with pytest.warns(PaucaWarning, match="No feature clearly helps"):
        assert fitted(rng.standard_normal((80, 40)), rng.random(80) < 0.5, 0.1) == (0, 20)
    monkeypatch.setattr(rules, "WORTH_A_LOOK", np.inf)
    assert fitted(X, y, 0.01)[1] == 20


def test_sizes_that_may_be_as_good_count_only_if_something_may_be_gained():
    rng = np.random.default_rng(0)
    differences = rng.standard_normal((6, 50))
    differences -= differences.mean(axis=1, keepdims=True)
    for spread, expected in [(1.0, 5), (0.01, 2)]:
        # Sizes 2 to 5 are equal but for their spread, which is that of the standard error.
        losses = 1.0 + np.array([2.0, 1.0, 0.0, 0.0, 0.0, 0.0])[:, None] + spread * differences
        found = rules.choose(rules.HeldOutLosses(losses[None, None], np.ones(50)), np.arange(6), 0.25)
        assert (found.leading, found.promising) == (2, expected)


def test_how_far_to_look():
    sizes = SizeRange.open(1000)
    assert sizes.largest == 20
    assert sizes.further(best=14, reached=20) is None
    assert sizes.further(best=15, reached=20).largest == 30
    assert sizes.further(best=15, reached=20).further(best=29, reached=30).largest == 46
    assert sizes.further(best=15, reached=19) is None
    assert SizeRange.open(4).further(best=4, reached=4) is None
    assert SizeRange.given((1, 5)).further(best=5, reached=5) is None


def test_only_the_sizes_given_are_compared_and_all_are_kept():
    X, y = table()
    model = SparseRegressor(k=[2, 5, 9]).fit(X, y)
    assert model.path_.choice.sizes.tolist() == [2, 5, 9]
    assert model.k_ in {2, 5, 9}
    assert model.path_.sizes == list(range(10))
    records = {record["size"]: record for record in model.path_.table()}
    assert np.isnan(records[3]["score"])
    assert records[5]["score"] == model.path_.choice.mean[1]


def test_a_scorer_of_scikit_learn_is_what_it_says():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 5))
    y = target("log_loss", X, rng)
    cv = StratifiedKFold(3)
    options = {"cv": cv, "scoring": "roc_auc", "selection_rule": "best", "ridge": 0}
    choice = SparseClassifier(k=[1, 2, 3], **options).fit(X, y).path_.choice
    for fold, (train, test) in enumerate(cv.split(X, y)):
        for place, size in enumerate([1, 2, 3]):
            model = SparseClassifier(k=size).fit(X[train], y[train])
            expected = roc_auc_score(y[test], model.decision_function(X[test]))
            assert choice.fold_scores[fold, place] == pytest.approx(expected, abs=1e-12)
    assert choice.scoring == "roc_auc"
    assert "roc_auc" in choice.message


def test_rows_of_a_group_stay_together():
    """Rows come in pairs of copies; folds that tear them apart would reward memory."""
    X, y = table(n=30, d=25, k=1, noise=3.0)
    X, y, groups = np.repeat(X, 2, axis=0), np.repeat(y, 2), np.repeat(np.arange(30), 2)
    splits = list(GroupKFold(5).split(X, y, groups))
    together = SparseRegressor(k=range(1, 8)).fit(X, y, groups=groups).path_.choice
    by_hand = SparseRegressor(k=range(1, 8), cv=splits).fit(X, y).path_.choice
    np.testing.assert_allclose(together.fold_scores, by_hand.fold_scores, atol=1e-12)
    with pytest.raises(ValueError, match="group of every row: there are 60 rows and 30 groups"):
        SparseRegressor().fit(X, y, groups=np.arange(30))


def test_time_goes_forward():
    X, y = table()
    choice = SparseRegressor(k=range(1, 5), cv=TimeSeriesSplit(3)).fit(X, y).path_.choice
    assert choice.fold_scores.shape == (3, 4)


@pytest.mark.parametrize(
    "estimator", [SparseRegressor(), SparseRegressor(loss="huber", k=range(1, 6), ridge=[0, 0.1], method="forward")]
)
def test_jobs_do_not_change_the_answer(estimator):
    X, y = table()
    one = estimator.set_params(n_jobs=1).fit(X, y).path_.choice
    two = estimator.set_params(n_jobs=2).fit(X, y).path_.choice
    np.testing.assert_allclose(one.fold_scores, two.fold_scores, rtol=1e-12, atol=1e-12)


def test_a_criterion_that_chooses_nothing_says_so():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((100, 4)), rng.gamma(2.0, size=100)
    with pytest.warns(PaucaWarning, match="No feature lowers the BIC: the model is a constant."):
        model = SparseRegressor(loss="gamma", criterion="bic").fit(X, y)
    assert model.k_ == 0
    assert "No feature lowers the BIC" in model.summary()


@pytest.mark.parametrize(("criterion", "price"), [("aic", 2.0), ("bic", np.log(120))])
def test_criteria_of_least_squares_by_hand(criterion, price):
    X, y = table()
    model = SparseRegressor(criterion=criterion, k=range(8)).fit(X, y)
    squares = [np.sum((y - model.at(size).predict(X)) ** 2) for size in range(8)]
    expected = 120 * (np.log(2 * np.pi * np.array(squares) / 120) + 1) + price * np.arange(1, 9)
    np.testing.assert_allclose(model.path_.choice.mean, expected, rtol=1e-10)
    assert model.k_ == np.argmin(expected)
    assert model.path_.table()[3][criterion] == pytest.approx(expected[3])


def test_criteria_of_likelihoods_by_hand():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 5))
    y = target("log_loss", X, rng)
    model = SparseClassifier(criterion="bic", k=range(1, 4)).fit(X, y)
    for place, size in enumerate([1, 2, 3]):
        judge = LogisticRegression(C=np.inf, tol=1e-10).fit(X[:, model.at(size).support_], y)
        deviance = 2 * log_loss(y, judge.predict_proba(X[:, model.at(size).support_]), normalize=False)
        assert model.path_.choice.mean[place] == pytest.approx(deviance + (size + 1) * np.log(150), rel=1e-6)


def test_the_extended_criterion_asks_more_of_many_columns():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((60, 400)), rng.standard_normal(60)
    with pytest.warns(PaucaWarning, match="largest size that was compared, 5, was chosen"):
        loose = SparseRegressor(criterion="aic", k=range(6), method="forward").fit(X, y)
    with pytest.warns(PaucaWarning, match="No feature lowers the extended BIC"):
        strict = SparseRegressor(criterion="ebic", k=range(6), method="forward").fit(X, y)
    assert strict.k_ == 0 < loose.k_


@pytest.mark.parametrize("loss", ["huber", Huber(1.0)])
def test_losses_without_a_likelihood_have_no_criterion(loss):
    with pytest.raises(ValueError, match=r"Huber is not a likelihood.*cross-validation"):
        SparseRegressor(criterion="bic", loss=loss).fit(*table())


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_margins_are_chosen_by_folds(loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 6))
    y = target("log_loss", X, rng)
    assert 1 <= SparseClassifier(k=range(1, 5), loss=loss, ridge=0.01, method="forward").fit(X, y).k_ <= 4
    with pytest.raises(ValueError, match="not a likelihood"):
        SparseClassifier(criterion="aic", loss=loss).fit(X, y)


def test_the_callback_is_told_of_folds_and_can_end_them_all():
    X, y = table()
    reported = []
    model = SparseRegressor(k=range(1, 6), cv=3, callback=reported.append).fit(X, y)
    assert {progress.fold for progress in reported} == {None, 0, 1, 2}
    assert {progress.n_folds for progress in reported} == {3}
    assert model.path_.choice.fold_scores.shape == (3, 5)

    with pytest.warns(PaucaWarning, match="No size was scored on held-out rows before the callback"):
        ended = SparseRegressor(k=range(1, 6), callback=lambda progress: progress.size >= 2).fit(X, y)
    assert ended.stop_ == "callback"
    assert ended.k_ == 2
    assert np.isfinite(ended.predict(X)).all()


def test_a_time_limit_leaves_a_model():
    X, y = table(n=300, d=200)
    with pytest.warns(PaucaWarning, match="before the time limit"):
        model = SparseRegressor(time_limit=1e-6).fit(X, y)
    assert model.stop_ == "time"
    assert model.k_ in model.path_.sizes
    assert np.isfinite(model.predict(X)).all()


def test_always_is_kept_in_every_fold():
    X, y = table()
    model = SparseRegressor(always=[7, 8]).fit(X, y)
    assert {7, 8} <= set(model.support_)
    assert model.path_.choice.sizes.min() >= 2


def test_a_column_that_is_constant_in_a_fold():
    X, y = table(n=40, d=4, k=1)
    X[:, 3] = 0.0
    X[0, 3] = 1.0
    model = SparseRegressor(k=range(1, 5), cv=KFold(4), always=[3]).fit(X, y)
    assert model.path_.choice.fold_scores.shape == (4, 4)


def test_a_class_that_is_missing_in_a_fold():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4))
    y = np.repeat(["a", "b"], 20)
    with _quiet():
        model = SparseClassifier(k=range(1, 3), cv=KFold(2)).fit(X, y)
    assert np.isfinite(model.path_.choice.mean).all()


def test_folds_without_weight_are_refused():
    X, y = table(n=20)
    weights = np.r_[np.ones(10), np.zeros(10)]
    with pytest.raises(ValueError, match="no row to score, has weight"):
        SparseRegressor(cv=list(KFold(2).split(X))).fit(X, y, sample_weight=weights)
    with pytest.raises(ValueError, match="at least two rows"):
        SparseRegressor().fit(X[:1], y[:1])


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_all_folds(monkeypatch):
    monkeypatch.setattr("pauca.runs.run._interrupts", driver._Interrupts())
    X, y = table()
    reported = []

    def press(progress):
        reported.append(progress.fold)
        if progress.fold == 1:
            signal.raise_signal(signal.SIGINT)

    with _quiet():
        model = SparseRegressor(k=range(1, 6), callback=press).fit(X, y)
    assert set(reported) == {None, 0, 1}
    assert np.isfinite(model.predict(X)).all()


def test_a_callback_may_answer_with_a_bool_of_numpy():
    X, y = table()
    with pytest.warns(PaucaWarning, match="the callback asked to stop"):
        model = SparseRegressor(k=range(1, 6), callback=lambda progress: np.bool_(progress.size >= 2)).fit(X, y)
    assert model.stop_ == "callback"


def test_sizes_end_at_half_of_the_rows_and_far_sizes_are_thinned():
    assert size_range_for("auto", 1000, 60).most == 30
    assert size_range_for("auto", 12, 60).most == 12
    far = SizeRange(100, None, 200)
    assert far.compared_up_to(100)[:24] == [*range(21), 22, 24, 26]
    assert far.compared_up_to(100)[-3:] == [86, 94, 100]


def test_wrong_labels_are_those_of_other_classes():
    rng = np.random.default_rng(0)
    codes, scores = np.array([0, 2, 1]), np.where(rng.random((3, 3)) < 0.5, -40.0, 1.0)
    outputs = np.where(np.arange(3)[:, None] == codes, 1.0, -1.0)
    for loss, form in ((Multinomial(), lambda c: c.astype(float)), (SquaredHinge(), None), (Hinge(), None)):
        by_hand = np.zeros(3)
        for shift in (1, 2):
            other = (codes + shift) % 3
            y = form(other) if form else np.where(np.arange(3)[:, None] == other, 1.0, -1.0)
            by_hand += np.atleast_2d(loss.held_out(y, scores)).sum(axis=0) / 2
        found = loss.mislabelled(form(codes) if form else outputs, scores)
        np.testing.assert_allclose(np.atleast_2d(found).sum(axis=0), by_hand)
    y, a = np.array([1.0, -1.0]), np.array([3.0, 2.0])
    np.testing.assert_allclose(LogLoss().mislabelled(y, a), LogLoss().value(-y, a))


@pytest.mark.parametrize("cv", [KFold(4), ShuffleSplit(1, test_size=10, random_state=0)])
def test_part_of_a_row_with_a_wrong_label_counts_among_the_rows_held_out(cv):
    X = np.random.default_rng(0).standard_normal((40, 2))
    target = Target(np.sign(X[:, :1].T), LogLoss(), 1)
    weights = np.full(40, 1 / 40)
    folds = make_folds(cv, target.y[0], None, weights, classifies=True)
    blocks = RowBlocks.of(weights, None, folds)
    problem = SimpleNamespace(X=X, target=target, measure=LogLoss())
    slopes = np.array([2.0, 0.5, -1.0])  # of three ridges
    model = RidgeFits(np.array([0]), slopes[:, None, None], np.zeros((3, 1)))
    charge = sum(FoldLosses(problem, fold, blocks).sums([model])[0][:, -1] for fold in folds)
    total = sum(FoldLosses(problem, fold, blocks).weight.sum() for fold in folds)
    rows = np.concatenate([fold.test for fold in folds])
    wrong = LogLoss().value(-target.y[0, rows], slopes[:, None] * X[rows, 0]).mean(axis=1)
    np.testing.assert_allclose(charge / total, WRONG_LABEL * wrong / len(rows))


def test_the_choice_is_the_same_with_the_names_of_two_classes_swapped():
    X, y = target_of_few_rows()
    first, second = (SparseClassifier(cv=KFold(5)).fit(X, one) for one in (y, ~y))
    np.testing.assert_allclose(first.path_.choice.surface.standard_error, second.path_.choice.surface.standard_error)
    assert (first.k_, first.ridge_, first.search_ridge_) == (second.k_, second.ridge_, second.search_ridge_)


def target_of_few_rows():
    X = np.random.default_rng(3).standard_normal((60, 8))
    return X, X[:, 0] + 0.3 * X[:, 1] > 0.8


def test_without_an_intercept_sizes_and_ridges_are_compared():
    X = np.random.default_rng(0).standard_normal((120, 5))
    model = SparseClassifier(fit_intercept=False).fit(X, X[:, 0] + 0.5 * X[:, 1] > 0)
    assert model.intercept_ == 0
    assert 0 in model.support_


def test_where_the_method_ends_sooner_than_the_paths_compared_the_model_chosen_is_there():
    """Within a budget exchange may take one dear feature where forward selection took several."""
    for seed in range(7, 27):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((150, 12))
        X[:, 6:] = X[:, :6] + 0.6 * rng.standard_normal((150, 6))
        y = X[:, :6].sum(axis=1) + rng.logistic(size=150) > 0
        costs, budget = rng.integers(1, 6, 12) * 1.0, float(rng.integers(6, 14))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PaucaWarning)
            model = SparseClassifier(costs=costs, budget=budget, cv=3, ridge=[0.01], search_ridge=0.03).fit(X, y)
        assert model.k_ in model.path_.sizes
        assert costs[model.support_].sum() <= budget


SWAPS_ALONE = Exchange(scouts=(), detour=0)


@pytest.mark.filterwarnings("ignore:The largest size")
@pytest.mark.parametrize(("kind", "quick"), [(SparseClassifier, "forward"), (SparseRegressor, SWAPS_ALONE)])
def test_the_path_on_all_rows_is_that_of_the_method(kind, quick):
    """Sizes are compared on paths of a quicker search; what is kept is the path of the method that was asked for."""
    X, y = alike_columns() if kind is SparseRegressor else related_columns()
    chosen = kind(k=range(8), ridge=[0.001], search_ridge=0.001, cv=2).fit(X, y)
    plain, quicker = (kind(7, ridge=0.001, method=method).fit(X, y) for method in ("exchange", quick))
    assert [m.objective for m in chosen.path_] == pytest.approx([m.objective for m in plain.path_])
    assert any(m.objective < 0.99 * f.objective for m, f in zip(plain.path_, quicker.path_, strict=True))


@pytest.mark.filterwarnings("ignore:The largest size")
def test_sizes_are_compared_on_paths_of_swaps_alone():
    """For squared error; with a budget, or more columns than rows, folds are searched by exchange itself."""
    X, y = alike_columns()
    splits = list(KFold(2).split(X))
    options = {"k": range(1, 8), "ridge": 0, "cv": splits}
    scores = {
        method: SparseRegressor(method=method, **options).fit(X, y).path_.choice.fold_scores
        for method in ("exchange", SWAPS_ALONE)
    }
    np.testing.assert_allclose(scores["exchange"], scores[SWAPS_ALONE])
    for rows, limits in ((60, {"costs": np.ones(12), "budget": 3.0}), (11, {})):
        run = SparseRegressor(k=3, **limits).fit(X[:rows], y[:rows])._training_data.searches[0.0]
        assert run.method.for_comparison(run, SIZE_GROWTH) is run.method


def related_columns():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 12))
    X[:, 6:] = 0.5 * X[:, :6] @ rng.standard_normal((6, 6)) + 0.5 * rng.standard_normal((200, 6))
    return X, X[:, :4].sum(axis=1) + 0.3 * rng.logistic(size=200) > 0


def alike_columns():
    """A table on which swaps alone end above exchange."""
    rng = np.random.default_rng(8)
    X = 0.3 * rng.standard_normal((60, 12)) + rng.standard_normal((60, 3)) @ rng.standard_normal((3, 12))
    return X, X @ rng.standard_normal(12) + 0.5 * rng.standard_normal(60)


def test_what_is_added_for_caution_is_chosen_by_and_not_shown():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 5))
    y = X[:, 0] > 0
    splits = list(KFold(3).split(X))
    model = SparseClassifier(k=range(3), cv=splits, ridge=[1e-4, 1.0], search_ridge=0.1, method="forward")
    surface = model.fit(X, y).path_.choice.surface
    losses = np.zeros((2, 3))
    for train, test in splits:
        for r, ridge in enumerate((1e-4, 1.0)):
            path = SparseClassifier(2, ridge=ridge, search_ridge=0.1, method="forward").fit(X[train], y[train])
            losses[r] += losses_by_hand("log_loss", path, X[test], np.where(y[test], "yes", "no")) / 3
    np.testing.assert_allclose(surface.mean[0], 1 - losses / losses[0, 0], atol=1e-4)


def test_all_sizes_that_are_given_are_compared():
    """Although by default sizes beyond 20 are compared in steps."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 26))
    y = X @ rng.uniform(-1, 1, 26) + rng.standard_normal(120) > 0
    options = {"ridge": 0.1, "cv": 2}
    assert SparseClassifier(k=[21, 23], **options).fit(X, y).path_.choice.sizes.tolist() == [21, 23]
    by_default = SparseClassifier(selection_rule="best", **options).fit(X, y).path_
    assert by_default.choice.sizes.tolist()[-4:] in ([17, 18, 19, 20], [20, 22, 24, 26])
    assert by_default.sizes == list(range(max(by_default.sizes) + 1))


def test_the_last_size_of_a_path_that_ends_between_steps_is_compared():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 25))
    y = X @ rng.uniform(1, 2, 25) + 0.1 * rng.standard_normal(300)
    model = SparseRegressor(selection_rule="best").fit(X, y)
    assert model.path_.choice.sizes.tolist()[-4:] == [20, 22, 24, 25]
    assert model.k_ == 25
