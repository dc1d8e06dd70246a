"""
A proof that no other model is better
=====================================

The search finds good models fast; a lower bound tells how far from the best they can be.
"""

# %%
import numpy as np

from pauca import SparseRegressor

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 60))
X[:, 1:] += 0.5 * X[:, :-1]
y = X[:, [5, 20, 41]].sum(axis=1) + 2 * rng.standard_normal(200)
model = SparseRegressor(k=6, ridge=0.1).fit(X, y)
certificate = model.certify(time_limit=5)
print(certificate.message(3))

# %%
certificate.plot()
