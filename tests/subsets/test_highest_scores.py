"""The highest of many scores, as a full sort finds them."""

import numpy as np
import pytest

from pauca.subsets.base import highest_scores


@pytest.mark.parametrize("seed", range(30))
def test_they_are_those_of_a_full_sort_in_order(seed):
    rng = np.random.default_rng(seed)
    scores, count = np.round(rng.standard_normal(rng.integers(0, 400)), 1), int(rng.integers(0, 40))
    scores[rng.random(len(scores)) < rng.choice([0.0, 0.5, 0.97])] = -np.inf
    scores[rng.random(len(scores)) < rng.choice([0.0, 0.3])] = np.nan
    order = [place for place in np.argsort(-scores, kind="stable").tolist() if scores[place] > -np.inf]
    assert highest_scores(scores, count) == order[:count]
