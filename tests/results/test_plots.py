"""Pictures of paths: which panels there are, and that what they say is there to be read."""

import itertools
import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from fitted_models import MAKERS, fitted
from sklearn.datasets import load_diabetes

import pauca
from pauca import SparseRegressor
from pauca.results.plots import NAMED_LINES, by_importance, coefficient_curves, score_range, spread_out

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _close():
    yield
    mpl.pyplot.close("all")


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def chosen(diabetes):
    return SparseRegressor().fit(*diabetes)


def words(ax):
    return " | ".join(text.get_text() for text in ax.texts)


@pytest.mark.parametrize("name", MAKERS)
def test_every_kind_of_model_can_be_drawn(name):
    path = fitted(name).path_
    figure = path.plot().figure
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.canvas.draw()
    assert len(figure.axes) == 1 + (path.sizes[-1] > 0) + (path.choice is not None)


def test_the_best_is_marked_where_it_is_not_the_choice(diabetes):
    path = SparseRegressor(ridge=0.03).fit(*diabetes).path_
    assert path.choice.best > path.choice.chosen
    assert f"best: {path.choice.best}" in words(path.plot().figure.axes[1])


def test_three_panels_over_the_same_sizes(chosen):
    first = chosen.path_.plot()
    explained, score, coefficients = first.figure.axes
    assert first is explained
    assert explained.get_xlim() == score.get_xlim() == coefficients.get_xlim()
    assert "+bmi" in words(explained)
    assert f"chosen: {chosen.k_}" in words(score)
    assert "held-out rows" in score.get_title(loc="left")
    assert "relative to its largest" in coefficients.get_ylabel()
    assert {"bmi", "s5", "bp"} <= {text.get_text() for text in coefficients.texts}
    assert coefficients.get_xlabel() == "number of features"


def test_the_criterion_has_its_own_curve(diabetes):
    path = SparseRegressor(criterion="bic").fit(*diabetes).path_
    score = path.plot().figure.axes[1]
    assert score.get_ylabel() == "BIC"
    np.testing.assert_allclose(score.lines[0].get_ydata(), path.choice.mean)


def test_a_given_panel_is_the_only_one(chosen, diabetes):
    _, ax = mpl.pyplot.subplots()
    assert chosen.path_.plot(ax) is ax
    assert "chosen" in words(ax)
    assert len(ax.figure.axes) == 1
    _, ax = mpl.pyplot.subplots()
    assert SparseRegressor(k=2).fit(*diabetes).path_.plot(ax=ax) is ax
    assert "explained" in ax.get_ylabel()


def test_at_most_so_many_names_and_no_mathematics_in_them():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((60, 30)), columns=[f"cost $x_{j}$ {'long ' * 20}{j}" for j in range(30)])
    path = SparseRegressor(k=20).fit(X, rng.standard_normal(60)).path_
    figure = path.plot().figure
    figure.canvas.draw()
    explained, coefficients = figure.axes
    assert len(coefficients.texts) == NAMED_LINES
    (note,) = explained.texts  # why nothing is named
    assert "more than 15 sizes" in note.get_text()
    assert "12 most important of" in coefficients.get_title(loc="left")
    assert all(len(text.get_text()) < 30 for text in coefficients.texts)


def test_curves_are_the_coefficients_in_parts_of_the_largest(diabetes):
    path = SparseRegressor(k=6).fit(*diabetes).path_
    curves = coefficient_curves(path)
    assert curves.sizes == [1, 2, 3, 4, 5, 6]
    assert np.nanmax(np.abs(curves.relative), axis=1) == pytest.approx(1)
    for position, size in enumerate(curves.sizes):
        present = np.array(curves.columns)[np.isfinite(curves.relative[:, position])]
        assert sorted(present) == path[size].support.tolist()
    bmi = curves.relative[curves.columns.index(2)]
    assert bmi[1] / bmi[0] == pytest.approx(path[2].coef[0] / path[1].coef[0])


def test_what_is_worth_most_comes_first(diabetes):
    path = SparseRegressor(k=6).fit(*diabetes).path_
    order = by_importance(path, 4)
    assert order[:4] == path[4].support[np.argsort(-path[4].importance)].tolist()
    assert set(order) == {column for model in path for column in model.support.tolist()}


def test_groups_and_outputs(diabetes):
    X, y = diabetes
    model = SparseRegressor(k=2, feature_groups=list("aaabcccccd")).fit(X, np.c_[y, X["bmi"]])
    *_, coefficients = model.path_.plot().figure.axes
    assert coefficients.get_xlabel() == "number of groups"
    assert "norm over outputs" in coefficients.get_ylabel()
    assert coefficients.get_ylim()[0] > -1


def test_a_fall_beyond_the_best_size_leaves_the_picture():
    def choice(rule, mean, folds):
        error = np.full(4, 0.1) if folds else None
        sizes = np.arange(4)
        mean = np.array(mean)
        return pauca.results.choice.Choice(rule, "explained", sizes, mean, error, np.ones((3, 4)) if folds else None, 1)

    bottom, top = score_range(choice("best", [0.0, 0.8, 0.7, -900.0], folds=True))
    assert -1 < bottom < -0.1
    assert 0.9 < top < 1.1
    bottom, top = score_range(choice("bic", [10.0, 2.0, 3.0, 1e6], folds=False))
    assert bottom < 2
    assert 10 < top < 20


@pytest.mark.parametrize("desired", [[0.0] * 5, [0, 0.05, 0.9, 0.95, 1.0], [0.5], [], [-1.0, 2.0]])
def test_names_stand_apart_in_order(desired):
    heights = spread_out(sorted(desired), 0.1, 0.0, 1.0)
    assert len(heights) == len(desired)
    assert all(b - a > 0.1 - 1e-9 for a, b in itertools.pairwise(heights))
    assert all(-1e-9 <= height <= 1 + 1e-9 for height in heights)


def test_candidates_without_a_model_have_no_score(tmp_path):
    """Columns that depend on each other have no model without a ridge; the page is drawn without them."""
    rng = np.random.default_rng(0)
    makes = np.eye(3)[np.arange(90) % 3]
    X = np.column_stack([makes, rng.normal(size=(90, 2))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns that are left out
        model = SparseRegressor(selection_rule="best").fit(
            X, makes @ [1.0, 2.0, 4.0] + X[:, 3] + 0.3 * rng.normal(size=90)
        )
    surface = model.path_.choice.surface
    table = surface.to_frame()
    assert surface.mean.min() < -1e300
    assert table["score"].isna().sum() == np.count_nonzero(surface.mean < -1e300)
    assert table["score"].min() > -10
    model.report(tmp_path / "page.html")
