"""Several outputs in one ball, where the features of the coordinates in use need be neither ascending nor distinct."""

import numpy as np
import pytest
from l1_judges import best_in_ball_by_gradients
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler

from pauca import L1Classifier, L1Regressor, PaucaWarning, Stop
from pauca.design import make_design
from pauca.l1.certificate import SOLVERS
from pauca.l1.corrective import corrective_steps, make_solver
from pauca.l1.objective import BallObjective
from pauca.losses import Huber, Multinomial

RADII = (0.5, 2.0, 8.0)
TOL = 1e-5


def signals(outputs, d, n=80):
    """Columns, some of them copies, and noisy scores of all outputs, of which each has columns of its own."""
    rng = np.random.default_rng(outputs)
    X = rng.standard_normal((n, d))
    X[:, -3:] = X[:, :3]
    w = np.zeros((outputs, d))
    for c in range(outputs):
        w[c, rng.choice(d, 3, replace=False)] = 2.0
    return X, X @ w.T + rng.gumbel(size=(n, outputs))


def classes(n_classes, d):
    X, found = signals(n_classes, d)
    return X, found.argmax(axis=1)


def assert_best(model, least):
    required = model.tol * model.path_[0].objective
    assert model.stop_ is Stop.CERTIFIED
    assert model.gap_ <= required
    assert least - 1e-7 <= model.objective_ <= least + required
    assert model.lower_bound_ <= least + 1e-7


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize(("n_classes", "d"), [(3, 200), (10, 30)])
def test_classes_come_to_the_best_in_the_ball(n_classes, d, radius):
    X, y = classes(n_classes, d)
    least = best_in_ball_by_gradients(Multinomial(), X, y.astype(float), n_classes, radius)
    for solver in SOLVERS if radius == RADII[1] else SOLVERS[:1]:
        tol = TOL if solver == "corrective" else 0.02
        assert_best(L1Classifier(radius=radius, tol=tol, solver=solver).fit(X, y), least)


@pytest.mark.parametrize("radius", RADII)
def test_numbers_come_to_the_best_in_the_ball(radius):
    X, y = signals(4, 30)
    y -= np.median(y)
    least = best_in_ball_by_gradients(Huber(1.0), X, y.T, 4, radius)
    assert_best(L1Regressor(radius=radius, loss=Huber(1.0), tol=TOL).fit(X, y), least)


@pytest.mark.parametrize(("n_classes", "d"), [(3, 200), (10, 30)])
def test_what_corrective_steps_prove_is_proven_of_their_models(n_classes, d):
    X, y = classes(n_classes, d)
    design = make_design(X, np.full(len(X), 1 / len(X)), center=True)
    ball = BallObjective.of(design, y.astype(float), Multinomial(), n_outputs=n_classes)
    for radius in RADII:
        solver = make_solver(ball, ball.loss)
        for step in corrective_steps(ball, ball.loss, solver, radius, ball.null, TOL, None):
            found = ball.scores(step.iterate)
            exact = ball.duality_gap(
                ball.loss, radius, step.iterate, found, ball.gradient(ball.loss, found, step.iterate)
            )
            assert step.value == pytest.approx(exact.value, rel=1e-12)
            assert step.gap == pytest.approx(exact.gap, abs=1e-12)


def test_the_radius_for_ten_classes_is_no_smaller_than_they_need():
    X, y = load_digits(return_X_y=True)
    X, y = X[:200, 1::2], y[:200]
    X = X[:, X.std(axis=0) > 0]
    model = L1Classifier(standardize=True, cv=3).fit(X, y)
    penalised = SGDClassifier(loss="log_loss", penalty="l1", alpha=1e-3, random_state=0)
    Z = StandardScaler().fit_transform(X)
    assert model.score(X, y) >= penalised.fit(Z, y).score(Z, y) - 0.03
    assert len(model.radii_) > 5
    assert model.gap_ <= model.tol * model.path_[0].objective


def test_a_search_that_does_not_converge_says_so_and_by_how_much():
    X, y = classes(3, 30)
    with pytest.warns(PaucaWarning, match=r"did not converge.*raise tol\.") as told:
        model = L1Classifier(radius=8.0, tol=1e-300).fit(X, y)
    assert model.stop_ is Stop.STALLED
    assert 0 < model.gap_ < 1e-12
    assert str(told[0].message).startswith(f"The gap is {model.gap_:.3g}, above")
