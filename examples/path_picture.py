"""Draw docs/_static/path.png, the picture at the head of the README.

Left: the share explained against the number of features, each point labelled with the features that enter (+) and
leave (-). Right: the cross-validated score of every size, and the size that is chosen. Both are of one fit, which the
README shows in text. Run it from the root of the repository::

    python examples/path_picture.py
"""

from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
from sklearn.datasets import load_diabetes

from pauca import SparseRegressor

PICTURE = Path("docs/_static/path.png")


def main() -> None:
    """Fit once, and draw what every size explains on the rows of the fit and on held-out rows."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415 - after the choice of the backend

    X, y = load_diabetes(return_X_y=True, as_frame=True)
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.4), layout="constrained")
    path = SparseRegressor().fit(X, y).path_
    replace(path, choice=None).plot(ax=left)
    path.plot(ax=right)
    left.set_title("Which features enter at each size", loc="left")
    right.set_title("Which size: 5-fold cross-validation", loc="left")
    right.set_ylabel("explained on held-out rows (%)")
    for ax in (left, right):
        ax.set_xlabel("number of features")
        ax.set_ylim(0, 58)
        ax.grid(axis="y", alpha=0.25)
    figure.savefig(PICTURE, dpi=110)
    print(f"Written: {PICTURE}")


if __name__ == "__main__":
    main()
