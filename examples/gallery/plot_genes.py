"""
Genes: more columns than rows
=============================

Sixty patients and two thousand genes. Figures from rows that had no part in the choice, and how stable it is.
"""

# %%
import numpy as np
import pandas as pd

from pauca import SparseRegressor

rng = np.random.default_rng(1)
genes = pd.DataFrame(rng.standard_normal((60, 2000)), columns=[f"gene {number}" for number in range(2000)])
outcome = 2 * genes["gene 3"] - 2 * genes["gene 70"] + rng.standard_normal(60)
model = SparseRegressor(k=2).fit(genes, outcome)
print(model.summary())

# %%
# The search is repeated without the rows that are predicted.
print(model.evaluate().summary())

# %%
# And on random halves of the rows: which genes would other patients have led to?
model.stability(20).plot(most=8)
