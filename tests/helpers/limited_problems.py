"""Problems whose best models break a constraint, for every loss."""

import numpy as np
from constraint_judges import (
    estimator,
    least,
    uneven,
)
from scipy import sparse

FORMATS = {"dense": np.asarray, "csr": sparse.csr_array}


K = 5


class Case:
    """A table and constraints that its best models without constraints break."""

    def __init__(self, loss):
        self.loss = loss
        self.X, self.y, self.scale = uneven(loss, seed=1)
        self.d = self.X.shape[1]
        free = estimator(loss, k=K, method="forward").fit(self.X, self.y)
        self.free = free.path_[K]
        self.chosen = self.free.support.tolist()
        self.others = [j for j in range(self.d) if j not in self.chosen]
        self.constraints = {
            "always": {"always": self.others[:2]},
            "never": {"never": self.chosen[:2]},
            "budget": {"costs": [0.3 if j in self.chosen else 0.1 for j in range(self.d)], "budget": 0.9},
            "per group": {"feature_groups": ["in" if j in self.chosen else f"g{j % 2}" for j in range(self.d)]},
            "bounds": {"bounds": self._bounds()},
        }
        self.constraints["per group"]["max_per_group"] = 2

    def _bounds(self):
        """A box of half its size for the first chosen column, a sign that it has not for the next two, signs after."""
        bounds = {j: (0, None) if j % 2 else (None, 0) for j in self.others}
        for place, (j, w) in enumerate(zip(self.chosen, np.ravel(self.free.coef), strict=True)):
            narrow = (-0.5 * abs(w), 0.5 * abs(w)), (None, 0) if w > 0 else (0, None)
            bounds[j] = narrow[0] if place in {0, 4} else narrow[1] if place < 3 else (None, None)
        return bounds

    def ends(self):
        """Lower and upper bounds of all columns as arrays."""
        pairs = [self.constraints["bounds"]["bounds"][j] for j in range(self.d)]
        low, high = np.array(pairs, dtype=float).T
        return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)

    def keeps(self, constraint, model):
        """Whether a model keeps a constraint, written independently of the library."""
        support = model.support.tolist()
        if constraint == "always":
            return set(self.constraints[constraint]["always"]) <= set(support)
        if constraint == "never":
            return not set(self.constraints[constraint]["never"]) & set(support)
        if constraint == "budget":
            return sum(self.constraints[constraint]["costs"][j] for j in support) <= 0.9 * (1 + 1e-8)
        if constraint == "per group":
            labels = [self.constraints[constraint]["feature_groups"][j] for j in support]
            return all(labels.count(label) <= 2 for label in labels)
        low, high = (end[support] for end in self.ends())
        return bool(np.all(np.ravel(model.coef) >= low * (1 + np.sign(-low) * 1e-12))) and bool(
            np.all(np.ravel(model.coef) <= high * (1 + np.sign(high) * 1e-12))
        )


CASES = {}


def case(loss):
    """The case of a loss, made once."""
    if loss not in CASES:
        CASES[loss] = Case(loss)
    return CASES[loss]


def case_null(c):
    return least(c.loss, c.X, c.y, [])
