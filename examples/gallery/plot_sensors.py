"""
Which sensors of a house
========================

Sensors come as groups of columns. Which of them are worth their price, if each is bought as a whole?
"""

# %%
import numpy as np
import pandas as pd

from pauca import SparseRegressor

rng = np.random.default_rng(0)
hours = np.arange(24 * 60)
outside = 10 + 8 * np.sin(hours * 2 * np.pi / 24) + rng.normal(0, 1, len(hours))
rooms = ["kitchen", "bath", "office", "attic"]
columns = {}
for room in rooms:
    heat = 18 + 0.3 * outside * (room == "attic") + rng.normal(0, 1, len(hours))
    columns |= {f"{room} temperature": heat, f"{room} humidity": 60 - heat + rng.normal(0, 2, len(hours))}
columns["outside temperature"] = outside
X = pd.DataFrame(columns)
energy = 50 - 2 * outside + 1.5 * X["kitchen temperature"] + rng.normal(0, 3, len(hours))

# %%
# A group is what comes in one box.
sensors = [name.split()[0] for name in X]
model = SparseRegressor(k=3, feature_groups=sensors).fit(X, energy)
for size in (1, 2, 3):
    print(size, model.path_.groups(size), f"{100 * model.path_.explained(size):.1f} %")

# %%
model.path_.plot()
