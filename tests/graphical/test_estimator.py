"""SparsePrecision: its contract with scikit-learn, its choice of size, its files, and what it refuses."""

import pickle
from functools import cache
from itertools import combinations, pairwise

import numpy as np
import pandas as pd
import pytest
from graph_coordinates import GaussianGraph
from scipy.linalg import hadamard
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.covariance import empirical_covariance, log_likelihood
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info, threadpool_limits

import pauca
from pauca import ModelFileError, PaucaWarning, SparsePrecision, Stop
from pauca.custom.select import select
from pauca.graphical import mle, newton
from pauca.graphical.subset import GraphSubset
from pauca.methods import FoBa, Forward
from pauca.runs.run import Goal, run

NAMES = ["age", "bmi", "bp", "sugar", "salt", "sleep"]


def chain(n=300, p=6, seed=0):
    """Rows of a chain: every column depends on its neighbours alone."""
    theta = np.eye(p) + 0.45 * (np.eye(p, k=1) + np.eye(p, k=-1))
    rng = np.random.default_rng(seed)
    return 3.0 + rng.standard_normal((n, p)) @ np.linalg.cholesky(np.linalg.inv(theta)).T


def frame(**options):
    return pd.DataFrame(chain(**options), columns=NAMES)


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
@parametrize_with_checks(
    [
        SparsePrecision(),
        SparsePrecision(k=2, shrinkage=0.1),
        SparsePrecision(k=5, method="exchange", shrinkage=0.1),
        SparsePrecision(k=range(3), n_jobs=2, assume_centered=True),
    ]
)
def test_scikit_learn_checks(estimator, check):
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
    with pytest.warns(PaucaWarning, match="No edge was chosen: none makes rows held out more likely") as found:
        model = SparsePrecision().fit(X)
    assert "independent" not in str(found[0].message)
    assert model.edges_ == []
    assert "No edge helps on data held out" in model.summary()
    np.testing.assert_allclose(model.covariance_, np.diag(X.var(axis=0)), rtol=1e-9)


@pytest.mark.parametrize(
    ("options", "seed", "message"),
    [
        ({"criterion": "ebic"}, 10, "none lowers the extended BIC"),
        ({"k": [0, 3]}, 10, "none makes rows held out more likely"),
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


def test_rows_that_are_all_alike_have_a_likelihood():
    X = chain()
    model = SparsePrecision(k=4, assume_centered=True).fit(X)
    for rows in (X[:1], np.repeat(X[:1], 3, axis=0)):
        assert model.score(rows) == pytest.approx(log_likelihood(rows.T @ rows / len(rows), model.precision_))


def test_likelihoods_of_values_too_large_to_be_squared():
    model = SparsePrecision(k=4).fit(frame())
    with pytest.raises(ValueError, match=r"too large to be squared.*'bp'"):
        model.score(frame().assign(bp=1e200 * np.arange(300)))


def test_covariances_of_other_columns_are_refused():
    model = SparsePrecision(k=4).fit(chain())
    with pytest.raises(ValueError, match=r"the 6 columns of the fit; its shape is \(5, 5\)"):
        model.error_norm(np.eye(5))
    with pytest.raises(NotFittedError):
        SparsePrecision().error_norm(np.eye(5))


def test_clone_pickle_and_search():
    X = frame()
    model = SparsePrecision(k=4, method=FoBa(nu=0.3)).fit(X)
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.precision_, model.precision_)
    assert GridSearchCV(SparsePrecision(), {"k": [1, 5]}).fit(X).best_params_ == {"k": 5}


@pytest.mark.parametrize(
    "made",
    [
        lambda: SparsePrecision(k=4, always=[("bmi", "age")], method=FoBa(nu=0.3)).fit(frame()),
        lambda: SparsePrecision(shrinkage=0.2).fit(frame()),
        lambda: SparsePrecision(k=3).fit(chain(n=5)),
        lambda: SparsePrecision(k=3).fit(chain()).at(0),
    ],
    ids=["frame", "chosen", "few rows", "size 0"],
)
def test_files(tmp_path, made):
    model = made()
    has_names = hasattr(model, "feature_names_in_")
    model.save(tmp_path / "graph.json")
    again = pauca.load(tmp_path / "graph.json")
    assert again.get_params()["method"] == model.get_params()["method"]
    assert (again.edges_, again.k_, again.n_features_in_) == (model.edges_, model.k_, 6)
    np.testing.assert_array_equal(again.covariance_, model.covariance_)
    np.testing.assert_array_equal(again.at(1).precision_, model.at(1).precision_)
    assert again.summary() == model.summary()
    rows = frame(seed=1) if has_names else chain(seed=1)
    assert again.score(rows) == model.score(rows)
    assert list(again.path_.column_names) == list(model.path_.column_names)
    assert getattr(again, "feature_names_in_", np.array([])).tolist() == (NAMES if has_names else [])


def test_files_and_pickles_name_columns_and_no_edges(tmp_path):
    X = pd.DataFrame(chain(n=100, p=80), columns=[f"column {j}" for j in range(80)])
    model = SparsePrecision(k=2, method="forward").fit(X)
    assert len(pickle.dumps(model.path_)) < 10_000
    model.save(tmp_path / "graph.json")
    assert "column 3 -- column 4" not in (tmp_path / "graph.json").read_text()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("location_", [0.0] * 5, "5 columns have 10 edges"),
        ("free", [1.0] * 5, "6 positive diagonal entries"),
        ("free", [-1.0] * 6, "6 positive diagonal entries"),
        ("free", [1e-3] * 6, "not positive definite"),
        ("_nodes", ["a"], "names of all 6 columns"),
        ("features", {"count": 15, "names": list("abcdefghijklmno")}, "edges have no names but those of their columns"),
    ],
)
def test_files_that_do_not_go_together_are_refused(tmp_path, field, value, message):
    import json

    SparsePrecision(k=3).fit(chain()).save(tmp_path / "graph.json")
    document = json.loads((tmp_path / "graph.json").read_text())
    del document["checksum"]
    if field == "free":
        for model in document["models"]:
            model["free"] = value
    elif field == "features":
        document["features"] = value
    else:
        document["arrays"][field] = {"array": value, "dtype": "str" if field == "_nodes" else "float64"}
    (tmp_path / "graph.json").write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match=message):
        pauca.load(tmp_path / "graph.json")


def dependent():
    X = frame()
    X["salt"] = X["age"] + 2 * X["bmi"]
    return X


BAD_TABLES = {
    "missing": (frame().mask(lambda X: X > 5), r"contains NaN.*Found in: 'age'"),
    "infinite": (frame() * [1, 1, np.inf, 1, 1, 1], r"contains infinity.*'bp'"),
    "constant": (frame().assign(bp=7.0), "do not vary have no precision: 'bp'"),
    "copies": (frame().assign(salt=lambda X: 3 - X["age"]), "Columns 'age' and 'salt' are the same up to their units"),
    "dependent": (dependent(), "linear combinations of others: '(age|bmi|salt)'"),
    "one row": (frame(n=1), "1 sample"),
    "words": (frame().assign(age="old"), "do not hold numbers: 'age'"),
    "three dimensions": (np.zeros((3, 3, 3)), "dim"),
}


@pytest.mark.parametrize("k", [3, "auto"])
@pytest.mark.parametrize(("X", "message"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_bad_tables_are_refused(X, message, k):
    with pytest.raises((ValueError, TypeError), match=f"(?s){message}"):
        SparsePrecision(k=k).fit(X)


def test_shrinkage_takes_singular_covariances():
    for X in (dependent(), BAD_TABLES["copies"][0], frame(n=4)):
        model = SparsePrecision(k=15, shrinkage=0.1).fit(X)
        assert np.linalg.cond(model.partial_correlations()) < 1e4


def test_few_rows():
    X = np.random.default_rng(0).standard_normal((6, 12))  # five once the mean is taken off: fewer than 15 edges
    assert SparsePrecision(k=14).fit(X).k_ == 14
    with pytest.raises(ValueError, match=r"6 different rows to fit 12 columns.*more than 14 edges.*at most k=14"):
        SparsePrecision(k=15).fit(X)
    with pytest.raises(ValueError, match="at most k=14"):
        SparsePrecision(k=None).fit(X)
    with pytest.raises(ValueError, match="at most k=14"):
        SparsePrecision(k=15).fit(np.vstack([X, X, X]))
    assert SparsePrecision(k=15, shrinkage=0.2).fit(X).k_ == 15
    with pytest.raises(ValueError, match="at most k=20"):  # six if the mean is known
        SparsePrecision(k=21, assume_centered=True).fit(X)
    assert SparsePrecision(k=20, assume_centered=True).fit(X).k_ == 20


@pytest.mark.parametrize(("n", "p", "k"), [(2, 5, 2), (2, 2, 1), (3, 5, "auto"), (3, 2, "auto"), (2, 5, "auto")])
def test_rows_that_say_nothing_of_edges(n, p, k):
    """Any two columns are the same up to their units, and none of them is to blame."""
    where = " of the smallest fold" if k == "auto" else ""
    with pytest.raises(ValueError, match=f"different rows?{where} to fit, any two columns.*Use more rows"):
        SparsePrecision(k=k).fit(chain(n=n)[:, :p])


def test_few_rows_in_a_fold():
    X = np.random.default_rng(0).standard_normal((6, 5))  # of full rank, but not without a fifth of the rows
    with pytest.raises(ValueError, match=r"4 different rows of the smallest fold to fit 5 columns.*at most k=5"):
        SparsePrecision(k=range(11)).fit(X)
    with pytest.warns(PaucaWarning):
        assert max(SparsePrecision(selection_rule="best").fit(X).path_.choice.sizes) <= 5


def test_a_likelihood_without_a_maximum_is_named():
    X = np.random.default_rng(0).standard_normal((8, 12))
    X[:, 2] = X[:, 0] + X[:, 1]  # rank seven all the same, and yet three columns depend on each other
    with pytest.raises(ValueError, match="no maximum: 'x0', 'x1', 'x2'"):
        SparsePrecision(k=3, always=[(0, 1), (0, 2), (1, 2)]).fit(X)


def test_columns_that_are_copies_in_a_fold():
    X = chain(n=40)
    X[:, 3] = X[:, 1]
    X[7, 3] += 1.0
    with pytest.raises(ValueError, match=r"no maximum: 'x1', 'x3' are linearly dependent, up to rounding.*of a fold"):
        SparsePrecision().fit(X)


def test_columns_that_are_constant_in_a_fold():
    X = chain(n=40)
    X[:, 3] = np.arange(40) == 7
    with pytest.raises(ValueError, match="constant on the rows of a fold: 'x3'"):
        SparsePrecision().fit(X)
    assert SparsePrecision(k=5).fit(X).k_ == 5


BAD_OPTIONS = [
    ({"k": 0}, ValueError, "k"),
    ({"k": 2.5}, TypeError, "k"),
    ({"k": "many"}, ValueError, "k"),
    ({"method": "magic"}, ValueError, "method must be one of"),
    ({"shrinkage": 1.0}, ValueError, r"range \[0, 1\)"),
    ({"shrinkage": -0.1}, ValueError, r"shrinkage.*range \[0, 1\)"),
    ({"shrinkage": np.nan}, ValueError, r"shrinkage.*range \[0, 1\)"),
    ({"shrinkage": "some"}, TypeError, "shrinkage"),
    ({"selection_rule": "worst"}, ValueError, "selection_rule"),
    ({"criterion": "cic"}, ValueError, "criterion"),
    ({"criterion": "bic", "cv": 3}, ValueError, "needs no folds"),
    ({"cv": 1}, ValueError, "cv"),
    ({"tol": -1}, ValueError, "tol"),
    ({"n_jobs": 0}, ValueError, "n_jobs"),
    ({"assume_centered": 1}, TypeError, "assume_centered"),
    ({"time_limit": 0}, ValueError, "time_limit"),
    ({"callback": 3}, TypeError, "callback"),
    ({"always": "age"}, TypeError, "list of pairs"),
    ({"always": [("age", "bmi", "bp")]}, TypeError, "list of pairs"),
    ({"always": [("age", "bm")]}, ValueError, "Did you mean 'bmi'"),
    ({"never": [("age", "age")]}, ValueError, "to itself"),
    ({"never": [(0, 9)]}, ValueError, "columns 0 to 5"),
    ({"always": [("age", "bmi")], "never": [(1, 0)]}, ValueError, "age -- bmi cannot be both"),
    ({"k": 1, "always": [(0, 1), (1, 2)]}, ValueError, "more than k=1"),
    ({"k": [0, 1], "always": [(0, 1), (1, 2)]}, ValueError, "more than k=1"),
]


@pytest.mark.parametrize(("options", "kind", "message"), BAD_OPTIONS, ids=str)
def test_bad_options_are_refused(options, kind, message):
    with pytest.raises(kind, match=message):
        SparsePrecision(**options).fit(frame())


@pytest.mark.parametrize("correlation", [0.999, 0.9999, 0.99999])
@pytest.mark.parametrize("seed", range(3))
def test_strong_correlations_have_a_maximum(correlation, seed):
    """Entries of the precision are then in the tens of thousands, and the trace loses digits."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, 1)) + np.sqrt(1 - correlation) * rng.standard_normal((200, 8))
    model = SparsePrecision(k=20).fit(X)
    wanted = np.cov(X.T, bias=True)
    there = (model.precision_ != 0) | np.eye(8, dtype=bool)
    assert there.sum() == 8 + 40
    np.testing.assert_allclose(model.covariance_[there], wanted[there], rtol=1e-8)


def test_orthogonal_columns(monkeypatch):
    """The empty graph is the optimum to the last digit: steps of zero length divide by nothing."""
    monkeypatch.setattr(newton, "FACTORED_UP_TO", 0)
    model = SparsePrecision(k=5, method="backward", never=[(0, 1)]).fit(hadamard(16)[:, 1:9].astype(float))
    np.testing.assert_allclose(model.precision_, np.eye(8), atol=1e-12)
    assert all((0, 1) not in model.path_.pairs(size) for size in model.path_.sizes)


def test_units_too_small_for_a_precision():
    X = np.random.default_rng(0).standard_normal((50, 4))
    X[:, 1] *= 1e-158
    with pytest.raises(ValueError, match=r"vary by less than 1e-150: 'x1'. Give them larger units"):
        SparsePrecision(k=2).fit(X)
    X[:, 1] *= 1e10
    assert np.isfinite(SparsePrecision(k=2).fit(X).precision_).all()


def test_backward_needs_more_rows_than_columns():
    X = np.random.default_rng(0).standard_normal((8, 12))
    with pytest.raises(ValueError, match="Backward search starts from all edges: choose another method"):
        SparsePrecision(k=3, method="backward").fit(X)


def test_a_graph_of_one_variable_is_saved(tmp_path):
    with pytest.warns(PaucaWarning, match="only 0 exist"):
        model = SparsePrecision(k=1).fit(np.array([[3.1], [-1.8], [-1.7]]))
    model.save(tmp_path / "graph.json")
    np.testing.assert_array_equal(pauca.load(tmp_path / "graph.json").precision_, model.precision_)
