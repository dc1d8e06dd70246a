"""Which ten terms foretell the progression of diabetes? A real table, start to end.

The table comes with scikit-learn: 442 patients, ten measurements, and how far the disease went within a year. With all
squares and products there are 64 columns. The demo fits the path of models with 1 to 10 of them, prints which terms
each size uses and how well it does on patients it has not seen, saves the curves over the sizes, and writes a report
for people without Python, in which the size is chosen by cross-validation.
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
    X = terms.fit_transform(measurements).drop(columns="sex^2")  # sex has two values: its square says nothing new
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

    model = SparseRegressor(k=10).fit(X_train, y_train)

    print(f"{X_train.shape[0]} patients, {X_train.shape[1]} columns; target: progression of diabetes after a year\n")
    print("size  R^2 train  R^2 test  what came in (+) and went out (-) at this size")
    for record in model.path_.table()[1:]:
        size = record["size"]
        changes = [f"+{name}" for name in record["entered"]] + [f"-{name}" for name in record["left"]]
        test = model.at(size).score(X_test, y_test)
        print(f"{size:4d}  {record['explained']:9.3f}  {test:8.3f}  {', '.join(changes)}")
    print(f"\n{model.summary()}\n")

    OUTPUT.mkdir(exist_ok=True)
    file = OUTPUT / "accuracy_against_size.png"
    model.path_.plot().figure.savefig(file, dpi=150)
    print(f"The curves over the sizes are in {file}")

    page = OUTPUT / "report.html"
    chosen = SparseRegressor(k=range(11)).fit(X_train, y_train)
    chosen.report(page, title="Progression of diabetes after a year")
    print(f"A report for people without Python is in {page}: open it in a browser")


if __name__ == "__main__":
    main()
