"""Tables whose columns form a chain."""

import numpy as np
import pandas as pd

NAMES = ["age", "bmi", "bp", "sugar", "salt", "sleep"]


def chain(n=300, p=6, seed=0):
    """Rows of a chain: every column depends on its neighbours alone."""
    theta = np.eye(p) + 0.45 * (np.eye(p, k=1) + np.eye(p, k=-1))
    rng = np.random.default_rng(seed)
    return 3.0 + rng.standard_normal((n, p)) @ np.linalg.cholesky(np.linalg.inv(theta)).T


def frame(**options):
    return pd.DataFrame(chain(**options), columns=NAMES)
