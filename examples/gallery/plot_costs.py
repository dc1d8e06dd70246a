"""
Costs and a budget
==================

Some measurements are cheap, others are not. What can be predicted within a budget?
"""

# %%
import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from pauca import SparseRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True)
costs = {"age": 1, "sex": 1, "bmi": 2, "bp": 3, **{f"s{number}": 10 for number in range(1, 7)}}

# %%
budgets, shares = [2, 5, 7, 15, 25, 40, 60], []
for budget in budgets:
    model = SparseRegressor(k=None, costs=costs, budget=budget).fit(X, y)
    shares.append(100 * model.path_.explained(model.k_))
    print(f"{budget:3d}  spent {model.cost_:3g}  {shares[-1]:.1f} %  {', '.join(model.get_feature_names_out())}")

# %%
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.step(budgets, shares, where="post", marker="o")
axes.set(xlabel="budget", ylabel="explained (%)", title="Share explained within a budget, on the data of the fit")
