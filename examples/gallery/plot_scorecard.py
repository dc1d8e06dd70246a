"""
A scorecard and its report
==========================

Two classes: figures on test rows, a calibration curve, a sheet of points, and a page to send.
"""

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from pauca import SparseClassifier

X, benign = load_breast_cancer(return_X_y=True, as_frame=True)
diagnosis = benign.map({0: "malignant", 1: "benign"})
X_train, X_test, y_train, y_test = train_test_split(X, diagnosis, stratify=diagnosis, random_state=0)
model = SparseClassifier(k=4, ridge=0.001).fit(X_train, y_train)
found = model.evaluate(X_test, y_test)
print(found.summary())

# %%
# Are the probabilities right?
curve = found.calibration
figure, axes = plt.subplots(figsize=(4, 4), layout="constrained")
axes.plot([0, 1], [0, 1], linestyle="--", color="grey")
axes.plot(curve.predicted, curve.observed, marker="o")
axes.set(xlabel="predicted probability of malignant", ylabel="share that was malignant")

# %%
# The same model as whole points to add up by hand.
print(model.to_points(cv=None).summary())

# %%
# The page has all of this, effects in words, intervals and a calculator, in one file without a network.
page = Path(tempfile.mkdtemp()) / "breast_cancer.html"
model.report(page, X_test, y_test, title="Malignant or benign?")
print(f"{page.stat().st_size / 1000:.0f} kB")
