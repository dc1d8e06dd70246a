"""Gaussian graphs with few edges: closed forms against grids, refits against scipy, searches against all edge sets."""

import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from graph_coordinates import GaussianGraph
from scipy.optimize import minimize

from pauca.constraints.limits import Limits
from pauca.graphical import mle, objective
from pauca.graphical.blocks import blocks
from pauca.graphical.covariance import NoMaximumError
from pauca.graphical.edges import EdgeNames, Edges
from pauca.graphical.newton import FACTORED_UP_TO, HessianOperator, Pattern, hessian
from pauca.graphical.objective import least_cost
from pauca.graphical.subset import INVERTED_UP_TO, GraphCache, GraphSubset
from pauca.methods import Forward
from pauca.runs.run import Goal, Stop, run


def covariance(p, n=40, seed=0):
    """That of correlated columns in various units."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) @ (np.eye(p) + 0.5 * rng.standard_normal((p, p)))
    return np.cov((X * 10.0 ** rng.integers(-2, 3, p)).T, bias=True)


def value(S, theta):
    """Q from its definition."""
    if np.linalg.eigvalsh(theta)[0] <= 0:
        return np.inf
    return np.trace(S @ theta) - np.linalg.slogdet(theta)[1]


def matrix(graph, w):
    """Theta from its definition, for correlations."""
    theta = np.diag(w[: graph.n_nodes])
    theta[np.triu_indices(graph.n_nodes, 1)] = w[graph.n_nodes :]
    return theta + np.triu(theta, 1).T


def coords(graph, edges):
    return [graph.n_nodes + graph.edges.number(i, j) for i, j in edges]


def refitted(graph, edges):
    return graph.refit(coords(graph, edges), graph.start)


def judged(S, edges):
    """The least Q on some edges, by scipy: a trust region shrinks where a step would lead out of the domain."""
    p = len(S)
    first, second = (np.concatenate([np.arange(p), ends]) for ends in np.array(edges, dtype=int).reshape(-1, 2).T)
    times = np.where(first == second, 1.0, 2.0)

    def theta(entries):
        made = np.zeros((p, p))
        made[first, second] = made[second, first] = entries
        return made

    def slope(entries):
        return times * (S - np.linalg.inv(theta(entries)))[first, second]

    def bend(entries):
        sigma = np.linalg.inv(theta(entries))
        one, other = sigma[np.ix_(first, first)], sigma[np.ix_(first, second)]
        return 0.5 * np.outer(times, times) * (one * sigma[np.ix_(second, second)] + other * other.T)

    start = np.concatenate([np.ones(p), np.zeros(len(edges))])
    found = minimize(
        lambda entries: value(S, theta(entries)),
        start,
        jac=slope,
        hess=bend,
        method="trust-exact",
        options={"gtol": 1e-9},
    )
    assert np.linalg.norm(slope(found.x)) < 1e-8
    return found.fun


def random_edges(p, q, seed=0):
    rng = np.random.default_rng(seed)
    every = list(combinations(range(p), 2))
    return [every[place] for place in sorted(rng.choice(len(every), q, replace=False))]


GRAPHS = {
    "none": (5, []),
    "one edge": (5, [(1, 3)]),
    "chain": (6, [(i, i + 1) for i in range(5)]),
    "star": (6, [(2, j) for j in (0, 1, 3, 4, 5)]),
    "cycle": (6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)]),
    "two cycles at a node": (7, [(0, 1), (1, 2), (2, 3), (0, 3), (3, 4), (4, 5), (5, 6), (3, 6)]),
    "parts": (8, [(0, 1), (1, 2), (2, 3), (0, 3), (5, 6), (6, 7)]),
    "ladder": (8, [(0, 2), (2, 4), (4, 6), (1, 3), (3, 5), (5, 7), (0, 1), (2, 3), (4, 5), (6, 7)]),
    "random": (12, random_edges(12, 25)),
    "all": (5, list(combinations(range(5), 2))),
}


def test_edges_are_the_upper_triangle():
    edges = Edges(7)
    pairs = [edges.pair(number) for number in range(len(edges))]
    assert pairs == list(combinations(range(7), 2))
    assert [edges.number(j, i) for i, j in pairs] == list(range(21))
    square = np.arange(49.0).reshape(7, 7)
    assert edges.read(square).tolist() == [square[pair] for pair in pairs]


def test_names_of_edges_are_those_of_their_ends():
    names = EdgeNames(7, None)
    assert list(names) == [f"x{i} -- x{j}" for i, j in combinations(range(7), 2)]
    assert (len(names), names[-1], names[1:3]) == (21, "x5 -- x6", ["x0 -- x2", "x0 -- x3"])
    assert EdgeNames(3, np.array(["a", "b", "c"]))[1] == "a -- c"
    with pytest.raises(IndexError):
        names[21]


@pytest.mark.parametrize("seed", range(20))
def test_blocks_are_the_edges_on_common_cycles(seed):
    p = 9
    pairs = random_edges(p, 3 + seed % 11, seed)

    def joined(without_node, i, j):
        """Whether a path leads from i to j that avoids a node."""
        reached, ends = {i}, [i]
        while ends:
            node = ends.pop()
            near = {b if a == node else a for a, b in pairs if node in (a, b)} - {without_node} - reached
            reached |= near
            ends += near
        return j in reached

    found = blocks(*np.array(pairs).T)
    assert sorted(place for block in found for place in block) == list(range(len(pairs)))
    of = {place: number for number, block in enumerate(found) for place in block}
    for (e, one), (f, other) in combinations(enumerate(pairs), 2):
        shared = set(one) & set(other)
        if shared:  # two edges at a node lie on a cycle exactly if their other ends are joined without it
            node = shared.pop()
            ends = [next(end for end in pair if end != node) for pair in (one, other)]
            assert (of[e] == of[f]) == joined(node, *ends)


def test_blocks_of_a_long_chain_need_no_deep_stack():
    assert len(blocks(np.arange(5000), np.arange(1, 5001))) == 5000


@pytest.mark.parametrize(("p", "edges"), GRAPHS.values(), ids=GRAPHS)
def test_refit_is_optimal_and_equals_scipy(p, edges):
    graph = GaussianGraph(covariance(p))
    w = refitted(graph, edges)
    theta, R = matrix(graph, w), graph.correlation
    sigma = np.linalg.inv(theta)
    assert set(np.flatnonzero(w[p:])) == {graph.edges.number(*edge) for edge in edges}
    np.testing.assert_allclose(np.diag(sigma), 1.0, atol=1e-9)
    for i, j in edges:
        assert sigma[i, j] == pytest.approx(R[i, j], abs=1e-9)
    assert graph.value(w) == pytest.approx(value(R, theta), rel=1e-12)
    assert graph.value(w) == pytest.approx(judged(R, edges), rel=1e-7)
    assert graph.value(w) <= judged(R, edges) + 1e-9
    np.testing.assert_allclose(graph.sigma(w), sigma, atol=1e-9)


@pytest.mark.parametrize(("p", "edges"), GRAPHS.values(), ids=GRAPHS)
def test_units_of_the_columns_change_nothing(p, edges):
    S = covariance(p)
    graph = GaussianGraph(S)
    w = refitted(graph, edges)
    np.testing.assert_allclose(graph.precision(w) @ graph.covariance(w), np.eye(p), atol=1e-8)
    np.testing.assert_allclose(np.diag(graph.covariance(w)), np.diag(S), rtol=1e-9)
    assert value(S, graph.precision(w)) == pytest.approx(graph.value(w) + np.log(np.diag(S)).sum(), rel=1e-9)
    for i, j in edges:
        assert graph.covariance(w)[i, j] == pytest.approx(S[i, j], rel=1e-7)


def test_all_edges_make_the_inverse_of_the_covariance():
    S = covariance(6)
    graph = GaussianGraph(S)
    np.testing.assert_allclose(graph.precision(refitted(graph, combinations(range(6), 2))), np.linalg.inv(S), rtol=1e-8)


def test_refits_beyond_what_a_formed_hessian_holds():
    p = 80
    edges = random_edges(p, 550)
    graph = GaussianGraph(covariance(p, n=600))
    assert p + len(edges) > FACTORED_UP_TO
    w = refitted(graph, edges)
    slope = graph.gradient(w)
    assert np.abs(slope[[*range(p), *coords(graph, edges)]]).max() < 1e-8


def test_refits_do_not_depend_on_where_they_begin():
    graph = GaussianGraph(covariance(10))
    edges = random_edges(10, 20, seed=3)
    w = refitted(graph, edges[:12])
    fresh = refitted(GaussianGraph(covariance(10)), edges)
    np.testing.assert_allclose(graph.refit(coords(graph, edges), w), fresh, atol=1e-9)
    fewer = refitted(GaussianGraph(covariance(10)), edges[5:])
    np.testing.assert_allclose(graph.refit(coords(graph, edges[5:]), fresh), fewer, atol=1e-9)


@pytest.mark.parametrize(("p", "edges"), GRAPHS.values(), ids=GRAPHS)
def test_derivatives(p, edges):
    graph = GaussianGraph(covariance(p))
    rng = np.random.default_rng(1)
    w = refitted(graph, edges) + 0.01 * rng.standard_normal(graph.n_coords)
    found, slope = graph.value_and_gradient(w)
    assert found == pytest.approx(value(graph.correlation, matrix(graph, w)), rel=1e-12)
    np.testing.assert_array_equal(slope, graph.gradient(w))
    some = np.unique(np.concatenate([rng.choice(graph.n_coords, 6), [0, p]]))
    second = graph.hessian(w, some)
    np.testing.assert_allclose(np.diag(second), graph.curvature(w)[some], rtol=1e-10)
    for place, coord in enumerate(some):
        h = np.zeros_like(w)
        h[coord] = 1e-5
        assert (graph.value(w + h) - graph.value(w - h)) / 2e-5 == pytest.approx(slope[coord], abs=1e-6)
        bent = (graph.gradient(w + h) - graph.gradient(w - h)) / 2e-5
        np.testing.assert_allclose(second[place], bent[some], atol=1e-5 * np.abs(second).max())


@pytest.mark.parametrize("name", ["none", "chain", "cycle", "parts", "random"])
def test_gains_are_those_of_the_best_step(name):
    p, edges = GRAPHS[name]
    graph = GaussianGraph(covariance(p))
    w = refitted(graph, edges)
    w[:p] *= np.linspace(1.0, 1.2, p)  # away from the optimum too
    theta, before = matrix(graph, w), graph.value(w)
    gains = graph.gains(w)
    assert np.all(gains[:p] == 0.0)
    for i, j in [(0, 1), (0, 3), (1, 4), (2, 4)]:

        def moved(step, i=i, j=j):
            there = theta.copy()
            there[i, i] += step[0]
            there[j, j] += step[1]
            there[[i, j], [j, i]] += step[2]
            return min(value(graph.correlation, there), 1e6)

        found = minimize(
            moved, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 4000}
        )
        gain = gains[p + graph.edges.number(i, j)]
        assert gain == pytest.approx(before - found.fun, rel=1e-5, abs=1e-9)
        alone = min(moved([0.0, 0.0, t]) for t in np.linspace(-3, 3, 601))
        assert gain >= before - alone - 1e-9


@pytest.mark.parametrize("name", ["none", "chain", "cycle", "parts", "random"])
def test_gains_are_at_most_those_of_refits_and_equal_between_parts(name):
    p, edges = GRAPHS[name]
    graph = GaussianGraph(covariance(p))
    w = refitted(graph, edges)
    gains = graph.gains(w)
    sigma = graph.sigma(w)
    for i, j in set(combinations(range(p), 2)) - set(edges):
        true = graph.value(w) - graph.value(graph.refit(coords(graph, [*edges, (i, j)]), w))
        gain = gains[p + graph.edges.number(i, j)]
        assert -1e-12 <= gain <= true + 1e-12
        if sigma[i, j] == 0.0:
            assert gain == pytest.approx(true, rel=1e-9)


@pytest.mark.parametrize("name", ["one edge", "chain", "cycle", "random", "all"])
def test_costs_of_removals_are_exact(name):
    p, edges = GRAPHS[name]
    graph = GaussianGraph(covariance(p, n=15))
    w = refitted(graph, edges)
    units = coords(graph, edges)
    for unit, cost in zip(units, graph.removal_costs(w, units), strict=True):
        without = w.copy()
        without[unit] = 0.0
        assert cost == pytest.approx(value(graph.correlation, matrix(graph, without)) - graph.value(w), rel=1e-8)


def test_a_removal_that_leaves_no_definite_matrix_costs_infinitely_much():
    graph = GaussianGraph(np.array([[1.0, 0.9, 0.6], [0.9, 1.0, 0.85], [0.6, 0.85, 1.0]]))
    w = refitted(graph, combinations(range(3), 2))
    without = w.copy()
    without[3] = 0.0
    assert graph.value(without) == np.inf == graph.removal_costs(w, [3])[0]
    with pytest.raises(ValueError, match="positive definite"):
        graph.gradient(without)


@pytest.mark.parametrize("seed", range(3))
def test_graphs_that_follow_from_one_another_are_those_fitted_afresh(seed):
    """Edges come and go one at a time; blocks are joined and split, and Sigma is updated from what stays."""
    p, rng = INVERTED_UP_TO + 10, np.random.default_rng(seed)
    graph = GaussianGraph(covariance(p, n=4 * p, seed=seed))
    cache, fresh = GraphCache(graph, Limits()), GaussianGraph(covariance(p, n=4 * p, seed=seed)).mle
    near = frozenset()
    assert cache.optimum(near, near).value == p
    for step in range(150):
        leaves = len(near) > 5 and rng.random() < 0.3
        edge = int(rng.choice(sorted(near))) if leaves else int(rng.integers(len(graph.edges)))
        if step > 100:  # a few nodes get many edges: large blocks, which fall apart again
            edge = int(rng.choice(sorted(near))) if leaves else graph.edges.number(*rng.choice(15, 2, replace=False))
        there = near ^ {edge}
        found, anew = cache.optimum(there, near), fresh.fit(there, lambda: np.eye(p))
        assert found.value == pytest.approx(anew.value, rel=1e-12)
        assert set(found.cyclic) == set(anew.cyclic)
        np.testing.assert_array_equal(found.single, anew.single)
        np.testing.assert_allclose(found.theta(p), anew.theta(p), atol=1e-9)
        np.testing.assert_allclose(found.diagonal(p), np.diag(anew.theta(p)), atol=1e-9)
        units = sorted(there)
        np.testing.assert_allclose(
            found.entries(units), anew.theta(p)[graph.edges.first[units], graph.edges.second[units]], atol=1e-9
        )
        point = cache.covariance(there)
        np.testing.assert_allclose(point.sigma @ anew.theta(p), np.eye(p), atol=1e-10)
        assert point.logdet == pytest.approx(p - anew.value, abs=1e-9)
        near = there


def test_what_a_removal_costs_is_never_below_what_second_order_allows():
    p = 14
    graph = GaussianGraph(covariance(p, n=60))
    support = frozenset(graph.edges.number(*edge) for edge in random_edges(p, 40, seed=2))
    best = graph.mle.fit(support, lambda: np.eye(p))
    block = max(best.cyclic.values(), key=lambda block: len(block.edges))
    sigma = np.linalg.inv(block.theta)
    sharper = block.refined_removal_costs(block.edges, sigma)
    for edge, estimate in zip(block.edges, block.removal_costs, strict=True):
        true = graph.mle.fit(support - {edge}, lambda: np.eye(p)).value - best.value
        assert true >= least_cost(estimate) - 1e-12
        assert sharper[edge] == pytest.approx(estimate, rel=1e-2)


def test_points_follow_many_small_moves():
    graph = GaussianGraph(covariance(30))
    rng = np.random.default_rng(0)
    w = graph.start
    for _ in range(120):
        w = w.copy()
        w[30 + rng.choice(len(graph.edges))] += 0.02 * rng.standard_normal()
        w[rng.choice(30)] *= 1.01
        theta = matrix(graph, w)
        assert graph.value(w) == pytest.approx(value(graph.correlation, theta), rel=1e-11)
        np.testing.assert_allclose(graph.sigma(w), np.linalg.inv(theta), atol=1e-11)


def test_no_maximum_is_named():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 5))
    X[:, 3] = X[:, 0] + X[:, 1]
    X[:, 4] = -2 * X[:, 2]
    graph = GaussianGraph(np.cov(X.T))
    with pytest.raises(NoMaximumError, match=r"\[2, 4\]"):
        refitted(graph, [(2, 4)])
    with pytest.raises(NoMaximumError, match=r"\[0, 1, 3\]"):
        refitted(graph, [(0, 1), (0, 3), (1, 3)])
    assert np.isfinite(graph.value(refitted(graph, [(0, 1), (1, 3), (1, 2)])))
    few = GaussianGraph(np.cov(rng.standard_normal((3, 6)).T))  # of rank 2: no cycle has a maximum
    with pytest.raises(NoMaximumError, match=r"\[0, 1, 2, 3\]"):
        refitted(few, [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2), (1, 3)][:5])


def test_gains_of_more_edges_than_are_scored_at_a_time():
    p = 370
    graph = GaussianGraph(covariance(p, n=2 * p))
    assert len(graph.edges) > objective.EDGES_AT_A_TIME
    between = graph.correlation[np.triu_indices(p, 1)]
    np.testing.assert_allclose(graph.edge_gains(np.eye(p)), -np.log1p(-(between**2)), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize(("seed", "many_from"), [(0, 0.0), (1, 0.0), (2, 1.0)])
def test_conjugate_gradients_take_no_more_products_than_there_are_entries(monkeypatch, seed, many_from):
    monkeypatch.setattr("pauca.graphical.newton.MANY_EDGES", many_from)
    p, edges = 8, random_edges(8, 18, seed)
    graph = GaussianGraph(covariance(p, n=12, seed=seed))
    theta = matrix(graph, refitted(graph, edges))
    pattern, sigma = Pattern.of(p, *np.array(edges).T), np.linalg.inv(theta)
    products, product = [], HessianOperator._product
    monkeypatch.setattr(HessianOperator, "_product", lambda *given: products.append(1) or product(*given))
    wanted = np.random.default_rng(seed).standard_normal(p + len(edges))
    found = HessianOperator(pattern, pattern.read(theta)).solve(sigma, wanted, 1e-6)
    np.testing.assert_allclose(hessian(sigma, pattern.first, pattern.second) @ found, wanted, atol=1e-4)
    assert len(products) <= p + len(edges)


@pytest.mark.parametrize("name", ["all", "cycle", "random"])
def test_what_removals_from_large_blocks_cost_is_put_too_low(monkeypatch, name):
    """All entries are taken to be free; where they are, that is right."""
    p, edges = GRAPHS[name]

    def costs():
        graph = GaussianGraph(covariance(p))
        units = [graph.edges.number(*edge) for edge in edges]
        return graph.mle.fit(units, lambda: np.eye(p)).removal_costs(units)

    of_small = costs()
    monkeypatch.setattr(mle, "INVERTED_UP_TO", 0)
    of_large = costs()
    assert np.all(of_large > 0)
    assert np.all(of_large <= of_small * (1 + 1e-9))
    assert np.allclose(of_large, of_small, rtol=1e-9) == (name == "all")


def standing(graph, support, limits=None):
    """A subset on some edges, and the values of others by fits of their own."""
    subset = GraphSubset.start(graph, limits)
    for edge in support:
        subset.add(edge)
    return subset, lambda edges: graph.mle.fit(sorted(edges), lambda: np.eye(graph.n_nodes)).value


def test_additions_and_swaps_are_those_of_all_refits():
    """On edges drawn at random there is always a better one elsewhere."""
    swapped, met, beyond = [], [], []
    for seed in range(16):
        graph, rng = GaussianGraph(covariance(6, seed=seed)), np.random.default_rng(seed)
        support = rng.choice(15, 7, replace=False).tolist()
        subset, fitted = standing(graph, support)
        others = sorted(set(range(15)) - set(support))
        swaps = {(out, into): subset.value - fitted({*support, into} - {out}) for out in support for into in others}
        swap = subset.best_swap()
        assert swap is not None
        assert swap.decrease == pytest.approx(swaps[swap.out, swap.into], abs=1e-9)
        swapped.append(swap.decrease / max(swaps.values()))
        gains = {edge: subset.value - fitted([*support, edge]) for edge in others}
        best = max(gains, key=gains.get)
        met.append(subset.best_addition("refit") == best)
        beyond.append(met[-1] and subset.best_addition("objective") != best)
    assert np.mean(swapped) > 0.8
    assert np.mean(met) > 0.8
    assert any(beyond)


@pytest.mark.parametrize("seed", range(4))
def test_the_cheapest_removal_is_found_where_estimates_rank_another_first(seed):
    """An edge on no cycle, whose cost is known, lies between what one of a cycle costs and what it seems to."""
    cycle = [(0, 1), (1, 2), (2, 3), (0, 3)]
    R = np.eye(6)
    R[:4, :4] = GaussianGraph(covariance(4, seed=seed)).correlation
    graph = GaussianGraph(R)
    support = [graph.edges.number(*edge) for edge in cycle]
    subset, fitted = standing(graph, support)
    seems = subset._optimum.removal_costs(support)
    place = int(np.argmin(seems))
    true = fitted(set(support) - {support[place]}) - subset.value
    R[4, 5] = R[5, 4] = np.sqrt(-np.expm1(-0.5 * (true + seems[place])))
    graph = GaussianGraph(R)
    loose = graph.edges.number(4, 5)
    subset, fitted = standing(graph, [*support, loose])
    costs = {edge: fitted({*support, loose} - {edge}) - subset.value for edge in (*support, loose)}
    cheapest = min(costs, key=costs.get)
    estimates = subset._optimum.removal_costs(subset.support)
    assert subset.support[int(np.argmin(estimates))] != cheapest
    found, cost = subset.cheapest_removal("refit")
    assert (found, cost) == (cheapest, pytest.approx(costs[cheapest], abs=1e-10))


def test_limits_hold_edges_back_and_trials_pass_them():
    """One edge at most of each of three kinds."""
    graph, kind = GaussianGraph(covariance(5)), np.arange(10) % 3
    limits = Limits(always=(0,), never=(1, 3), kind=kind, most=1)
    subset = GraphSubset.start(graph, limits)
    assert run(Forward(), subset, Goal(8)).stop is Stop.LIMITS
    assert sorted(kind[subset.support]) == [0, 1, 2]
    assert subset.held_back()
    assert subset.best_addition("objective") is None
    before = list(subset.support)
    with subset.trial():
        edge = subset.best_addition("objective")
        assert edge not in {None, *before, *limits.never}
        subset.add(edge)
    assert subset.support == before
    assert subset.best_addition("objective") is None
    free = GraphSubset.start(graph, Limits(always=(0,), never=(1, 3)))
    free.fill()
    assert sorted(free.support) == [0, 2, 4, 5, 6, 7, 8, 9]
    assert not free.held_back()


def test_a_dense_graph_takes_memory_as_its_matrices_do():
    rng = np.random.default_rng(0)
    m = 60
    first, second = np.triu_indices(m, 1)
    pattern = Pattern.of(m, first[1:], second[1:])  # all edges but one
    sigma = np.cov(rng.standard_normal((m, 5 * m)))
    theta = np.linalg.inv(sigma)
    right = rng.standard_normal(len(pattern.first))
    tracemalloc.start()
    try:
        found = HessianOperator(pattern, pattern.read(theta)).solve(sigma, right, 1e-8)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Entries from every edge to every other would take 100 MB and more, those from every node to every edge 2 MB.
    assert peak < 1e6
    residual = hessian(sigma, pattern.first, pattern.second) @ found - right
    assert np.abs(residual).max() < 1e-4 * np.abs(right).max()
