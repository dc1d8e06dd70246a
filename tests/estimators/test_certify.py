"""Proofs as users meet them: after every fit on a narrow table, by ``certify``, and by the method ``Exact``."""

import itertools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from judges import SMOOTH, correlated, refit

import pauca
from pauca import SparseClassifier, SparseRegressor
from pauca.clock import OutOfTime
from pauca.estimators.certify import fitted
from pauca.methods import Exact, Exchange
from pauca.relaxations import bounds_without_gram, forest, optimality_bounds, tree_without_gram
from pauca.warnings import PaucaWarning
from problems import ar_problem, integers, objective


def optima(X, y, k, **options):
    subsets = itertools.combinations(range(X.shape[1]), k)
    return min(objective(X, y, S, **options) for S in subsets)


@pytest.mark.parametrize("options", [{}, {"ridge": 0.1, "standardize": False}, {"fit_intercept": False}])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_fit_on_few_columns_is_proved(options, weighted):
    X, y = ar_problem(40, 9, 4, seed=3)
    X = 10.0 ** np.arange(-4, 5) * X + (1e4 if options.get("fit_intercept", True) else 0.0)
    weights = np.random.default_rng(0).integers(1, 4, len(y)).astype(float) if weighted else None
    ridge = options.get("ridge", 0.0)
    model = SparseRegressor(k=9, **options).fit(X, y, weights)
    for k in range(1, 9):
        best = optima(X, y, k, weights=weights, ridge=ridge, center=options.get("fit_intercept", True))
        assert model.path_[k].objective == pytest.approx(best, rel=1e-7)
        assert model.certificate_.proved[k]
        assert best * (1 - 2e-6) <= model.certificate_.lower_bound[k] <= best * (1 + 1e-10)
    assert "Proved to be the best of all 126 subsets of 5 features" in model.at(5).summary()


def test_a_better_model_takes_the_place_of_the_one_exchange_found():
    """Found by looking for a problem that exchange does not solve; the path, its table and other sizes agree."""
    for seed in range(60):
        X, y = ar_problem(60, 16, 8, rho=0.95, snr=1.0, seed=seed)
        plain = SparseRegressor(k=8, method=Exchange(detour=0, scouts=())).fit(X, y)
        proved = plain.path_, plain.certify(time_limit=None)
        better = [k for k in range(1, 9) if plain.path_[k].objective < proved[0][k].objective * (1 - 1e-9)]
        if better:
            break
    k = better[0]
    assert all(proved[1].proved.values())
    assert plain.path_[k].objective == pytest.approx(objective(X, y, plain.path_[k].support), rel=1e-9)
    assert plain.path_.table()[k]["lower_bound"] <= plain.path_[k].objective
    assert plain.objective_ == plain.path_[8].objective
    np.testing.assert_array_equal(plain.predict(X), plain.at(8).predict(X))


def test_small_sizes_do_not_depend_on_how_many_are_asked_for():
    X, y = ar_problem(80, 20, 8, rho=0.95, snr=1.0, seed=5)
    many, few = (SparseRegressor(k=k).fit(X, y) for k in (12, 5))
    for k in range(1, 6):
        np.testing.assert_array_equal(many.path_[k].support, few.path_[k].support)
        assert many.certificate_.proofs[k].nodes == few.certificate_.proofs[k].nodes


@pytest.mark.parametrize(
    "constraints",
    [
        {"always": [0, 3]},
        {"never": [1, 2]},
        {"always": [4], "never": [0]},
        {"feature_groups": np.arange(9) // 3, "max_per_group": 1},
        {"costs": np.arange(1.0, 10.0), "budget": 12.0},
        {"costs": np.arange(9.0, 0.0, -1.0), "budget": 14.0, "always": [2]},
    ],
)
@pytest.mark.parametrize("method", ["exchange", Exact()])
def test_constraints_against_enumeration(constraints, method):
    X, y = ar_problem(40, 9, 4, seed=8)
    model = SparseRegressor(k=3, method=method, **constraints).fit(X, y)
    limits = model._training_data.problem.limits
    for k in range(max(1, len(limits.always)), model.k_ + 1):
        allowed = [S for S in itertools.combinations(range(9), k) if limits.allows(S)]
        best = min(objective(X, y, S) for S in allowed)
        assert model.certificate_.lower_bound[k] <= best * (1 + 1e-10)
        assert model.certificate_.proved[k]
        assert model.path_[k].objective == pytest.approx(best, rel=1e-8)
        counted = re.search(r"all (\d+) subsets", model.certificate_.message(k))
        assert counted is None or int(counted[1]) == len(allowed)  # those beyond a budget are not among them


def test_a_chosen_size_on_more_columns_has_the_bound_of_its_root():
    X, y = ar_problem(150, 60, 5, rho=0.5, snr=5.0, seed=1)
    chosen = SparseRegressor(k=range(1, 8), ridge=1e-3).fit(X, y)
    assert chosen.certificate_.sizes == [chosen.k_]
    assert 0 < chosen.certificate_.lower_bound[chosen.k_] <= chosen.path_[chosen.k_].objective
    assert chosen.certificate_.message(chosen.k_) in chosen.summary()
    proved = chosen.certify()
    assert proved.lower_bound[chosen.k_] >= chosen.path_.certificate.lower_bound[chosen.k_] * (1 - 1e-12)
    with pytest.raises(AttributeError):
        SparseRegressor(k=5, ridge=1e-3).fit(X, y).certificate_  # noqa: B018


def test_copies_are_told_and_not_counted(tmp_path):
    """With a ridge, two copies of a column would be better than one; no model has both, and the sentence says so."""
    X, y = ar_problem(40, 9, 4, seed=8)
    model = SparseRegressor(k=2, ridge=0.5).fit(np.column_stack([X, X[:, :1]]), y)
    said = "Proved to be the best of all 36 subsets of 2 features without a copy of other columns."
    assert model.certificate_.message(2) == said
    model.save(tmp_path / "model.json")
    assert pauca.load(tmp_path / "model.json").certificate_ == model.certificate_


def test_certificates_and_pools_print_as_text():
    X, y = ar_problem(40, 9, 4, seed=8)
    model = SparseRegressor(k=3).fit(X, y)
    certificate, pool = str(model.certify()), str(model.pool(within=0.5))
    assert certificate.startswith("3 of 3 sizes are proved: no model with as many features is better.")
    assert "best of all 84 subsets" in certificate.splitlines()[-1]
    assert pool.startswith(model.pool(within=0.5).message)
    assert repr(model.certificate_) == "<Certificate of 3 sizes, 3 proved>"
    assert "complete" in repr(model.pool())
    wide = SparseRegressor(k=3).fit(X[:8], y[:8]).certify()
    assert str(wide) == wide.message(3) == wide.overview


def test_exact_proves_wider_tables_and_stops_at_the_gap():
    X, y = ar_problem(200, 60, 6, rho=0.5, snr=5.0, seed=1)
    model = SparseRegressor(k=6, method=Exact(), ridge=1e-3).fit(X, y)
    assert model.certificate_.proved[6]
    assert model.k_ == 6
    loose = SparseRegressor(k=6, method=Exact(relative_gap=0.5), ridge=1e-3).fit(X, y)
    assert all(gap <= 0.5 for gap in loose.certificate_.relative_gap.values())
    assert sum(p.nodes for p in loose.certificate_.proofs.values()) <= sum(
        p.nodes for p in model.certificate_.proofs.values()
    )
    chosen = SparseRegressor(k=range(1, 10), method=Exact(), ridge=1e-3).fit(X, y)
    assert chosen.certificate_.proved[chosen.k_]


@pytest.mark.parametrize("method", [Exact(), "exchange"])
def test_the_same_proof_after_an_interruption(method):
    """A run that the callback ends, taken up again, ends with the models and proofs of one that was not ended."""
    X, y = ar_problem(80, 15, 6, rho=0.95, snr=1.0, seed=5)
    whole = SparseRegressor(k=6, method=method).fit(X, y)
    resumed = SparseRegressor(k=6, method=method, warm_start=True, callback=lambda progress: progress.size >= 3)
    resumed.fit(X, y)
    resumed.set_params(callback=None).fit(X, y)
    for k in range(1, 7):
        np.testing.assert_array_equal(whole.path_[k].support, resumed.path_[k].support)
    assert whole.certificate_.proved == resumed.certificate_.proved


def test_time_ends_a_proof_with_a_bound():
    X, y = ar_problem(100, 60, 20, rho=0.95, snr=1.0, seed=2)
    model = SparseRegressor(k=12, ridge=1e-4).fit(X, y)
    certificate = model.certify(time_limit=1e-3)
    assert not certificate.proved[12]
    assert 0 <= certificate.lower_bound[12] < model.path_[12].objective
    assert "No model of 12 features is better by more than" in model.summary()


def test_exact_says_that_it_was_stopped_before_the_proof():
    X, y = ar_problem(80, 15, 6, rho=0.95, snr=1.0, seed=5)
    model = SparseRegressor(k=6, method=Exact(), callback=lambda progress: progress.size >= 3).fit(X, y)
    assert "stopped before" in model.summary()
    assert set(model.certificate_.lower_bound.values()) == {-np.inf}


def test_a_part_that_is_not_reached_is_not_proved(monkeypatch):
    """On wide tables each size has a tree over its own columns, and the time may end between two of them."""
    monkeypatch.setattr(optimality_bounds, "MOST_DENSE", 20)
    X, y = ar_problem(60, 30, 12, rho=0.9, snr=1.0, seed=3)
    data = SparseRegressor(k=4, ridge=0.01).fit(X, y)._training_data
    subset = data.problem.begin(data.weights).subset
    best = SparseRegressor(k=4, ridge=0.01, method=Exact()).fit(X, y)
    poor = {k: fitted(subset, tuple(range(20, 20 + k))) for k in (2, 3, 4)}
    under_way = optimality_bounds.Proofs(subset, poor)
    for _ in under_way.grow(0.0):
        assert all(under_way.proof(k).lower_bound <= best.path_[k].objective * (1 + 1e-9) for k in under_way.sizes)
    for k in poor:
        assert under_way.proof(k).proved
        assert under_way.proof(k).objective == pytest.approx(best.path_[k].objective, rel=1e-8)


@pytest.mark.parametrize(("narrowed", "grouped"), [(0, 0), (8, 0), (0, 10), (8, 10)])
@pytest.mark.parametrize("always", [(), (3,)])
def test_trees_over_many_columns_against_enumeration(narrowed, grouped, always, monkeypatch):
    """As if twelve columns were too many for a Gram matrix; nodes with few columns left have one, or none does.

    Columns are branched on one by one, or in groups of two to five.
    """
    monkeypatch.setattr(tree_without_gram, "MOST_GROUPED", grouped)
    monkeypatch.setattr(bounds_without_gram, "MOST_KNOWN", 9)
    monkeypatch.setattr(optimality_bounds, "MOST_DENSE", 5)
    monkeypatch.setattr(optimality_bounds, "MOST_LEFT", 0)
    monkeypatch.setattr(tree_without_gram, "MOST_NARROWED", narrowed)
    monkeypatch.setattr(bounds_without_gram, "FIRST_COLUMNS", 3)
    grown = 0
    for seed in range(3):
        X, y = ar_problem(30, 12, 6, rho=0.9, snr=1.0, seed=seed)
        data = SparseRegressor(k=4, ridge=0.01, always=list(always)).fit(X, y)._training_data
        subset = data.problem.begin(data.weights).subset
        poor = {k: fitted(subset, tuple(sorted({*always, *range(12 - k + len(always), 12)}))) for k in (2, 3, 4)}
        best = {
            k: min(fitted(subset, S).value for S in itertools.combinations(range(12), k) if set(always) <= set(S))
            for k in poor
        }
        under_way = optimality_bounds.Proofs(subset, poor)
        for _ in under_way.grow(0.0, compiled=False):
            assert all(under_way.proof(k).lower_bound <= best[k] * (1 + 1e-9) for k in poor)
        for k in poor:
            assert under_way.proof(k).proved
            assert fitted(subset, under_way.support(k)).value == pytest.approx(best[k], rel=1e-8)
            assert under_way.proof(k).objective == pytest.approx(best[k], rel=1e-8)
            grown += under_way.proof(k).nodes
    assert grown > 25


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda X, y: SparseRegressor(k=2).fit(X[:9], y[:9]), "more rows than columns"),
        (lambda X, y: SparseRegressor(k=2).fit(np.column_stack([X, X[:, 0] + X[:, 1]]), y), "linearly independent"),
        (lambda X, y: SparseRegressor(k=2, bounds=(0, None)).fit(X, y), "bounds"),
        (lambda X, y: SparseRegressor(k=2, feature_groups=np.arange(12) // 2).fit(X, y), "feature_groups"),
        (lambda X, y: SparseRegressor(k=2).fit(X, np.column_stack([y, X[:, 0]])), "one output"),
        (lambda X, y: SparseRegressor(k=2, loss="huber").fit(X, y), "need a ridge"),
        (lambda X, y: SparseClassifier(k=2).fit(X, y > 0), "need a ridge"),
        (lambda X, y: SparseRegressor(k=2, loss="absolute_error", ridge=0.1).fit(X, y), "smooth losses"),
        (lambda X, y: SparseClassifier(k=2, ridge=0.1).fit(X, np.digitize(y, [-10, 10])), "two classes"),
    ],
)
def test_where_there_is_no_bound_it_says_why(make, words, tmp_path):
    model = make(*integers())
    certificate = model.certify()
    assert words in certificate.reason
    assert certificate.lower_bound == {1: -np.inf, 2: -np.inf}
    assert certificate.relative_gap[2] == np.inf
    assert not any(certificate.proved.values())
    assert words in model.summary()
    assert words in certificate.message(2)
    model.save(tmp_path / "model.json")
    assert pauca.load(tmp_path / "model.json").certificate_ == certificate
    with pytest.raises(ValueError, match=r"Nothing to draw"):
        certificate.plot()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"bounds": (0, None)}, "no bounds on coefficients"),
        ({"loss": "huber"}, "need a ridge"),
        ({"loss": "absolute_error"}, "smooth losses"),
        ({"feature_groups": np.arange(12) // 2}, "neither feature_groups"),
    ],
)
def test_exact_warns_where_nothing_can_be_proved(settings, words):
    X, y = integers()
    with pytest.warns(PaucaWarning, match=f"Exact has proved nothing.*{words}"):
        SparseRegressor(k=2, method=Exact(), **settings).fit(X, y)


def test_a_certificate_says_where_there_is_one_subset_only():
    X, y = integers()
    assert "  the only subset" in str(SparseRegressor(k=12).fit(X, y).certificate_)


def test_invalid_requests():
    X, y = integers()
    model = SparseRegressor(k=2).fit(X, y)
    for bad in (0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="time_limit"):
            model.certify(time_limit=bad)
    with pytest.raises(ValueError, match="relative_gap"):
        Exact(relative_gap=-0.1)
    with pytest.raises(TypeError, match="relative_gap"):
        Exact(relative_gap="0")


def test_a_certificate_goes_through_files(tmp_path: Path):
    X, y = integers()
    model = SparseRegressor(k=4).fit(X, y)
    model.save(tmp_path / "model.json")
    loaded = pauca.load(tmp_path / "model.json")
    assert loaded.certificate_.table() == model.certificate_.table()
    assert loaded.summary() == model.summary()
    with pytest.raises(ValueError, match="certify"):
        loaded.certify()


def test_copies_are_not_proved_to_be_better():
    """With a ridge two copies of a column would lower the objective, but no search chooses them; nor does the proof."""
    X, y = integers()
    X = np.column_stack([X[:, 0], X])
    model = SparseRegressor(k=3, ridge=1.0).fit(X, y)
    assert model.certificate_.proved[3]
    assert not {0, 1} <= set(model.support_.tolist())


def test_the_pool_holds_all_models_near_the_best():
    X, y = ar_problem(50, 10, 4, rho=0.9, snr=1.0, seed=4)
    model = SparseRegressor(k=4).fit(X, y)
    values = {S: objective(X, y, S) for S in itertools.combinations(range(10), 4)}
    for within in (0.0, 0.02, 0.2):
        pool = model.pool(within)
        near = {S for S, value in values.items() if value <= min(values.values()) * (1 + within) * (1 + 1e-9)}
        assert pool.complete
        assert {tuple(sorted(int(name[1:]) for name in names)) for names in pool.supports} == near
        assert pool.objectives == sorted(pool.objectives)
        assert set(pool.common) == {f"x{j}" for j in range(10) if all(j in S for S in near)}
        assert max(record["worse_by"] for record in pool.table()) <= within + 1e-9
    with pytest.raises(ValueError, match="within"):
        model.pool(-0.1)
    with pytest.raises(ValueError, match="size 0"):
        model.at(0).pool()
    with pytest.raises(ValueError, match="for squared error"):
        SparseRegressor(k=2, loss="huber").fit(X, y).pool()


@pytest.mark.parametrize("enumerated", [True, False])
@pytest.mark.parametrize("constraints", [{}, {"always": [3]}, {"costs": np.arange(1.0, 11.0), "budget": 24.0}])
def test_the_best_models_of_every_size(enumerated, constraints, monkeypatch):
    if not enumerated:
        monkeypatch.setattr(forest, "MOST_ENUMERATED", 0)
    X, y = ar_problem(50, 10, 4, rho=0.9, snr=1.0, seed=4)
    model = SparseRegressor(k=4, **constraints).fit(X, y)
    limits = model._training_data.problem.limits
    for size, pool in model.best_subsets(n_best=4).items():
        values = sorted(objective(X, y, S) for S in itertools.combinations(range(10), size) if limits.allows(S))
        assert pool.complete
        np.testing.assert_allclose(pool.objectives, values[:4], rtol=1e-8)
        assert len(set(pool.supports)) == len(pool.supports)
    both = model.pool(0.02, n_best=2)
    assert both.supports == model.pool(0.02).supports[:2]
    assert "there are no" in both.message
    with pytest.raises(ValueError, match="n_best"):
        model.best_subsets(0)


def test_pools_of_wide_tables_are_complete(monkeypatch):
    """Columns that no best model has may be in one that is nearly as good."""
    X, y = ar_problem(50, 14, 3, rho=0.3, snr=5.0, seed=1)
    model = SparseRegressor(k=3, ridge=0.3).fit(X, y)
    wanted = model.pool(0.3), model.pool(n_best=5)
    monkeypatch.setattr(optimality_bounds, "MOST_DENSE", 5)
    for pool, found in zip(wanted, (model.pool(0.3), model.pool(n_best=5)), strict=True):
        assert found.complete
        assert found.supports == pool.supports


def test_the_command_line_certifies(tmp_path: Path, capsys):
    from pauca.cli import main

    X, y = integers()
    rows = np.column_stack([X, y])
    head = ",".join([*(f"c{j}" for j in range(X.shape[1])), "y"])
    np.savetxt(tmp_path / "table.csv", rows, delimiter=",", header=head, comments="")
    arguments = ["fit", str(tmp_path / "table.csv"), "--target", "y", "--k", "3", "--quiet"]
    assert main([*arguments, "--method", "forward", "--certify", "5"]) == 0
    said = capsys.readouterr().out
    assert "Proved to be the best of all 220 subsets of 3 features" in said
    assert "3 of 3 sizes are proved: no model with as many features is better." in said


@pytest.mark.parametrize("always", [None, [7]])
def test_wide_tables_are_bounded_over_all_columns(monkeypatch, always):
    """With a limit far below the number of columns, roots are bounded by a working set; the answers are the same."""

    X, y = ar_problem(50, 24, 4, rho=0.3, snr=5.0, seed=1)
    best = SparseRegressor(k=4, ridge=0.3, always=always).fit(X, y)
    monkeypatch.setattr(optimality_bounds, "MOST_DENSE", 10)
    monkeypatch.setattr(bounds_without_gram, "FIRST_COLUMNS", 5)
    monkeypatch.setattr(bounds_without_gram, "ADDED_COLUMNS", 3)
    forward = SparseRegressor(k=4, ridge=0.3, always=always, method="forward").fit(X, y)
    certificate = forward.certify()
    for k in range(1, 5):
        assert certificate.proved[k]
        assert forward.path_[k].objective == pytest.approx(best.path_[k].objective, rel=1e-8)
        assert certificate.lower_bound[k] == pytest.approx(best.path_[k].objective, rel=2e-6)
    assert "more rows than columns" in SparseRegressor(k=2).fit(X, y).certify().reason


@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"always": [2], "never": [0]}])
@pytest.mark.parametrize("name", ["log_loss", "poisson", "huber", "squared hinge"])
def test_other_losses_with_a_ridge_against_enumeration(name, options):
    kind, ridge = SMOOTH[name], 0.05
    X, y = correlated(kind, n=40, d=6, rho=0.8, seed=2)
    X = X / X.std(axis=0)
    model = kind.estimator(k=4, ridge=ridge, method="forward", **options).fit(X, y)
    certificate = model.certify(time_limit=None)
    allowed = [j for j in range(6) if j not in options.get("never", [])]
    for k in range(1, 5):
        subsets = [S for S in itertools.combinations(allowed, k) if set(options.get("always", [])) <= set(S)]
        center = options.get("fit_intercept", True)
        best = min(refit(kind, X, y, S, ridge=ridge, center=center)[0] for S in subsets)
        assert certificate.lower_bound[k] <= best * (1 + 1e-8)
        assert certificate.proved[k]
        assert model.path_[k].objective == pytest.approx(best, rel=2e-6)


def test_a_callback_watches_the_gap_and_may_end_the_proof():
    X, y = ar_problem(100, 50, 20, rho=0.95, snr=1.0, seed=2)
    gaps = []

    def watch(progress):
        gaps.append(progress.relative_gap)
        return len([gap for gap in gaps if gap is not None]) >= 3

    model = SparseRegressor(k=8, method=Exact(), ridge=1e-4, callback=watch).fit(X, y)
    seen = [gap for gap in gaps if gap is not None]
    assert gaps[0] is None
    assert seen == sorted(seen, reverse=True)
    assert model.stop_ == "callback"
    assert model.k_ == 8
    assert 0 < model.certificate_.relative_gap[8] <= seen[0]


@pytest.mark.parametrize("method", ["exchange", Exact(), "forward"])
def test_with_another_ridge_the_objective_of_the_search_is_proved(method, tmp_path):
    """Models are searched with one ridge and fitted with another; the proof is about the first, and says so."""
    X, y = ar_problem(60, 12, 5, rho=0.95, snr=1.0, seed=1)
    spread = X.std(axis=0)
    model = SparseRegressor(k=6, ridge=0.5, search_ridge=0.01, method=method).fit(X, y)
    certificate = model.certify(time_limit=None) if method == "forward" else model.certificate_
    assert certificate.search_ridge == 0.01
    for k in range(1, 7):
        values = {S: objective(X / spread, y, S, ridge=0.01) for S in itertools.combinations(range(12), k)}
        assert certificate.proved[k]
        assert certificate.lower_bound[k] == pytest.approx(min(values.values()), rel=2e-6)
        assert values[tuple(model.path_[k].support.tolist())] == pytest.approx(min(values.values()), rel=1e-9)
        fitted = objective(X / spread, y, model.path_[k].support, ridge=0.5)
        assert model.path_[k].objective == pytest.approx(fitted, rel=1e-9)
    assert "at ridge 0.01, the ridge of the search." in model.summary()
    assert model.path_.table()[6]["search_objective"] == certificate.proofs[6].objective
    assert model.path_.table()[0]["search_proved"]
    model.save(tmp_path / "model.json")
    assert pauca.load(tmp_path / "model.json").certificate_ == certificate
    assert model.pool(0.0).supports == [tuple(model.path_.names(6))]


def test_models_of_a_chosen_ridge_are_proved():
    X, y = ar_problem(60, 8, 3, rho=0.5, snr=1.0, seed=0)
    model = SparseRegressor().fit(X, y)
    assert all(model.certificate_.proved.values())
    best = model.at(2, ridge="best")
    known = getattr(best, "certificate_", None)
    assert known is None or known.search_ridge in (None, best.search_ridge_)


@pytest.mark.parametrize("steps", [0, 1, 3, 8])
def test_time_ends_the_bounds_of_classes_in_their_midst(monkeypatch, steps):
    X, y = ar_problem(80, 10, 3, seed=5)[:2]
    model = SparseClassifier(k=4, ridge=0.05, method="forward").fit(X, y > np.median(y))
    best = model.certify()
    assert all(best.proved[size] for size in range(1, 5))
    turns = itertools.count()

    def clock():
        if next(turns) >= steps:
            raise OutOfTime

    monkeypatch.setattr("pauca.relaxations.smooth.check_time", clock)
    cut = model.certify()
    assert not all(cut.proved[size] for size in range(1, 5))
    for size in range(1, 5):
        assert cut.lower_bound[size] <= model.path_[size].objective * (1 + 1e-8)


def test_a_path_that_went_down_need_not_have_the_forced_features_alone():
    X, y = ar_problem(40, 5, 3, rho=0.3, snr=2.0, seed=0)
    model = SparseRegressor(k=None, method="backward", always=[0]).fit(X, y)
    without = {size: one for size, one in model.path_.models.items() if size != 1}
    model.path_ = replace(model.path_, models=without)
    assert set(model.certify().sizes) == set(without) - {0}
