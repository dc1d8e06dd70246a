"""Models in an l1 ball: what is proven of them holds, and the steps keep the rates of their theorems."""

import itertools
import warnings
from functools import cache

import numpy as np
import pytest
from ball_problems import ALL, best, estimator
from judges import LOSSES, PIECEWISE, SMOOTH, correlated, objective, refit, scores, shares
from l1_judges import best_in_ball, best_in_ball_by_lp
from sklearn.linear_model import Lasso, LinearRegression

import pauca
from pauca import L1Classifier, L1Regressor, PaucaWarning, Stop
from pauca.design import make_design
from pauca.l1.certificate import SOLVERS, Search, SearchSettings
from pauca.l1.frank_wolfe import frank_wolfe_steps
from pauca.l1.objective import BallObjective, Iterate, best_intercept_shifts
from pauca.l1.quadratic_in_ball import minimise_in_ball
from pauca.losses import AbsoluteError, Hinge, Quantile, SquaredError
from problems import DESIGNS, ar_problem, integers

RADII = (0.3, 4.0)


VARIANTS = {
    "corrective": {},
    "ridge": {"ridge": 0.1},
    "no intercept": {"fit_intercept": False},
    "standardized": {"standardize": True},
    **{solver: {"solver": solver, "max_iter": 60} for solver in SOLVERS if solver != "corrective"},
}


def fit(kind, X, y, weights=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PaucaWarning)
        return estimator(kind, **options).fit(X, y, weights)


# What is proven.


@cache
def least_in_ball(name, radius, *options):
    """The least objective of a loss's table; solvers share it."""
    return best(ALL[name], *correlated(ALL[name], n=40, d=6), radius, dict(options))


@pytest.mark.parametrize(
    ("name", "variant"),
    # Models of piecewise losses are judged by linear programs, which have no ridge.
    [(name, variant) for name in ALL for variant in VARIANTS if variant != "ridge" or name not in PIECEWISE],
)
def test_the_gap_bounds_what_any_model_in_the_ball_could_gain(name, variant):
    kind, options = ALL[name], VARIANTS[variant]
    X, y = correlated(kind, n=40, d=6)
    for radius in RADII:
        model = fit(kind, X, y, radius=radius, tol=1e-4, **options)
        of_problem = [(option, value) for option, value in options.items() if option not in {"solver", "max_iter"}]
        null, least = model.path_[0].objective, least_in_ball(name, radius, *of_problem)
        scale = X.std(axis=0) if "standardize" in options else 1.0
        assert np.sum(np.abs(model.coef_) * scale) <= radius * (1 + 1e-9)
        assert model.lower_bound_ <= least + 1e-8 * null
        assert least - 1e-8 * null <= model.objective_ <= least + model.gap_ + 1e-8 * null
        assert model.gap_ == pytest.approx(model.objective_ - model.lower_bound_, abs=1e-12 * null)
        loss = kind.tuned(y)[0]
        ridge = options.get("ridge", 0.0)
        assert model.objective_ == pytest.approx(
            objective(kind, loss, y, scores(model, X), model.coef_, ridge=ridge), rel=1e-9
        )
        if model.solver == "corrective":
            assert model.stop_ is Stop.CERTIFIED
        assert (model.gap_ <= 1e-4 * null) == (model.stop_ is Stop.CERTIFIED)


@pytest.mark.parametrize("name", [name for name in ALL if name != "multinomial"])
def test_it_holds_with_weights(name):
    kind = ALL[name]
    X, y = correlated(kind, n=50, d=5, seed=3)
    weights = np.random.default_rng(0).integers(0, 3, 50).astype(float)
    X[weights == 0] *= 1e3  # rows without weight may be anything
    model = fit(kind, X, y, weights, radius=2.0, tol=1e-4)
    null, least = model.path_[0].objective, best(kind, X, y, 2.0, {}, weights)
    assert model.gap_ <= 1e-4 * null
    assert least - 1e-8 * null <= model.objective_ <= least + model.gap_ + 1e-8 * null
    repeated = fit(
        kind, np.repeat(X, weights.astype(int), axis=0), np.repeat(y, weights.astype(int), axis=0), radius=2.0
    )
    assert repeated.objective_ == pytest.approx(model.objective_, abs=2e-3 * null)


@pytest.mark.parametrize("name", SMOOTH)
def test_it_holds_at_any_point_even_where_the_intercept_is_off(name):
    kind = SMOOTH[name]
    X, y = correlated(kind, n=40, d=5)
    design = make_design(X, shares(None, 40), center=True)
    ball = BallObjective.of(design, kind.coded(y), kind.loss, n_outputs=kind.outputs)
    least = best(kind, X, y, 2.0, {})
    rng = np.random.default_rng(1)
    for off in (0.0, 1e-6, 0.1, -1.0):
        u = rng.standard_normal(kind.outputs * 5)
        u *= rng.uniform(0, 2) / np.abs(u).sum()
        iterate = Iterate(np.arange(len(u)), u, ball.null.intercepts + off * rng.standard_normal(kind.outputs))
        if not off:
            iterate, _ = ball.minimise_intercepts(ball.loss, iterate)
        found = ball.scores(iterate)
        proven = ball.duality_gap(ball.loss, 2.0, iterate, found, ball.gradient(ball.loss, found, iterate))
        assert proven.lower <= least + 1e-9
        assert proven.value >= least - 1e-9


@pytest.mark.parametrize("solver", ["forward", "away", "pairwise"])
@pytest.mark.parametrize("name", ["squared_error", "huber", "log_loss"])
def test_what_steps_carry_along_is_what_is_there(name, solver):
    kind = ALL[name]
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((6, 6)) * 10.0 ** rng.uniform(-1, 1, 6)  # so that coordinates change their sign
        y = kind.coded(np.arange(6) % 2 * 2.0 - 1.0 if kind.target == "signs" else X @ (1 / X.std(axis=0)))
        ball = BallObjective.of(
            make_design(X, np.full(6, 1 / 6), center=True), y, kind.loss.tuned(y, np.full(6, 1 / 6))
        )
        for step in itertools.islice(frank_wolfe_steps(ball, ball.loss, 2.0, ball.null, solver), 40):
            found = ball.scores(step.iterate)
            exact = ball.duality_gap(ball.loss, 2.0, step.iterate, found, ball.gradient(ball.loss, found, step.iterate))
            assert step.value == pytest.approx(exact.value, abs=1e-10 * ball.null_value)
            assert step.lower <= exact.lower + 1e-9 * ball.null_value


@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-5])
@pytest.mark.parametrize("name", PIECEWISE)
def test_the_promise_of_smoothing_is_about_the_loss_itself(name, tol):
    kind = PIECEWISE[name]
    X, y = correlated(kind, n=60, d=5, seed=2)
    model = estimator(kind, radius=3.0, tol=tol).fit(X, y)
    least = best(kind, X, y, 3.0, {})
    assert model.objective_ - least <= model.gap_ + 1e-12 <= tol * model.path_[0].objective + 2e-12
    assert model.lower_bound_ <= least + 1e-12


@pytest.mark.parametrize("name", LOSSES)
def test_an_envelope_lies_within_its_promise_below_the_loss(name):
    kind = LOSSES[name]
    _, y = correlated(kind, n=40)
    loss, y = kind.tuned(y)[0], kind.coded(y)
    if name not in PIECEWISE:
        assert loss.envelope(7.0) is loss
        return
    a = np.random.default_rng(0).standard_normal((1, 40)) * 3
    below = loss.value(y, a) - loss.envelope(7.0).value(y, a)
    assert np.all((below >= -1e-15) & (below <= loss.lipschitz**2 / 14.0 + 1e-15))
    assert np.all(loss.envelope(7.0).curvature(y, a) <= 7.0)


def test_losses_of_several_outputs_share_what_smoothing_may_cost():
    X, y = correlated(SMOOTH["squared, 2 outputs"], n=50, d=4)
    both = L1Regressor(radius=3, loss="absolute_error", tol=1e-3).fit(X, y)
    assert both.stop_ is Stop.CERTIFIED
    # Whatever share of the ball either output has, the bound holds for the sum.
    for share in (0.5, 1.0, 1.5, 2.0, 2.5):
        parts = [best_in_ball_by_lp(AbsoluteError(), X, y[:, c], b) for c, b in ((0, share), (1, 3 - share))]
        assert both.lower_bound_ <= sum(parts) + 1e-12


# The steps.


@pytest.mark.parametrize("step_rule", ["closed", "line"])
@pytest.mark.parametrize("name", ["squared_error", "log_loss", "huber", "squared hinge", "multinomial"])
def test_forward_steps_keep_the_rate_of_the_theorem(name, step_rule):
    kind = ALL[name]
    X, y = correlated(kind, n=50, d=6, seed=5)
    design = make_design(X, shares(None, 50), center=True)
    ball = BallObjective.of(design, kind.coded(y), kind.loss, n_outputs=kind.outputs, ridge=0.05)
    radius = 1.5
    beta = np.max(kind.loss.smoothness * X.var(axis=0) + 0.05)
    assert ball.smoothness(ball.loss) == pytest.approx(beta)
    least = best_in_ball(kind, X, y, radius, ridge=0.05)
    gaps = []
    smoothness = ball.smoothness(ball.loss) if step_rule == "closed" else None
    steps = frank_wolfe_steps(ball, ball.loss, radius, ball.null, "forward", smoothness=smoothness)
    for t, seen in enumerate(itertools.islice(steps, 120)):
        gaps.append(seen.gap)
        if t:
            assert seen.value - least <= 8 * beta * radius**2 / (t + 3) + 1e-10
    for eps in np.quantile(gaps, [0.1, 0.5, 0.9]):
        assert np.argmax(np.array(gaps) <= eps) <= 16 * beta * radius**2 / eps


@pytest.mark.parametrize("solver", ["pairwise", "away"])
@pytest.mark.parametrize("name", ["squared_error", "log_loss"])
def test_away_and_pairwise_steps_come_where_forward_steps_do_not(name, solver):
    kind = ALL[name]
    X, y = correlated(kind, n=80, d=12)
    steps = {m: fit(kind, X, y, radius=1.0, tol=1e-7, solver=m, max_iter=400) for m in (solver, "forward")}
    assert steps[solver].stop_ is Stop.CERTIFIED
    assert steps["forward"].stop_ is Stop.STEPS
    assert steps[solver].gap_ < 0.1 * steps["forward"].gap_


def test_the_best_lower_bound_may_come_from_another_step_than_the_best_model():
    X, y = correlated(ALL["squared_error"], n=40, d=8)
    design = make_design(X, shares(None, 40), center=True)
    ball = BallObjective.of(design, y[None], SquaredError())
    steps = [*itertools.islice(frank_wolfe_steps(ball, ball.loss, 2.0, ball.null, "forward"), 30)]
    found = Search(ball, SearchSettings("forward", max_iter=30, tol=1e-12)).run(2.0)
    assert found.lower == pytest.approx(max(0, *(seen.lower for seen in steps)))
    assert found.value == pytest.approx(min(seen.value for seen in steps))
    assert found.gap < min(seen.gap for seen in steps) or found.gap == pytest.approx(min(seen.gap for seen in steps))


@pytest.mark.parametrize("seed", range(12))
def test_a_quadratic_in_a_ball_is_minimised_to_rounding(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 30))
    root = rng.standard_normal((m, m if seed % 3 else max(1, m // 2))) * 10.0 ** rng.integers(-2, 3, (m, 1))
    hessian, slope = root @ root.T, rng.standard_normal(m) * 10.0 ** rng.integers(-2, 3, m)
    if seed % 3 == 0:
        slope = hessian @ rng.standard_normal(m)
    start = rng.standard_normal(m) * (rng.random(m) < 0.5)
    for radius in (0.1, 3.0, 1e4):
        here = start * min(1, radius / max(np.abs(start).sum(), 1e-9))
        u = minimise_in_ball(hessian, hessian @ here - slope, radius, here)
        gradient = hessian @ u - slope
        assert np.abs(u).sum() <= radius * (1 + 1e-12)
        size = radius * (np.abs(slope).max() + np.abs(hessian @ here).max())
        assert gradient @ u + radius * np.abs(gradient).max() <= 1e-9 * size


@pytest.mark.parametrize("name", SMOOTH)
def test_intercepts_are_minimised_out_to_rounding(name):
    kind = SMOOTH[name]
    _, y = correlated(kind, n=40)
    loss, v = kind.tuned(y)[0], shares(np.arange(40.0), 40)
    a = 30 * np.random.default_rng(0).standard_normal((kind.outputs, 40))
    shift, left = best_intercept_shifts(loss, kind.coded(y), v, a, np.zeros(kind.outputs, dtype=bool))
    slopes = loss.derivative(kind.coded(y), a + shift[:, None]) * v
    assert np.all(np.abs(left) <= 1e-12 * np.abs(slopes).sum())
    np.testing.assert_allclose(slopes.sum(axis=1), left, atol=1e-13 * np.abs(slopes).sum())


@pytest.mark.parametrize("loss", [AbsoluteError(), Quantile(0.3), Hinge()])
def test_intercepts_of_losses_with_kinks_are_at_the_best_kink(loss):
    rng = np.random.default_rng(1)
    weights = rng.random(25) / 12
    for _ in range(20):
        y = np.where(rng.random(25) < 0.4, 1.0, -1.0)[None]
        scores = np.round(2 * rng.standard_normal((1, 25))) / 4  # with ties
        (shift,), _ = best_intercept_shifts(loss, y, weights, scores, np.zeros(1, dtype=bool))
        kinks = np.concatenate([[shift], y[0] - scores[0]])
        values = [float(loss.value(y, scores + kink)[0] @ weights) for kink in kinks]
        assert values[0] <= min(values) + 1e-14


def test_the_empty_model_of_a_hinge_with_ties_is_the_best_constant():
    y = np.repeat([0, 1, 2, 3], [9, 7, 5, 39])
    model = L1Classifier(radius=0.1, loss="hinge", tol=0.5).fit(np.arange(60.0)[:, None] % 7, y)
    shares = np.bincount(y) / 60
    assert model.path_[0].objective == pytest.approx(2 * np.minimum(shares, 1 - shares).sum())


# The models.


def test_it_is_the_lasso_of_the_same_norm():
    X, y = ar_problem(80, 40, 5, rho=0.5)
    model = L1Regressor(radius=4.0, tol=1e-10).fit(X, y)
    residual = y - model.predict(X)
    alpha = np.abs(X.T @ (residual - residual.mean())).max() / len(y)
    lasso = Lasso(alpha=alpha, tol=1e-12, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(model.coef_, lasso.coef_, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, lasso.intercept_, atol=1e-6)
    assert np.abs(model.coef_).sum() == pytest.approx(4.0)


@pytest.mark.parametrize("name", ["squared_error", "log_loss", "poisson", "huber", "multinomial"])
def test_a_large_ball_holds_the_best_model_of_all(name):
    kind = ALL[name]
    X, y = correlated(kind, n=60, d=4, strength=0.5)
    model = estimator(kind, radius=1e4, tol=1e-6).fit(X, y)
    if name == "squared_error":
        free = LinearRegression().fit(X, y)
        np.testing.assert_allclose(model.coef_, free.coef_, rtol=1e-5)
    else:
        assert model.objective_ == pytest.approx(refit(kind, X, y, range(4))[0], rel=1e-6)


@pytest.mark.parametrize("name", ["squared_error", "log_loss", "absolute_error"])
def test_a_warm_start_comes_to_the_same_as_a_cold_one(name):
    kind = ALL[name]
    X, y = correlated(kind, n=60, d=10)
    design = make_design(X, shares(None, 60), center=True)

    def search():
        return Search(BallObjective.of(design, kind.coded(y), kind.loss), SearchSettings(tol=1e-6))

    warm = search()
    for radius in (0.5, 1.0, 3.0):
        found, cold = warm.run(radius), search().run(radius)
        null = warm.objective.null_value
        assert found.stop is cold.stop is Stop.CERTIFIED
        assert found.value == pytest.approx(cold.value, abs=1e-6 * null)
        assert max(found.lower, cold.lower) <= min(found.value, cold.value)
    assert warm.n_iter < 60


@cache
def of_floats(loss):
    return L1Regressor(radius=3.0, loss=loss, tol=1e-9).fit(*integers())


@pytest.mark.parametrize("form", DESIGNS)
@pytest.mark.parametrize("loss", ["squared_error", "huber"])
def test_data_in_every_form_give_the_same_model(form, loss):
    X, y = integers()
    model, plain = L1Regressor(radius=3.0, loss=loss, tol=1e-9).fit(DESIGNS[form](X), y), of_floats(loss)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-6)
    assert model.support_.tolist() == plain.support_.tolist()


def test_columns_of_any_scale_and_offset():
    X, y = ar_problem(60, 15, 3, rho=0.5)
    units = 10.0 ** np.random.default_rng(0).integers(-6, 7, 15)
    plain = L1Regressor(radius=2.0, standardize=True, tol=1e-8).fit(X, y)
    moved = L1Regressor(radius=2.0, standardize=True, tol=1e-8).fit(X * units + 100 * units, y)
    np.testing.assert_allclose(moved.coef_ * units, plain.coef_, atol=1e-6)
    assert moved.gap_ <= 1e-8 * moved.path_[0].objective


def test_no_more_features_than_asked_for():
    X, y = ar_problem(100, 60, 10, rho=0.5)
    model = L1Regressor(radius=10.0, k=4).fit(X, y)  # no warning: k is the user's choice
    assert (model.k_, model.path_.sizes, model.stop_) == (4, [0, 1, 2, 3, 4], Stop.SIZE)
    whole = L1Regressor(radius=10.0, tol=1e-6).fit(X, y)
    assert model.lower_bound_ <= whole.objective_ <= model.objective_ <= whole.objective_ + model.gap_
    for size in model.path_.sizes:
        smaller = model.at(size)
        assert np.abs(smaller.coef_).sum() <= 10.0 * (1 + 1e-9)
        assert smaller.gap_ == pytest.approx(smaller.objective_ - model.lower_bound_)
    classes = L1Classifier(radius=3.0, k=2).fit(X, np.digitize(y, np.quantile(y, [0.3, 0.6])))
    assert classes.k_ <= 2
    forward = L1Regressor(radius=10.0, k=4, solver="forward").fit(X, y)
    assert forward.k_ <= 4


def test_smaller_models_on_the_path_are_worse_and_in_the_ball():
    X, y = ar_problem(100, 200, 10, rho=0.5)
    path = L1Regressor(radius=8.0).fit(X, y).path_
    values = [model.objective for model in path]
    assert values == sorted(values, reverse=True)
    assert len(values) > 2


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("radius", [4.0, "auto"])
def test_smaller_models_tell_of_themselves(radius, standardize, tmp_path):
    X, y = ar_problem(100, 30, 10, rho=0.5)
    X = X * np.linspace(0.5, 2.0, 30)
    unit = X.std(axis=0) if standardize else np.ones(30)
    model = L1Regressor(radius, standardize=standardize, solver="pairwise").fit(X, y)
    model.save(tmp_path / "model.json")
    assert model.stop_ == "certified"
    for whole in (model, pauca.load(tmp_path / "model.json")):
        for size in whole.path_.sizes:
            one = whole.at(size)
            assert one.norm_ == pytest.approx(np.sum(unit * np.abs(one.coef_)), abs=1e-9)
            assert one.norm_ <= one.radius_ * (1 + 1e-9)
            assert one.gap_ == max(0.0, one.objective_ - whole.lower_bound_)
            within = one.gap_ <= one.tol * one.path_[0].objective
            assert one.stop_ == ("certified" if within else "size")
            smaller = one.norm_ < 0.999 * one.radius_
            assert (f"; the norm of this model is {one.norm_:.6g}" in one.summary()) == smaller
            assert ("it scores" in one.summary()) == (radius == "auto" and size == model.k_)
        assert whole.at(0).stop_ == "size"
        assert whole.at(model.k_).stop_ == "certified"
