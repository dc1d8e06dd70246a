"""
Best subset selection as in the textbooks
=========================================

The best model of every size, and what adjusted R², Mallows' Cp, AIC and BIC say of them.
"""

# %%
# One fit finds the best model of every size; of so few columns each is proved to be the best of all subsets.
import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from pauca import SparseRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True)
path = SparseRegressor(k=10).fit(X, y).path_
table = path.to_frame()
print(table[["explained", "adjusted_r2", "cp", "aic", "bic", "proved"]].round(3).to_string())

# %%
# The criteria, each with its best size marked.
figure, panels = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
for panel, name in zip(panels, ["adjusted_r2", "cp", "bic"], strict=True):
    values = table[name].iloc[1:]
    best = values.idxmax() if name == "adjusted_r2" else values.idxmin()
    panel.plot(values.index, values, marker="o")
    panel.plot(best, values[best], marker="o", markersize=12, fillstyle="none", color="C1")
    panel.set(title=name, xlabel="number of features")
