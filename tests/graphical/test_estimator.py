"""SparsePrecision: its contract with scikit-learn, its fitted attributes, and its choice of size."""

from functools import cache
from itertools import combinations, pairwise

import numpy as np
import pytest
from graph_coordinates import GaussianGraph
from graph_tables import NAMES, chain, frame
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.covariance import empirical_covariance, log_likelihood
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold
from sklearn_checks import parametrize_settings
from threadpoolctl import threadpool_info, threadpool_limits

from pauca import PaucaWarning, SparsePrecision, Stop
from pauca.custom.select import select
from pauca.graphical import mle, newton
from pauca.graphical.subset import GraphSubset
from pauca.methods import FoBa, Forward
from pauca.runs.run import Goal, run


@cache
def enumerable(p, seed):
    """A table of p columns, and the least Q of all graphs of every size, by refits that scipy has judged."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, p)) @ (np.eye(p) + rng.standard_normal((p, p)))
    graph = GaussianGraph(empirical_covariance(X))
    every = range(p, graph.n_coords)
    values = [
        min(graph.mle.fit([unit - p for unit in some], lambda: np.eye(p)).value for some in combinations(every, k))
        for k in range(len(graph.edges) + 1)
    ]
    return X, np.array(values) + graph.shift


@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning")
@pytest.mark.usefixtures("array_api")
@parametrize_settings(
    [
        SparsePrecision(),
        SparsePrecision(k=2, shrinkage=0.1),
        SparsePrecision(k=5, method="exchange", shrinkage=0.1),
        SparsePrecision(k=range(3), n_jobs=2, assume_centered=True),
    ]
)
def test_scikit_learn_checks(estimator, check):
    if "sample_weight_equivalence" in str(check) and estimator.k == "auto":
        estimator = clone(estimator).set_params(k=range(8))  # up to all edges of this table it would take ten seconds
    if "array_api" in str(check) and not estimator.shrinkage:
        # The table of this check has columns that are linear combinations of others.
        with pytest.raises(ValueError, match="linear combinations of others"):
            check(estimator)
        return
    check(estimator)


@pytest.mark.parametrize("p", [4, 5])
@pytest.mark.parametrize("method", ["forward", "foba", "exchange", "backward", FoBa(rule="refit", removal="zero")])
def test_no_method_is_below_the_best_of_all_graphs_and_exchange_meets_it(p, method):
    met = []
    for seed in range(3):
        X, best = enumerable(p, seed)
        path = SparsePrecision(k=len(best) - 1, method=method).fit(X).path_
        assert path.sizes == list(range(len(best)))
        values = np.array([path[size].objective for size in path.sizes])
        assert np.all(values >= best - 1e-9)
        assert values[[0, -1]] == pytest.approx(best[[0, -1]], abs=1e-9)
        met += (values <= best + 1e-9).tolist()
    assert np.mean(met) >= (0.9 if method == "exchange" else 0.5)


@pytest.mark.parametrize("method", [Forward(), FoBa(), Forward(rule="gradient"), FoBa(removal="zero")])
def test_the_subset_of_edges_goes_where_any_objective_would(method):
    """The generic subset knows nothing of graphs; both take the same moves and come to the same graphs."""
    rng = np.random.default_rng(5)
    S = empirical_covariance(rng.standard_normal((60, 9)) @ (np.eye(9) + 0.4 * rng.standard_normal((9, 9))))
    graph, goal = GaussianGraph(S), Goal(14)
    history = run(method, GraphSubset.start(graph), goal)
    path = select(GaussianGraph(S), 14, method=method)
    assert history.moves == [(move, unit - graph.n_nodes) for move, unit in path.moves]
    for size in path.sizes:
        assert history.best[size].value == pytest.approx(path[size].objective, abs=1e-9)


def dense(seed=3):
    """A likelihood whose graphs are blocks with many cycles."""
    rng = np.random.default_rng(seed)
    return GaussianGraph(
        empirical_covariance(rng.standard_normal((50, 12)) @ (np.eye(12) + 0.4 * rng.standard_normal((12, 12))))
    )


@pytest.mark.parametrize("method", [FoBa(), FoBa(nu=0.9), FoBa(rule="refit")])
def test_steps_of_large_blocks_lead_where_those_of_small_ones_do(monkeypatch, method):
    """Their Hessians are applied, where those of small blocks are formed."""
    small = run(method, GraphSubset.start(dense()), Goal(30))
    assert any(move == "drop" for move, _ in small.moves)
    monkeypatch.setattr(newton, "FACTORED_UP_TO", 0)
    large = run(method, GraphSubset.start(dense()), Goal(30))
    assert large.moves == small.moves
    for size, model in large.best.items():
        assert model.value == pytest.approx(small.best[size].value, abs=1e-10)
        np.testing.assert_allclose(model.coef, small.best[size].coef, atol=1e-8)


def test_removals_from_large_blocks_that_are_not_looked_at_cost_too_much(monkeypatch):
    monkeypatch.setattr(mle, "INVERTED_UP_TO", 0)
    subset = GraphSubset.start(dense())
    for edge in run(Forward(), GraphSubset.start(dense()), Goal(25)).best[25].support:
        subset.add(edge)
    costs = {}
    for edge in subset.support:
        twin = subset.copy()
        twin.drop(edge)
        costs[edge] = twin.value - subset.value
    passed_over = 0
    for at_most in sorted(costs.values())[:8]:
        found = subset.cheapest_removal("refit", at_most)
        assert found is None or found[1] == pytest.approx(costs[found[0]], abs=1e-10)
        costly = subset._too_costly(subset.support, at_most)
        assert all(costs[edge] > at_most for edge in costly)
        passed_over += len(costly)
    assert passed_over > 0


def test_a_run_that_is_taken_up_again_goes_the_same_way():
    graph = GaussianGraph(np.cov(chain(n=60).T))
    whole = run(FoBa(), GraphSubset.start(graph), Goal(9))
    first = run(FoBa(), GraphSubset.start(graph), Goal(4))
    rest = run(FoBa(), GraphSubset.start(GaussianGraph(np.cov(chain(n=60).T))), Goal(9), resume=first.moves)
    assert rest.moves == whole.moves


def test_fitted_attributes():
    X = frame()
    model = SparsePrecision(k=5).fit(X)
    S = empirical_covariance(X.to_numpy())
    assert model.edges_ == list(pairwise(NAMES))
    assert model.path_.names(5)[0] == "age -- bmi"
    assert (model.k_, model.stop_, model.n_features_in_) == (5, Stop.SIZE, 6)
    np.testing.assert_allclose(model.location_, X.mean())
    np.testing.assert_allclose(model.precision_ @ model.covariance_, np.eye(6), atol=1e-9)
    np.testing.assert_allclose(np.diag(model.covariance_), np.diag(S), rtol=1e-9)
    for i, j in model.path_.pairs(5):
        assert model.covariance_[i, j] == pytest.approx(S[i, j], rel=1e-8)
    assert model.objective_ == pytest.approx(-np.linalg.slogdet(model.precision_)[1] + 6)
    assert model.score(X) == pytest.approx(log_likelihood(S, model.get_precision()))
    assert model.error_norm(S) < 0.1
    inverse = np.linalg.inv(model.covariance_)
    away = X.to_numpy() - model.location_
    np.testing.assert_allclose(model.mahalanobis(X), np.einsum("ij,jk,ik->i", away, inverse, away))
    partial = model.partial_correlations()
    assert partial[0, 1] == pytest.approx(-model.precision_[0, 1] / np.sqrt(np.prod(np.diag(model.precision_)[:2])))
    assert "5 edges of 15" in model.summary()
    assert "age -- bmi" in model.summary()
    assert list(model.path_.column_names) == [f"{one} -- {other}" for one, other in combinations(NAMES, 2)]
    assert np.count_nonzero(model.path_.parameters(5)) == 11


def test_importance_of_edges():
    X = chain(n=50)
    model = SparsePrecision(k=9).fit(X)
    graph, chosen = GaussianGraph(empirical_covariance(X)), model.path_[9]
    assert chosen.importance_is_exact
    for edge, importance in zip(chosen.support, chosen.importance, strict=True):
        others = [graph.n_nodes + other for other in chosen.support if other != edge]
        without = graph.value(graph.refit(others, graph.start)) + graph.shift
        assert importance == pytest.approx(without - model.objective_, abs=1e-9)
    for size in range(1, 9):  # of the others it is known to second order, and exactly where there is no cycle
        likely, exact = model.path_[size], SparsePrecision(k=size).fit(X).path_[size]
        assert likely.support.tolist() == exact.support.tolist()
        np.testing.assert_allclose(likely.importance, exact.importance, rtol=1e-9 if size < 4 else 0.6)


def test_arrays_have_indices_for_names():
    model = SparsePrecision(k=2).fit(chain())
    assert all(isinstance(end, int) for edge in model.edges_ for end in edge)
    assert model.path_.names(1)[0].startswith("x")


def test_all_edges_make_the_empirical_covariance():
    X = chain(n=50)
    model = SparsePrecision(k=15).fit(X)
    np.testing.assert_allclose(model.covariance_, empirical_covariance(X), rtol=1e-8)
    assert model.path_.floor == pytest.approx(model.objective_)
    assert model.path_.explained(15) == pytest.approx(1.0)


def test_a_singular_covariance_leaves_no_share_to_be_explained():
    model = SparsePrecision(k=3).fit(chain(n=5))
    assert model.path_.floor is None
    assert "explained" not in model.summary()


@pytest.mark.parametrize("options", [{}, {"shrinkage": 0.3}, {"assume_centered": True}])
def test_weights_are_repetitions(options):
    X, rng = chain(n=40), np.random.default_rng(0)
    weights = rng.integers(0, 4, 40)
    weighted = SparsePrecision(k=6, **options).fit(X, sample_weight=weights)
    repeated = SparsePrecision(k=6, **options).fit(np.repeat(X, weights, axis=0))
    assert weighted.edges_ == repeated.edges_
    np.testing.assert_allclose(weighted.precision_, repeated.precision_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(weighted.location_, repeated.location_, atol=1e-12)


def test_units_of_the_columns_do_not_matter():
    X = chain(n=80)
    units = 10.0 ** np.array([-150, -3, 0, 2, 5, 150])
    plain, scaled = SparsePrecision(k=7).fit(X), SparsePrecision(k=7).fit(X * units)
    assert plain.edges_ == scaled.edges_
    np.testing.assert_allclose(scaled.partial_correlations(), plain.partial_correlations(), atol=1e-9)


def test_shrinkage_fits_the_shrunk_covariance():
    X = chain(n=50)
    S = empirical_covariance(X)
    model = SparsePrecision(k=15, shrinkage=0.4).fit(X)
    np.testing.assert_allclose(model.covariance_, 0.6 * S + 0.4 * np.diag(np.diag(S)), rtol=1e-9)


def test_always_and_never():
    X = frame()
    model = SparsePrecision(k=5, always=[("sleep", "age")], never=[("age", "bmi"), (2, 3)]).fit(X)
    assert ("age", "sleep") in model.edges_
    assert not {("age", "bmi"), ("bp", "sugar")} & set(model.edges_)
    assert model.path_.names(1) == ["age -- sleep"]


@pytest.mark.parametrize(
    "options", [{}, {"selection_rule": "best"}, {"cv": KFold(3)}, {"criterion": "ebic"}, {"k": range(12)}]
)
def test_the_number_of_edges_is_found(options):
    model = SparsePrecision(**options).fit(chain(n=400))
    assert model.k_ == model.path_.choice.chosen == 5
    assert model.edges_ == [(i, i + 1) for i in range(5)]


def test_the_best_size_and_the_smallest_that_is_nearly_as_good():
    X = chain(n=400, seed=4)
    best, smallest = SparsePrecision(selection_rule="best").fit(X), SparsePrecision(selection_rule="1se").fit(X)
    assert (best.k_, smallest.k_) == (best.path_.choice.best, 5) == (7, 5)


def test_no_more_than_four_edges_for_each_column_are_looked_at():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 10)) @ (np.eye(10) + rng.standard_normal((10, 10)))
    with pytest.warns(PaucaWarning, match="largest number of edges that was compared, 40, was chosen; a range"):
        assert max(SparsePrecision(criterion="aic").fit(X).path_.sizes) == 40


def likelihood(model, X, weights):
    """The mean log-likelihood of rows by its definition."""
    logdet = np.linalg.slogdet(model.precision_)[1]
    return 0.5 * (logdet - 6 * np.log(2 * np.pi) - np.average(model.mahalanobis(X), weights=weights))


@pytest.mark.parametrize("options", [{}, {"assume_centered": True}, {"tol": 0.05}, {"shrinkage": 0.2}], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_of_folds_are_likelihoods_of_rows_held_out(options, weighted):
    """Where the search on a fold ends early, its largest graph stands for those that it does not have."""
    X, cv = chain(n=60, seed=1), KFold(3)
    weights = np.random.default_rng(0).integers(0, 4, 60) if weighted else np.ones(60)
    choice = SparsePrecision(k=range(10), cv=cv, **options).fit(X, sample_weight=weights).path_.choice
    early = 0
    counted = np.flatnonzero(weights)  # rows without weight are as if they were not there
    for fold, split in enumerate(cv.split(counted)):
        train, test = (counted[side] for side in split)
        model = SparsePrecision(k=9, **options).fit(X[train], sample_weight=weights[train])
        largest = max(model.path_.sizes)
        null = likelihood(model.at(0), X[test], weights[test])
        for size in choice.sizes:
            score = likelihood(model.at(min(size, largest)), X[test], weights[test])
            assert choice.fold_scores[fold, size] == pytest.approx(score - null)
        early += largest < max(choice.sizes)
    assert (early > 0) == ("tol" in options)
    assert (max(choice.sizes) < 9) == ("tol" in options)


@pytest.mark.parametrize("shrinkage", [0.0, 0.3])
@pytest.mark.parametrize("n", [60, 50])
def test_criteria_are_those_of_the_likelihood(n, shrinkage):
    """Of the rows that have weight, and of their own covariance whatever it was shrunk to."""
    X, weights = chain(n=60), np.repeat([1.0, 0.0], [n, 60 - n])
    found = SparsePrecision(k=range(10), criterion="bic", shrinkage=shrinkage).fit(X, sample_weight=weights)
    model = SparsePrecision(k=9, shrinkage=shrinkage).fit(X[:n])
    for size in found.path_.choice.sizes:
        fit = likelihood(model.at(size), X[:n], None)
        assert found.path_.choice.mean[size] == pytest.approx(-2 * n * fit + np.log(n) * (6 + size))


def test_columns_that_have_nothing_to_do_with_each_other():
    X = np.random.default_rng(0).standard_normal((200, 5))
    with pytest.warns(PaucaWarning, match="No edge was chosen: none makes held-out rows more likely") as found:
        model = SparsePrecision().fit(X)
    assert "independent" not in str(found[0].message)
    assert model.edges_ == []
    assert "No edge helps on held-out data" in model.summary()
    np.testing.assert_allclose(model.covariance_, np.diag(X.var(axis=0)), rtol=1e-9)


@pytest.mark.parametrize(
    ("options", "seed", "message"),
    [
        ({"criterion": "ebic"}, 10, "none lowers the extended BIC"),
        ({"k": [0, 3]}, 10, "none makes held-out rows more likely"),
        ({"k": [0, 3]}, 4, r"most likely with 3, but by less than one standard error.*selection_rule='best'"),
    ],
)
def test_few_rows_say_little_and_nobody_calls_the_columns_independent(options, seed, message):
    X = chain(n=12, seed=seed)
    with pytest.warns(PaucaWarning, match=rf"No edge was chosen: .*{message}") as found:
        assert SparsePrecision(**options).fit(X).k_ == 0
    assert "more rows would show it" in str(found[0].message)
    assert not any(word in str(found[0].message) for word in ("feature", "constant", "independent"))


def test_all_that_is_said_of_an_end_is_true_of_edges():
    X = chain(n=50)
    ends = [SparsePrecision(k=15, method="forward"), SparsePrecision(k=None, tol=0.1), SparsePrecision(k=None)]
    for model in ends:
        assert not any(word in model.fit(X).stop_.message for word in ("feature", "column", "target"))
    assert {model.stop_ for model in ends} == {Stop.SIZE, Stop.TOLERANCE, Stop.EXHAUSTED}


def test_more_edges_than_there_are():
    with pytest.warns(PaucaWarning, match="There are fewer edges than k=30: only 15 exist"):
        assert SparsePrecision(k=30).fit(chain()).k_ == 15
    with pytest.warns(PaucaWarning, match="only 14 of 15 may be used: 'never' leaves out the others"):
        assert SparsePrecision(k=30, never=[(0, 5)]).fit(chain()).k_ == 14


def test_sizes_beyond_all_edges_are_not_compared():
    """As for features: no error and no warning."""
    X = chain(n=400)
    assert SparsePrecision(k=range(1, 100)).fit(X).path_.choice.sizes.tolist() == list(range(1, 16))
    assert SparsePrecision(k=[5, 40]).fit(X).k_ == 5
    assert SparsePrecision(k=[40, 50]).fit(X).k_ == 15


def test_a_single_column():
    X = chain()[:, :1]
    with pytest.warns(PaucaWarning, match="only 0 exist"):
        model = SparsePrecision(k=1).fit(X)
    assert model.covariance_ == pytest.approx(X.var())
    assert SparsePrecision().fit(X).k_ == 0


def test_time_callback_and_progress():
    seen = []
    X = chain()
    model = SparsePrecision(k=8, callback=lambda progress: seen.append(progress.size) or progress.size == 3).fit(X)
    assert (seen, model.k_, model.stop_) == ([1, 2, 3], 3, Stop.CALLBACK)
    with pytest.warns(PaucaWarning, match="k=8 edges were requested, but the time limit was reached at 1"):
        assert SparsePrecision(k=8, time_limit=1e-9).fit(X).k_ == 1


@pytest.mark.parametrize("options", [{}, {"criterion": "bic"}, {"n_jobs": 2}], ids=str)
def test_time_callback_and_progress_where_the_size_is_chosen(options):
    seen = []
    X, n_folds = chain(), 0 if "criterion" in options else 5
    model = SparsePrecision(k=range(1, 9), callback=seen.append, **options).fit(X)
    assert {progress.fold for progress in seen} == {None, *range(n_folds)}
    assert model.stop_ is Stop.SIZE
    ended = SparsePrecision(k=range(1, 9), callback=lambda progress: progress.size == 3, **options).fit(X)
    assert ended.stop_ is Stop.CALLBACK
    assert max(ended.path_.sizes) in ({3} if "n_jobs" not in options else {1, 2, 3})  # a fold may be there first
    assert SparsePrecision(k=range(1, 9), time_limit=1e-9, **options).fit(X).stop_ is Stop.TIME


def test_an_interrupt_keeps_what_was_found():
    def interrupt(progress):
        if progress.size == 3:
            raise KeyboardInterrupt

    with pytest.warns(PaucaWarning, match="interrupted; the graphs up to 3 edges were kept"):
        assert SparsePrecision(k=8, callback=interrupt).fit(chain()).stop_ is Stop.INTERRUPTED


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_searches_run_in_one_thread_each(n_jobs):
    """Pools of threads that wait for each other would make them many times slower."""
    seen = set()

    def look(_):
        seen.update(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")

    with threadpool_limits(2):
        SparsePrecision(k=range(8), n_jobs=n_jobs, callback=look).fit(chain())
        assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {2}
    assert seen == {1}


@pytest.mark.parametrize("method", ["score", "mahalanobis"])
class TestRowsAreReadAsByEveryEstimator:
    """As ``predict`` of a regressor reads them."""

    def test_by_name(self, method):
        X = frame()
        evaluate = getattr(SparsePrecision(k=4).fit(X), method)
        np.testing.assert_allclose(evaluate(X.assign(other=1.0)[["other", *NAMES[::-1]]]), evaluate(X), rtol=1e-13)
        with pytest.raises(ValueError, match="same order as they were in fit"):
            evaluate(X[NAMES[::-1]])
        with pytest.raises(ValueError, match="needs columns that X does not have: 'bp'"):
            evaluate(X.drop(columns="bp"))
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            np.testing.assert_allclose(evaluate(X.to_numpy()), evaluate(X), rtol=1e-12)

    @pytest.mark.parametrize(("value", "message"), [(np.nan, "contains NaN"), (np.inf, "contains infinity")])
    def test_what_is_not_finite_is_named(self, method, value, message):
        X = frame()
        model = SparsePrecision(k=4).fit(X)
        X.loc[3, "salt"] = value
        with pytest.raises(ValueError, match=rf"(?s){message}.*Found in: 'salt'. Leave out those rows"):
            getattr(model, method)(X)
        with pytest.raises(ValueError, match=rf"(?s){message}.*Found in: 'x4'"):
            getattr(SparsePrecision(k=4).fit(chain()), method)(X.to_numpy())

    def test_other_tables(self, method):
        X = chain()
        with pytest.raises(NotFittedError):
            getattr(SparsePrecision(), method)(X)
        evaluate = getattr(SparsePrecision(k=4).fit(X), method)
        with pytest.raises(TypeError, match="dense data is required"):
            evaluate(csr_array(X))
        with pytest.raises(ValueError, match="expecting 6 features"):
            evaluate(X[:, :5])
        whole = np.round(100 * X).astype(int)
        np.testing.assert_allclose(evaluate(whole), evaluate(whole.astype(float)))
        np.testing.assert_allclose(evaluate(X.astype(np.float32)), evaluate(X), rtol=1e-4)
