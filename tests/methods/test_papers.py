"""The search methods make the moves of the printed algorithms, over many random problems."""

import numpy as np
import pytest
from printed_algorithms import (
    Logistic,
    Squared,
    fully_corrective,
    liu_foba,
    replacement,
    sas_stepwise,
    textbook_stepwise,
    zhang_backward,
    zhang_foba,
    zhang_forward,
)

from pauca import SparseClassifier, SparseRegressor, Stop, select
from pauca.methods import Backward, FoBa, Forward, Replacement, resolve
from problems import ar_problem

ZERO = {"removal": "zero"}
AS_PRINTED = {"fit_intercept": False, "standardize": False}


def problem(seed, n=30, d=12):
    """Correlated columns of different scales, without an intercept."""
    X, y = ar_problem(n, d, 4, rho=0.9, snr=3, seed=seed)
    return X * np.random.default_rng(seed).uniform(0.5, 2.0, d), y


def classes(seed, n=40, d=10):
    X, y = problem(seed, n, d)
    return X / np.abs(X).max(), np.where(y > np.median(y), 1, -1)


def fitted(X, y, method, k=None, tol=0.0, ridge=0.0):
    return SparseRegressor(k=k, method=method, tol=tol, ridge=ridge, **AS_PRINTED).fit(X, y)


@pytest.mark.parametrize("cumulative", [False, True], ids=["each", "cumulative"])
def test_foba_of_zhang(cumulative):
    """Figure 4 and its aggressive variant; the paper's objective is twice ours."""
    compare, removals = "cumulative" if cumulative else "each", 0
    for seed in range(60):
        X, y = problem(seed)
        Q, rng = Squared(X, y, 1.0), np.random.default_rng(seed)
        epsilon, nu = Q.value(np.zeros(12)) * 10 ** rng.uniform(-4, -2), rng.uniform(0.3, 0.95)
        moves, F = zhang_foba(Q, 12, epsilon, nu, cumulative)
        model = fitted(X, y, FoBa(nu=nu, compare=compare, **ZERO), tol=epsilon / 2)
        assert model.path_.moves == moves
        assert model.k_ == len(F)
        removals += sum(move[0] == "drop" for move in moves)
    assert removals > 20


def test_a_cumulative_run_taken_up_again_has_not_forgotten_what_it_spent():
    for seed in range(12):
        X, y = problem(seed)
        method = FoBa(nu=0.9, compare="cumulative", **ZERO)
        whole = fitted(X, y, method).path_.moves
        short = SparseRegressor(k=None, method=method, fit_intercept=False, warm_start=True)
        for _ in range(len(whole) + 1):
            short.set_params(callback=lambda progress: True).fit(X, y)
        assert short.path_.moves == whole


def test_forward_and_backward_of_zhang():
    """Figure 1 keeps the last feature, whose gain is not enough, and ``Forward`` does not; Figure 3 is ``Backward``."""
    for seed in range(40):
        X, y = problem(seed)
        Q = Squared(X, y, 1.0)
        epsilon = 1e-2 * Q.value(np.zeros(12))
        order = zhang_forward(Q, 12, epsilon)
        ours = [unit for _, unit in fitted(X, y, Forward(), tol=epsilon / 2).path_.moves]
        assert len(ours) < 12
        assert ours == order[:-1]
        order = zhang_backward(Q, 12)
        assert [unit for _, unit in fitted(X, y, Backward(), k=1).path_.moves] == order[:-1]


def test_stepwise_search_of_sas():
    """Zhang (2011), section III: the second threshold is fixed. Large ones end a run early, going in circles."""
    circles = 0
    for seed in range(40):
        X, y = problem(seed)
        Q, rng = Squared(X, y, 1.0), np.random.default_rng(seed)
        epsilon = Q.value(np.zeros(12)) * 10 ** rng.uniform(-4, -2)
        removal = epsilon * 10 ** rng.uniform(-1, 1)
        moves, F = sas_stepwise(Q, 12, epsilon, removal)
        model = fitted(X, y, FoBa(compare="fixed", removal_tol=removal / 2), tol=epsilon / 2)
        assert model.path_.moves == moves
        assert set(model.support_) == F or model.stop_ is Stop.REPEATED
        circles += model.stop_ is Stop.REPEATED
    assert 3 < circles < 37


def rare_columns(seed, n=60, d=8):
    """Zeros and a few ones, which second-order estimates misjudge; no column is empty."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, d)) < rng.uniform(0.03, 0.4, d)).astype(float)
    X[rng.choice(n, size=d, replace=False), np.arange(d)] = 1.0
    return X, np.where(2 * X @ rng.standard_normal(d) + rng.standard_normal(n) > 0, 1, -1)


@pytest.mark.filterwarnings("ignore:There are only")
def test_without_a_shortlist_every_removal_is_refitted():
    """Backward elimination and the heuristic of SAS, word for word, where costs have no formula."""
    missed = 0
    for seed in range(5):
        X, y = rare_columns(seed)
        Q = Logistic(X, y, 1e-4)
        order = [("drop", j) for j in zhang_backward(Q, 8)[:-1]]
        paths = [
            SparseClassifier(k=1, method=Backward(shortlist=few), ridge=1e-4, **AS_PRINTED).fit(X, y).path_.moves
            for few in (None, 2.0)
        ]
        assert paths[0] == order
        missed += paths[1] != order
        epsilon = Q.value(np.zeros(8)) * 10 ** np.random.default_rng(seed).uniform(-3, -1.5)
        moves, _ = sas_stepwise(Q, 8, epsilon, 2 * epsilon)
        method = FoBa(compare="fixed", removal_tol=2 * epsilon, shortlist=None)
        model = SparseClassifier(k=None, method=method, tol=epsilon, ridge=1e-4, **AS_PRINTED).fit(X, y)
        assert model.path_.moves == moves
    assert missed


@pytest.mark.parametrize("rule", ["objective", "gradient"])
@pytest.mark.parametrize("backward", [True, False], ids=["foba", "forward"])
def test_algorithm_of_liu_fujimaki_and_ye(rule, backward):
    """The stops delta and epsilon are made before a step; ``tol`` is another stop and gives other sizes."""
    other_sizes = 0
    for seed in range(30):
        X, y = problem(seed)
        Q = Squared(X, y, 0.5)
        threshold = 10 ** np.random.default_rng(seed).uniform(-3, -1)
        threshold *= Q.value(np.zeros(12)) if rule == "objective" else np.abs(Q.gradient(np.zeros(12))).max()
        stop = {"min_line_gain" if rule == "objective" else "gradient_tol": threshold}
        moves, F = liu_foba(Q, 12, rule, threshold, backward)
        method = FoBa(rule=rule, **ZERO, **stop) if backward else Forward(rule=rule, **stop)
        model = fitted(X, y, method)
        assert model.path_.moves == moves
        assert model.k_ == len(F)
        if rule == "objective":
            other_sizes += fitted(X, y, FoBa(**ZERO) if backward else Forward(), tol=threshold).k_ != len(F)
    assert other_sizes > 3 or rule == "gradient"


@pytest.mark.parametrize("rule", ["objective", "gradient"])
def test_algorithm_of_liu_fujimaki_and_ye_for_logistic_loss(rule):
    for seed in range(12):
        X, y = classes(seed)
        Q = Logistic(X, y, 1e-3)
        threshold = (0.01 if rule == "objective" else 0.2) * 10 ** np.random.default_rng(seed).uniform(-1, 0)
        threshold *= Q.value(np.zeros(10)) if rule == "objective" else np.abs(Q.gradient(np.zeros(10))).max()
        stop = {"min_line_gain" if rule == "objective" else "gradient_tol": threshold}
        moves, F = liu_foba(Q, 10, rule, threshold)
        method = FoBa(rule=rule, **ZERO, **stop)
        model = SparseClassifier(k=None, method=method, ridge=1e-3, **AS_PRINTED).fit(X, y)
        assert model.path_.moves == moves
        assert set(model.support_) == F


def test_gradient_rule():
    """Shalev-Shwartz et al. (2010), the second rule for Algorithm 3; the gradient is that of the model so far."""
    for seed in range(40):
        X, y = problem(seed)
        order = [("add", j) for j in fully_corrective(Squared(X, y, 0.5), 12, 6, "gradient")]
        assert fitted(X, y, Forward(rule="gradient"), k=6).path_.moves == order


def test_functional_gradient_rule():
    """Shalev-Shwartz et al. (2010), the third rule for Algorithm 3: the column that fits the gradient of the scores."""
    differ = 0
    for seed in range(4):
        X, y = classes(seed)
        Q = Logistic(X, y, 1e-3)
        order = fully_corrective(Q, 10, 5, "functional")
        model = SparseClassifier(k=5, method=Forward(rule="functional"), ridge=1e-3, **AS_PRINTED).fit(X, y)
        assert [unit for _, unit in model.path_.moves] == order
        differ += order != fully_corrective(Q, 10, 5)
        numbers = fitted(X, y.astype(float), Forward(rule="functional"), k=5)
        assert numbers.path_.moves == fitted(X, y.astype(float), Forward(), k=5).path_.moves
    assert differ


class Plain:
    """An objective that offers no more than a value and a gradient."""

    def __init__(self, Q, d):
        self.value, self.gradient, self.n_coords = Q.value, Q.gradient, d


def test_without_a_shortlist_every_coordinate_of_an_own_objective_is_scored():
    """The gradient, by which an own objective without curvatures is ranked, depends on the scale of coordinates."""
    X, y = np.random.default_rng(0).standard_normal((60, 150)), np.tile([-1, 1], 30)
    X[:, 79] = 1e-2 * (y + X[:, 79])  # the best column, in small units
    Q = Logistic(X, y, 1e-6)
    order = [("add", j) for j in fully_corrective(Q, 150, 2)]
    assert order[0] == ("add", 79)
    assert select(Plain(Q, 150), k=2, method=Forward(shortlist=None)).moves == order
    assert select(Plain(Q, 150), k=2, method=Forward()).moves != order


def test_functional_rule_needs_columns():
    X, y = classes(0)
    with pytest.raises(ValueError, match="functional"):
        SparseClassifier(k=2, method=Forward(rule="functional"), feature_groups=[0, 0, 1, 1, 2, 2, 3, 3, 4, 4]).fit(
            X, y
        )


@pytest.mark.parametrize("full", [True, False], ids=["full", "simple"])
def test_replacement_of_shalev_shwartz_srebro_and_zhang(full):
    """Algorithm 4 and the simpler variant, from the features that Algorithm 3 ends with."""
    swaps = 0
    for seed in range(50):
        X, y = problem(seed)
        Q = Squared(X, y, 0.5)
        F = fully_corrective(Q, 12, 4)
        expected = [("add", j) for j in F] + replacement(Q, 12, F, full)
        assert fitted(X, y, Replacement(full=full), k=4).path_.moves == expected
        swaps += len(expected) - 4
    assert swaps > 3


@pytest.mark.parametrize("full", [True, False], ids=["full", "simple"])
def test_replacement_for_logistic_loss_with_a_ridge(full):
    swaps = 0
    for seed in range(7):
        X, y = classes(seed)
        Q = Logistic(X, y, 1e-4)
        F = fully_corrective(Q, 10, 5)
        expected = [("add", j) for j in F] + replacement(Q, 10, F, full)
        model = SparseClassifier(k=5, method=Replacement(full=full), ridge=1e-4, **AS_PRINTED).fit(X, y)
        assert model.path_.moves == expected
        swaps += len(expected) - 5
    assert swaps


def test_replacement_ends_after_so_many_swaps_and_keeps_limits():
    X, y = problem(1)
    found = next(seed for seed in range(100) if len(fitted(*problem(seed), Replacement(), k=4).path_.moves) > 4)
    X, y = problem(found)
    model = fitted(X, y, Replacement(max_swaps=0), k=4)
    assert model.stop_ is Stop.STEPS
    assert model.path_.moves == fitted(X, y, Forward(), k=4).path_.moves
    kept = int(fitted(X, y, Replacement(), k=4).path_.moves[4][1])
    limited = SparseRegressor(k=4, method=Replacement(), fit_intercept=False, always=[kept]).fit(X, y)
    assert kept in limited.support_


@pytest.mark.filterwarnings("ignore:There are only")
def test_stepwise_is_that_of_textbooks():
    assert resolve("stepwise") == Forward(rule="refit")
    parted = 0
    for seed in range(40):
        X, y = problem(seed)
        moves = [("add", j) for j in textbook_stepwise(Squared(X, y, 0.5), 12, 6)]
        assert fitted(X, y, "stepwise", k=6).path_.moves == moves
        parted += fitted(X, y, "forward", k=6).path_.moves != moves
    assert parted > 4
    for seed in range(8):
        X, y = rare_columns(seed)
        moves = [("add", j) for j in textbook_stepwise(Logistic(X, y, 1e-4), 8, 6)]
        method = Forward(rule="refit", shortlist=None)
        assert SparseClassifier(k=6, method=method, ridge=1e-4, **AS_PRINTED).fit(X, y).path_.moves == moves


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: FoBa(removal_tol=1.0), "compare='fixed'"),
        (lambda: FoBa(min_line_gain=-1.0), "min_line_gain"),
        (lambda: Forward(gradient_tol=float("nan")), "gradient_tol"),
        (lambda: Backward(shortlist=0.5), "shortlist"),
        (lambda: Replacement(max_swaps=-1), "max_swaps"),
        (lambda: Replacement(full="yes"), "full"),
    ],
)
def test_invalid_options(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make()
