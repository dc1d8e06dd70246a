"""Rows that are alike on some columns become one, whatever the order in which they are split."""

import numpy as np
import pytest

from pauca.compiled import kernels_used
from pauca.objectives.merged_rows import TABLE_PER_ROW, Rows, split

N = 400


def coded_columns(n_codes, seed=0):
    """Columns as codes, each with the number of its codes."""
    rng = np.random.default_rng(seed)
    return [(rng.integers(0, count, N), count) for count in n_codes]


def unsplit(seed=1):
    """Targets, weights of which some are zero, and the rows as a model without columns sees them."""
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], (1, N))
    weights = np.where(rng.random(N) < 0.1, 0.0, rng.random(N))
    return y, weights, Rows.of(y, weights)


def judged(y, weights, columns):
    """Every group of rows with weight that are alike, and its weight, by a table of the rows themselves."""
    lines = np.column_stack([y[0], *(codes for codes, _ in columns)])[weights > 0]
    groups, of_row = np.unique(lines, axis=0, return_inverse=True)
    return groups, np.bincount(of_row.ravel(), weights=weights[weights > 0])


# The last but one makes more keys than a table may have entries, the last one several times over.
@pytest.mark.parametrize("n_codes", [[2], [2, 3], [3, 2, 2, 2], [1, 1], [60, 64], [64, 1, 60, 1, 64]])
def test_rows_split_by_several_columns_are_the_groups_of_alike_rows(n_codes):
    y, weights, rows = unsplit()
    columns = coded_columns(n_codes)
    columns = [(codes // 16 * 16 if count > 3 else codes, count) for codes, count in columns]
    assert bool(len(rows.weights) * np.prod(n_codes) > TABLE_PER_ROW * N) == (max(n_codes) > 3)
    found = split(rows, y, weights, columns)
    groups, total = judged(y, weights, columns)
    assert found.merged
    assert len(found.weights) == len(groups)
    lines = np.column_stack([y[0], *(codes for codes, _ in columns)])[found.first]
    order = np.lexsort(lines.T[::-1])
    np.testing.assert_array_equal(lines[order], groups)
    np.testing.assert_allclose(found.weights[order], total, rtol=1e-13)
    np.testing.assert_array_equal(found.y[0], lines[:, 0])
    own = found.first[found.of_row][weights > 0]
    for codes, _ in columns:
        np.testing.assert_array_equal(codes[own], codes[weights > 0])


def test_rows_are_the_same_split_at_once_or_one_column_after_the_other():
    y, weights, rows = unsplit()
    columns = coded_columns([3, 2, 4])
    at_once, one_by_one = split(rows, y, weights, columns), rows
    for column in columns:
        one_by_one = split(one_by_one, y, weights, [column])
    np.testing.assert_array_equal(at_once.first, one_by_one.first)
    np.testing.assert_array_equal(at_once.of_row[weights > 0], one_by_one.of_row[weights > 0])
    np.testing.assert_array_equal(at_once.weights, one_by_one.weights)


@pytest.mark.parametrize("n_codes", [[2, 3], [60, 64], [64, 1, 60, 1, 64], [40, 40]])
def test_kernels_split_rows_in_the_same_way(n_codes):
    pytest.importorskip("numba")
    y, weights, _ = unsplit()
    columns = [(codes // 16 * 16 if n_codes != [40, 40] else codes, count) for codes, count in coded_columns(n_codes)]
    found = []
    for mode in ("never", "always"):
        with kernels_used(mode):
            found.append(split(Rows.of(y, weights), y, weights, columns))
    if n_codes == [40, 40]:
        assert found == [None, None]
        return
    for name in ("y", "weights", "first", "of_row"):
        np.testing.assert_array_equal(*(getattr(one, name) for one in found))


@pytest.mark.parametrize("n_codes", [[40, 40], [64, 64, 2, 64]])
def test_rows_are_not_split_where_hardly_any_are_alike(n_codes):
    y, weights, rows = unsplit()
    assert split(rows, y, weights, coded_columns(n_codes)) is None
