"""
Larger than memory
==================

A table in files, read in blocks of rows. The model is that of the whole table, and X is never held at once.
"""

# %%
import tempfile
from pathlib import Path

import numpy as np

import pauca

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
table = np.lib.format.open_memmap(folder / "table.npy", mode="w+", dtype=np.float32, shape=(50_000, 60))
for start in range(0, len(table), 10_000):
    table[start : start + 10_000] = rng.standard_normal((10_000, 60))
y = 3 * table[:, 7] - 2 * table[:, 30] + rng.standard_normal(len(table))
table.flush()

# %%
X = pauca.scan(folder / "table.npy")
model = pauca.SparseRegressor(k=5).fit(X, y)
print(model.summary())

# %%
# What each size explains: two columns made the target, and the others add nothing.
model.path_.plot()
