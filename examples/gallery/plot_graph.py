"""
A graph of variables
====================

Which variables are linked directly, and which only through others? A Gaussian graph with few edges.
"""

# %%
# A chain: every variable depends on the one before it.
import matplotlib.pyplot as plt
import numpy as np

from pauca import SparsePrecision

rng = np.random.default_rng(0)
X = np.zeros((300, 8))
for number in range(8):
    X[:, number] = 0.7 * X[:, number - 1] * (number > 0) + rng.standard_normal(300)
model = SparsePrecision(criterion="ebic").fit(X)
print(model.summary())

# %%
figure, panels = plt.subplots(1, 2, figsize=(8, 3.5), layout="constrained")
for panel, (title, matrix) in zip(
    panels, {"correlation": np.corrcoef(X.T), "precision": model.precision_}.items(), strict=True
):
    panel.imshow(np.abs(matrix), cmap="Blues")
    panel.set(title=title, xticks=range(8), yticks=range(8))
