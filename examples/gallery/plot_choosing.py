"""
Choosing the number of features and the ridge
=============================================

By default both are chosen together by cross-validation: the smallest model that is nearly as good as the best.
"""

# %%
from sklearn.datasets import load_diabetes

from pauca import SparseRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True)
model = SparseRegressor().fit(X, y)
print(model.summary())

# %%
# What every size explains, on the data of the fit and on held-out rows, and the coefficients.
model.path_.plot()

# %%
# Sizes against ridges: dots are as good as the best, the square is the choice.
model.path_.plot_surface()
