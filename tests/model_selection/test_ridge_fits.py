"""Models at several ridges, and their losses on held-out rows."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.model_selection import KFold

from pauca.constraints.limits import Limits
from pauca.constraints.units import Units
from pauca.losses import LogLoss, SquaredError
from pauca.methods import Forward
from pauca.model_selection import held_out, ridge_fits
from pauca.model_selection.folds import make_folds
from pauca.model_selection.held_out import FoldLosses, RowBlocks
from pauca.model_selection.ridge_fits import RidgeFits, fits_of_search, refitter
from pauca.objectives import newton_at_ridges
from pauca.runs.problem import LinearProblem, Target
from pauca.runs.run import Budget, Goal

RIDGES = [1e-3, 0.1, 1.0]


def searched(loss, ridge, n_rows=300):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 8)) @ (np.eye(8) + 0.3 * rng.standard_normal((8, 8)))
    y = X @ rng.standard_normal(8) + rng.standard_normal(n_rows)
    y = np.sign(y)[None] if loss.classifies else y[None]
    units = Units.columns(8)
    problem = LinearProblem(X, Target(y, loss, 1), Forward(), units, Limits(), None, ridge, True, loss, True)
    run = problem.begin(np.full(n_rows, 1 / n_rows))
    run.advance(Goal(6), Budget())
    return run, X, y[0]


@pytest.mark.parametrize("few", [True, False])
def test_what_a_search_has_changed_is_only_a_start_for_other_ridges(few, monkeypatch):
    if not few:
        monkeypatch.setattr(newton_at_ridges, "SHORT_ROWS", 10)
        monkeypatch.setattr(newton_at_ridges, "CHEAP_HESSIANS", 0)
    runs = [searched(LogLoss(), ridge) for ridge in (0.03, 3.0)]
    subset, X, y = runs[0][0].subset, *runs[0][1:]
    refit = refitter(subset, RIDGES, standardize=True)
    spread = X.std(axis=0)
    for path, (run, _, _) in enumerate(runs):  # one after the other, as the folds do it
        for size in (1, 2, 3, 5, 6):
            snapshot = run.history.best[size]
            found = refit(snapshot.support, path, snapshot)
            alone = refitter(subset, RIDGES, standardize=True)(snapshot.support)
            np.testing.assert_array_equal(found.columns, alone.columns)
            values = []
            for fits in (found, alone):
                scores = fits.intercept + fits.coef[:, 0] @ X[:, fits.columns].T
                penalty = np.sum((fits.coef[:, 0] * spread[fits.columns]) ** 2, axis=1)
                values.append(LogLoss().value(y, scores).mean(axis=1) + 0.5 * np.array(RIDGES) * penalty)
            np.testing.assert_allclose(*values, rtol=3e-7)


def test_at_the_ridge_of_the_search_refits_start_from_its_models(monkeypatch):
    starts = []

    def watched(loss, y, weights, columns, penalty, start, *others):
        starts.append(start)
        return minimise_at_ridges(loss, y, weights, columns, penalty, start, *others)

    minimise_at_ridges = ridge_fits.minimise_at_ridges
    monkeypatch.setattr(ridge_fits, "minimise_at_ridges", watched)
    run, _, _ = searched(LogLoss(), 0.1)
    refit = refitter(run.subset, [0.1], standardize=True)
    for size in (2, 3, 5):
        snapshot = run.history.best[size]
        refit(snapshot.support, 0, snapshot)
        if size > 2:  # of the empty model no coefficients are known that would tell by what others change
            np.testing.assert_allclose(starts[-1][0, 1:], snapshot.coef[0], rtol=1e-3)


def test_the_models_of_a_search_are_those_of_refits_at_its_ridge():
    run, _, _ = searched(SquaredError(), 0.1)
    refit = refitter(run.subset, [0.1], standardize=True)
    for snapshot in run.history.best.values():
        found, expected = fits_of_search(run.subset, snapshot), refit(snapshot.support)
        np.testing.assert_array_equal(found.columns, expected.columns)
        np.testing.assert_allclose(found.coef, expected.coef, rtol=1e-9)
        np.testing.assert_allclose(found.intercept, expected.intercept, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", [SquaredError(), LogLoss()])
def test_losses_of_held_out_rows_add_up_to_those_of_their_blocks(loss, monkeypatch):
    monkeypatch.setattr(held_out, "LOSS_NUMBERS", 1 << 9)
    monkeypatch.setattr(held_out, "SCORED_NUMBERS", 1 << 11)
    monkeypatch.setattr(held_out, "MOST_BLOCKS", 90)
    rng = np.random.default_rng(1)
    X, weights = rng.standard_normal((1000, 4)), rng.random(1000)
    weights /= weights.sum()
    target = Target(np.sign(X[:, :1].T), loss, 1)
    folds = make_folds(KFold(4, shuffle=True, random_state=0), target.y[0], None, weights, classifies=loss.classifies)
    blocks = RowBlocks.of(weights, None, folds)
    models = [
        RidgeFits(np.array(columns, dtype=np.intp), rng.standard_normal((3, 1, len(columns))), rng.random((3, 1)))
        for columns in ([], [1], [0, 2, 3])
    ]
    for fold in folds:
        measure = FoldLosses(SimpleNamespace(X=X, target=target, measure=loss), fold, blocks)
        for model, sums in zip(models, measure.sums(models), strict=True):
            scores = model.intercept + model.coef[:, 0] @ X[fold.test][:, model.columns].T
            rows = loss.held_out(target.y[:, fold.test], scores) * weights[fold.test]
            own = measure.blocks[measure.weight > 0]
            expected = [np.bincount(blocks.block[fold.test], one)[own] for one in rows]
            np.testing.assert_allclose(sums[:, : len(own)], expected, rtol=1e-12)
