"""Bounds and trees against enumeration: no bound above the optimum, no wrong proof, whatever the columns are like."""

import itertools
from collections import Counter

import numpy as np
import pytest
from false_proofs import WAYS, check, columns, random_rows, values, wrong

from pauca.clock import deadline_after, limited_until
from pauca.constraints.limits import Limits
from pauca.relaxations import depth_first, leaps_and_bounds
from pauca.relaxations import forest as forest_module
from pauca.relaxations.backends import Backend, CompiledBackend, can_compile, compiled_backend
from pauca.relaxations.depth_first import DepthFirst
from pauca.relaxations.diagonal import base_diagonal, improve, is_safe, rounding_slack
from pauca.relaxations.forest import Forest
from pauca.relaxations.incumbent_swaps import improved_by_swaps
from pauca.relaxations.leaps_and_bounds import enumerate_subsets
from pauca.relaxations.perspective import IN, OUT, Quadratic, relax
from pauca.relaxations.tree import Incumbent, Wanted


def quadratic(rows, y):
    return Quadratic(rows.T @ rows, rows.T @ y, 0.5 * float(y @ y))


def value(rows, y, support):
    return float(values(rows, y, np.array([support]))[0])


def optimum(rows, y, k, allowed=lambda S: True):
    found = [(value(rows, y, S), S) for S in itertools.combinations(range(rows.shape[1]), k) if allowed(S)]
    return min(found) if found else None


def grown(problem, diagonal, incumbents, n, **options):
    forest = Forest(problem, diagonal, incumbents, n_rows=n, **options)
    grow(forest)
    return forest


def grow(forest):
    forest.plant()
    while forest.open:
        forest.advance()


@pytest.fixture(params=["grown", "enumerated"])
def way(request, monkeypatch):
    """Few columns are enumerated unless that is switched off."""
    if request.param == "grown":
        monkeypatch.setattr(forest_module, "MOST_ENUMERATED", 0)


@pytest.fixture
def deep(monkeypatch):
    """All trees are left to compiled code, depth first."""
    monkeypatch.setattr(forest_module, "MOST_ENUMERATED", 0)
    monkeypatch.setattr(forest_module, "MANY_TREES", 1)
    monkeypatch.setattr(forest_module, "Backend", CompiledBackend)
    monkeypatch.setattr(Forest, "goes_deep", True)


def incumbents(problem, rng, sizes):
    """Poor models to begin with: random ones."""
    supports = {k: sorted(rng.choice(len(problem.slope), k, replace=False).tolist()) for k in sizes}
    return [Incumbent(k, float(problem.values(np.array([S]))[0]), tuple(S)) for k, S in supports.items()]


SEEDS = {"wide": range(8), "smooth": (*range(8), 9000018, 9000035, 9000058)}
"""Fewer where a table takes longer."""


@pytest.mark.parametrize("way", WAYS)
def test_the_optimum_of_every_size_is_found_and_nothing_false_is_claimed(way):
    """The seeds beyond the first are tables on which rounding, or a poor fit, once made bounds wrong."""
    total = Counter()
    for seed in SEEDS.get(way, (*range(32), 6183, 15010)):
        counts = check(seed, way)
        assert not wrong(counts), (seed, wrong(counts))
        total += counts
    assert total["proved"] > (0.4 if way == "wide" else 0.6) * total["sizes"] > 12


@pytest.mark.parametrize("seed", range(35))
def test_any_point_gives_a_bound_at_any_node(seed):
    """Bounds hold at nodes with columns in and out, before the relaxation is solved, and for improved diagonals."""
    rows, y, penalty, n, rng = random_rows(seed)
    problem = quadratic(rows, y)
    m = len(problem.slope)
    diagonal = base_diagonal(problem.hessian, penalty)
    if diagonal is None or m < 5:
        return
    assert is_safe(problem.hessian, diagonal * (1 - 1e-6)) or np.array_equal(diagonal, penalty * (1 - 1e-12))
    codes = np.zeros((1, m), dtype=np.int8)
    codes[0, 0], codes[0, 1] = IN, OUT
    k = int(rng.integers(2, m - 1))
    left, never = np.array([k - 1]), np.full(1, np.inf)
    found = relax(problem, diagonal[None], codes, left, never)
    best = optimum(rows, y, k, lambda S: 0 in S and 1 not in S)[0]
    slack = rounding_slack(problem, diagonal, n)
    assert found.bound[0] <= best + slack
    better, improved = improve(problem, diagonal[None], found.take(np.array([0])), left, never)
    assert improved.bound[0] >= found.bound[0]
    assert improved.bound[0] <= best + rounding_slack(problem, better[0], n)
    kept = codes[0] != OUT
    assert np.linalg.eigvalsh((problem.hessian - np.diag(better[0]))[np.ix_(kept, kept)])[0] >= -1e-12


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.usefixtures("way")
def test_limits_and_collections_against_enumeration(seed):
    rows, y, _, n, rng = random_rows(7 * seed)  # plain columns
    d = rows.shape[1]
    rows, y = np.vstack([rows, np.sqrt(1e-3) * np.eye(d)]), np.append(y, np.zeros(d))
    problem = quadratic(rows, y)
    diagonal = base_diagonal(problem.hessian, np.full(d, 1e-3))
    k = min(4, d - 1)
    price = rng.integers(1, 4, d).astype(float)
    limits = Limits(always=(0,), price=price, budget=9.0, kind=np.arange(d) // 2, most=1)
    best = optimum(rows, y, k, limits.allows)
    if best is not None:
        start = next(S for S in itertools.combinations(range(d), k) if limits.allows(S))
        forest = grown(problem, diagonal, [Incumbent(k, value(rows, y, start), start)], n, limits=limits)
        assert forest.trees[k].support == best[1] or forest.trees[k].value == pytest.approx(best[0], rel=1e-8)
    within = 0.2
    best = optimum(rows, y, k)
    tree = grown(problem, diagonal, [Incumbent(k, *best)], n, wanted=Wanted(within)).trees[k]
    near = {S for S in itertools.combinations(range(d), k) if value(rows, y, S) <= best[0] * (1 + within) * (1 - 1e-9)}
    assert near <= {S for S, v in tree.collected.items() if v <= tree.cut}
    assert all(v == pytest.approx(value(rows, y, S), rel=1e-6, abs=1e-9) for S, v in tree.collected.items())


@pytest.mark.parametrize("most_nodes", [3, 10**6])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.usefixtures("deep")
def test_collections_depth_first_and_sizes_that_are_given_back(seed, most_nodes, monkeypatch):
    """All models that are nearly as good, whether depth first finds them all or leaves the rest to the tree."""
    monkeypatch.setattr(forest_module, "NODES_DEEP", most_nodes)
    monkeypatch.setattr(depth_first, "NODES_AT_ONCE", 2)
    monkeypatch.setattr(depth_first, "FEW", seed % 3)
    rng = np.random.default_rng(seed)
    rows = columns(rng, 30, 9, "ar")
    y = rows @ rng.standard_normal(9) + 3 * rng.standard_normal(30)
    problem = quadratic(rows, y)
    models = incumbents(problem, rng, [4, 5])
    trees = grown(problem, base_diagonal(problem.hessian, np.zeros(9)), models, 30, wanted=Wanted(0.05)).trees
    for k, tree in trees.items():
        every = {S: value(rows, y, S) for S in itertools.combinations(range(9), k)}
        near = {S for S, one in every.items() if one <= min(every.values()) * 1.05 * (1 - 1e-9)}
        assert near <= {S for S, one in tree.collected.items() if one <= tree.cut}
        assert tree.value == pytest.approx(min(every.values()), rel=1e-9)


@pytest.mark.usefixtures("deep")
def test_a_size_that_is_given_back_has_a_better_diagonal(monkeypatch):
    """Depth first, roots are spared it; a tree that is too large for that goes on as any other."""
    monkeypatch.setattr(forest_module, "NODES_DEEP", 3)
    monkeypatch.setattr(depth_first, "NODES_AT_ONCE", 2)
    rng = np.random.default_rng(1)
    rows = columns(rng, 40, 14, "ar")
    problem = quadratic(rows, rows @ rng.standard_normal(14) + 3 * rng.standard_normal(40))
    forest = Forest(problem, base_diagonal(problem.hessian, np.zeros(14)), incumbents(problem, rng, [5, 6]), n_rows=40)
    forest.plant()
    before = {k: tree.diagonal.copy() for k, tree in forest.trees.items()}
    while forest.open:
        forest.advance()
    assert any(tree.nodes and np.any(tree.diagonal > before[k]) for k, tree in forest.trees.items())


@pytest.mark.usefixtures("way")
def test_each_size_has_a_tree_of_its_own():
    """Alone or beside others, a size has the same nodes and the same proof."""
    rows, y, penalty, n, rng = random_rows(6)
    problem = quadratic(rows, y)
    diagonal = base_diagonal(problem.hessian, penalty)
    models = incumbents(problem, rng, range(1, len(problem.slope)))
    together = grown(problem, diagonal, models, n).trees
    for one in models:
        alone = grown(problem, diagonal, [one], n).trees[one.size]
        other = together[one.size]
        assert (alone.nodes, alone.support) == (other.nodes, other.support)
        assert alone.lower_bound == pytest.approx(other.lower_bound, rel=1e-9)


@pytest.mark.parametrize("always", [(), (2, 5)])
@pytest.mark.parametrize("kind", ["plain", "ar", "mixed"])
def test_all_models_up_to_a_value_are_enumerated(kind, always, monkeypatch):
    """Of every size, near the best and further off, whether few columns are in or few are out."""
    monkeypatch.setattr(leaps_and_bounds, "BATCH_NUMBERS", 500)  # several batches
    problem, models, sought = models_up_to_a_value(kind, always)
    diagonal = base_diagonal(problem.hessian, np.zeros(11))
    found = enumerate_subsets(problem, diagonal, sought, always=always, most_nodes=10**6)
    assert sum(enumerated.nodes for enumerated in found.values()) > 10
    for k, supports in models.items():
        assert found[k].supports == sorted(set(found[k].supports), key=lambda S: sum(1 << j for j in S))
        assert set(found[k].supports) == supports


@pytest.mark.parametrize("few", range(4))
@pytest.mark.parametrize(("kind", "always"), [("plain", ()), ("ar", (2, 5)), ("mixed", ())])
def test_all_models_up_to_a_value_are_found_depth_first(kind, always, few, monkeypatch):
    """With formulas for the last columns or without, each model once, some nodes at a time."""
    monkeypatch.setattr(depth_first, "FEW", few)
    monkeypatch.setattr(depth_first, "NODES_AT_ONCE", 7)
    problem, models, sought = models_up_to_a_value(kind, always)
    diagonal = base_diagonal(problem.hessian, np.zeros(11))
    for k, supports in models.items():
        search, found = DepthFirst(problem, diagonal, k, always), []
        while not search.done:
            found += search.advance(sought[k])
        assert sorted(found) == sorted(supports)


def models_up_to_a_value(kind, always):
    """A problem of 11 columns, and for each size the best fifth of all models, with the value that they are below."""
    rng = np.random.default_rng(len(kind))
    rows = columns(rng, 30, 11, kind)
    y = rows[:, :6] @ rng.standard_normal(6) + 2 * rng.standard_normal(30)
    every = {k: {S: value(rows, y, S) for S in models_with(always, 11, k)} for k in range(max(1, len(always)), 12)}
    sought = {k: float(np.quantile(list(models.values()), 0.2)) * (1 + 1e-6) for k, models in every.items()}
    below = {k: {S for S, one in models.items() if one <= sought[k]} for k, models in every.items()}
    return quadratic(rows, y), below, sought


def models_with(always, d, k):
    return [S for S in itertools.combinations(range(d), k) if set(always) <= set(S)]


@pytest.mark.parametrize("calls", [0, 1, 2, 4, 6, 8])
def test_a_tree_that_is_interrupted_claims_nothing_false(calls, monkeypatch):
    """Ctrl-C may come at any time: before the tree is planted, and while nodes are looked at."""
    monkeypatch.setattr(forest_module, "MOST_ENUMERATED", 0)
    rng = np.random.default_rng(3)
    rows = columns(rng, 25, 12, "ar")
    y = rows @ rng.standard_normal(12) + 3 * rng.standard_normal(25)
    problem = quadratic(rows, y)
    forest = Forest(
        problem, base_diagonal(problem.hessian, np.zeros(12)), incumbents(problem, rng, [4, 5, 6]), n_rows=25
    )
    forest.backend = Interrupted(calls)
    with pytest.raises(KeyboardInterrupt):
        grow(forest)
    assert any(tree.open for tree in forest.trees.values())
    for k, tree in forest.trees.items():
        assert tree.lower_bound <= optimum(rows, y, k)[0] * (1 + 1e-9)


class Interrupted(Backend):
    """Ends with Ctrl-C after some batches of nodes."""

    def __init__(self, calls):
        self.calls = calls

    def relax(self, *args):
        if not self.calls:
            raise KeyboardInterrupt
        self.calls -= 1
        return super().relax(*args)


def test_enumeration_gives_up_a_size_with_too_many_nodes_and_no_other():
    rng = np.random.default_rng(0)
    rows, penalty = columns(rng, 40, 9, "ar"), np.zeros(9)
    y = rows @ rng.standard_normal(9) + 3 * rng.standard_normal(40)
    problem = quadratic(rows, y)
    sizes = range(1, 10)
    best = {k: optimum(rows, y, k)[0] * (1 + 1e-9) for k in sizes}
    diagonal = base_diagonal(problem.hessian, penalty)
    every = enumerate_subsets(problem, diagonal, best, always=(), most_nodes=10**6)
    most = sorted(found.nodes for found in every.values())[len(every) // 2]
    some = enumerate_subsets(problem, diagonal, best, always=(), most_nodes=most)
    assert set(some) == {k for k, found in every.items() if found.nodes <= most} != set(every)
    assert all(some[k] == every[k] for k in some)
    assert all(found.supports == [optimum(rows, y, k)[1]] for k, found in every.items())


@pytest.mark.parametrize("seed", range(14))
def test_compiled_code_does_the_same(seed):
    """The same relaxations, estimates and pairs as NumPy finds, and the best triples."""
    rows, y, penalty, n, _ = random_rows(seed)
    problem = quadratic(rows, y)
    m = len(problem.slope)
    diagonal = base_diagonal(problem.hessian, penalty)
    if diagonal is None or m < 5 or rounding_slack(problem, diagonal, n) > 1e-8 * problem.constant:
        return
    codes = np.zeros((3, m), dtype=np.int8)
    codes[1, 0], codes[2, 1] = IN, OUT
    left = np.array([2, 2, 3])
    plain, compiled = Backend(), compiled_backend()
    one, other = (
        backend.relax(problem, np.tile(diagonal, (3, 1)), codes, left, np.full(3, np.inf))
        for backend in (plain, compiled)
    )
    np.testing.assert_allclose(other.bound, one.bound, atol=1e-9 * problem.constant)
    np.testing.assert_array_equal(other.pieces, one.pieces)
    tiled = np.tile(diagonal, (3, 1))
    np.testing.assert_allclose(
        compiled.removal_estimates(problem, tiled, one), plain.removal_estimates(problem, tiled, one), atol=1e-8
    )
    pairs = [
        list(backend.completions(problem, np.array([0]), np.arange(1, m), 2, np.inf, every=False))
        for backend in (plain, compiled)
    ]
    assert pairs[0][0][1] == pairs[1][0][1]
    assert pairs[0][0][0] == pytest.approx(pairs[1][0][0], abs=1e-9 * problem.constant)
    found, support = next(compiled.completions(problem, np.array([0]), np.arange(1, m), 3, np.inf, every=False))
    best = optimum(rows, y, 4, lambda S: 0 in S)[0]
    assert best - 1e-9 * problem.constant <= value(rows, y, support) <= best + 1e-8 * problem.constant
    assert found == pytest.approx(value(rows, y, support), abs=1e-8 * problem.constant)
    for missing in (2, 3):
        assert not list(compiled.completions(problem, np.array([0]), np.arange(1, m), missing, 0.0, every=False))


@pytest.mark.parametrize("seed", range(5))
def test_swaps_end_where_no_swap_is_better(seed):
    rng = np.random.default_rng(seed)
    rows = columns(rng, 30, 10, "ar")
    y = rows @ rng.standard_normal(10) + 3 * rng.standard_normal(30)
    problem, codes = quadratic(rows, y), np.zeros(10, dtype=np.int8)
    codes[2], codes[7] = IN, OUT
    start = np.array([2, 8, 9])
    found, support = improved_by_swaps(problem, Backend(), start, codes)
    assert found == pytest.approx(value(rows, y, support), rel=1e-8)
    assert found <= value(rows, y, start) * (1 + 1e-9)
    near = [
        S for S in itertools.combinations(range(10), 3) if len(set(S) & set(support)) >= 2 and 2 in S and 7 not in S
    ]
    assert found <= min(value(rows, y, S) for S in near) * (1 + 1e-8)


def test_nothing_is_compiled_where_a_limit_leaves_no_time_for_it(monkeypatch):
    """A proof within ten seconds must not compile for thirty first; what was compiled before may be used."""
    pytest.importorskip("numba")
    kernels = pytest.importorskip("pauca.relaxations.kernels")
    index = {}
    monkeypatch.setattr(kernels.best_pair._cache._cache_file, "_load_index", lambda: index)
    assert can_compile()
    with limited_until(deadline_after(10.0)):
        assert not can_compile()
        assert compiled_backend() is None
        index["signature"] = "file"
        assert can_compile()
