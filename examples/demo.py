"""Which ten terms best predict the progression of diabetes? A real table from start to end.

The table comes with scikit-learn: 442 patients, ten measurements, and the progression of the disease after one year.
With all squares and products there are 64 columns. The demo fits the models with 1 to 10 of them, prints the features
that enter and leave at each size and the accuracy on held-out patients, saves the curves, and writes a report in which
the size is chosen by cross-validation.
"""

from pathlib import Path

import matplotlib as mpl
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import PolynomialFeatures

from pauca import SparseRegressor

OUTPUT = Path("demo_output")


def main() -> None:
    """Fit, print, plot, report."""
    mpl.use("Agg")
    measurements, y = load_diabetes(return_X_y=True, as_frame=True)
    terms = PolynomialFeatures(degree=2, include_bias=False).set_output(transform="pandas")
    X = terms.fit_transform(measurements).drop(columns="sex^2")  # sex has two values, so its square is redundant
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

    model = SparseRegressor(k=10).fit(X_train, y_train)

    print(f"{X_train.shape[0]} patients, {X_train.shape[1]} columns; target: progression of diabetes after one year\n")
    print("size  R^2 train  R^2 test  features that enter (+) and leave (-) at this size")
    for record in model.path_.table()[1:]:
        size = record["size"]
        changes = [f"+{name}" for name in record["entered"]] + [f"-{name}" for name in record["left"]]
        test = model.at(size).score(X_test, y_test)
        print(f"{size:4d}  {record['explained']:9.3f}  {test:8.3f}  {', '.join(changes)}")
    print(f"\n{model.summary()}\n")

    OUTPUT.mkdir(exist_ok=True)
    file = OUTPUT / "path.png"
    model.path_.plot().figure.savefig(file, dpi=150)
    print(f"The plot of the path is in {file}")

    page = OUTPUT / "report.html"
    chosen = SparseRegressor().fit(X_train, y_train)
    chosen.report(page, title="Progression of diabetes after one year")
    print(f"A report for readers without Python is in {page}: open it in a browser")


if __name__ == "__main__":
    main()
