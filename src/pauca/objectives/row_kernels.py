"""Rows that are alike, found by compiled kernels: the steps of ``merged_rows``, with the same result."""

from __future__ import annotations

import numpy as np

from pauca.losses.kernels import compiled_in_order


@compiled_in_order
def split_groups(of_row: np.ndarray, n_groups: int, codes: np.ndarray, n_codes: int, found: np.ndarray) -> int:
    """Number the pairs of a group and a code that there are, in their order; returns how many."""
    place = np.zeros(n_groups * n_codes, dtype=np.int64)
    for i in range(len(of_row)):
        found[i] = of_row[i] * n_codes + codes[i]
        place[found[i]] = 1
    count = 0
    for pair in range(len(place)):
        if place[pair]:
            place[pair] = count
            count += 1
    for i in range(len(found)):
        found[i] = place[found[i]]
    return count


@compiled_in_order
def weigh_groups(of_row: np.ndarray, weights: np.ndarray, total: np.ndarray, first: np.ndarray) -> int:
    """The weight of every group and its first row with weight; groups without are left out of all three arrays.

    Returns how many are left.
    """
    for group in range(len(total)):
        total[group], first[group] = 0.0, -1
    for i in range(len(of_row)):
        group = of_row[i]
        total[group] += weights[i]
        if weights[i] > 0.0 and first[group] < 0:
            first[group] = i
    place, kept = np.zeros(len(total), dtype=np.int64), 0
    for group in range(len(total)):
        if total[group] > 0.0:
            place[group], total[kept], first[kept] = kept, total[group], first[group]
            kept += 1
    if kept < len(total):
        for i in range(len(of_row)):
            of_row[i] = place[of_row[i]]
    return kept
