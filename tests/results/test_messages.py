"""What a fitted model and a refused one say to a person: prices, classes, and which estimator to use."""

import copy
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes

import pauca
from pauca import (
    PaucaWarning,
    SparseClassifier,
    SparseCox,
    SparsePrecision,
    SparseRegressor,
    SparseTagger,
    Stop,
    select,
)
from pauca.cli import main
from pauca.results.choice import Choice
from pauca.results.instructions import ON_PAGE, in_shell, parameters_as_options
from pauca.results.surface import Surface
from pauca.wording import quoted

NAMES = ["age", "bmi", "dose", "sex", "sugar", "weight"]
PRICES = {"age": 0, "bmi": 1, "dose": 2.5, "sex": 0, "sugar": 7, "weight": 1}
GROUPS = ["body", "body", "drug", "body", "blood", "body"]


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((80, 6)), columns=NAMES)
    return X, X.to_numpy() @ [0.5, -1.0, 0.8, 0, 2, 0] + rng.standard_normal(80)


def rows(model):
    """The summary's table as dicts by its head; columns are parted by two spaces or more."""
    lines = model.summary().splitlines()
    head, *body = lines[2], *lines[4 : lines.index("", 4)]
    return head.split(), {line.split()[0]: line.split()[1:] for line in body}


# Why a search ended.


def test_the_page_on_trouble_has_every_reason_to_end():
    page = Path(__file__).parents[2].joinpath("docs", "troubleshooting.md").read_text(encoding="utf-8")
    listed = {line.split("`")[1].strip('"') for line in page.splitlines() if line.startswith('| `"')}
    assert listed == {stop.value for stop in Stop}


# What is counted.


def tagged(table, **options):
    X, y = table
    return SparseTagger(k=2, **options).fit([X[:40], X[40:]], [y[:40] > 0, y[40:] > 0])


COUNTED = {
    "sensor": tagged,
    "sensor column": lambda table: tagged(table, feature_groups=GROUPS),
    "weight": lambda table: tagged(table, unit="weight"),
    "edge": lambda table: SparsePrecision(k=2).fit(table[0]),
    "feature": lambda table: SparseRegressor(k=2).fit(*table),
    "group feature": lambda table: SparseRegressor(k=2, feature_groups=GROUPS).fit(*table),
}


@pytest.mark.parametrize("nouns", COUNTED)
def test_the_head_of_a_summary_says_what_is_counted(table, nouns):
    model = COUNTED[nouns](table)
    lines = model.summary().splitlines()
    assert lines[2].split()[: len(nouns.split())] == nouns.split()
    assert lines[0].startswith(f"2 {nouns.split()[0]}s of ")


def test_what_is_free_stands_in_brackets_once(table):
    X, y = table

    class Squares:
        n_coords, free = 7, (6,)
        design = np.column_stack([X, np.ones(len(X))])

        def value(self, w):
            return float(np.mean((self.design @ w - y) ** 2))

        def gradient(self, w):
            return 2 * self.design.T @ (self.design @ w - y) / len(y)

    for name in ("(intercept)", "intercept"):
        lines = select(Squares(), k=2, names=[*NAMES, name]).summary(2).splitlines()
        assert lines[2].split()[0] == "coordinate"
        assert [line.split()[0] for line in lines if "intercept" in line] == ["(intercept)"]


# Prices.


@pytest.mark.parametrize("method", ["exchange", "forward", "foba", "backward"])
def test_prices_are_shown_wherever_there_are_costs(table, method):
    X, y = table
    model = SparseRegressor(k=3, costs=PRICES, budget=10, method=method).fit(X, y)
    assert model.cost_ == sum(PRICES[name] for name in model.get_feature_names_out())
    records = model.path_.table()
    assert [record["cost"] for record in records] == [
        sum(PRICES[name] for name in record["features"]) for record in records
    ]
    assert model.path_.to_frame()["cost"].to_list() == [record["cost"] for record in records]
    assert f"3 features of 6, total cost {model.cost_:g}, objective" in model.summary()
    head, body = rows(model)
    assert head == ["feature", "coefficient", "importance", "cost"]
    for name in model.get_feature_names_out():
        assert body[name][-1] == f"{PRICES[name]:g}"
    assert len(body["(intercept)"]) == 1
    for size in model.path_.sizes:
        assert model.at(size).cost_ == model.path_.cost(size)


def test_a_group_has_one_price(table):
    X, y = table
    by_group = SparseClassifier(k=2, feature_groups=GROUPS, costs={"body": 3, "drug": 4, "blood": 0.5}).fit(X, y > 0)
    assert by_group.feature_groups_.tolist() == ["blood", "body"]
    assert by_group.cost_ == 3.5
    lines = by_group.summary().splitlines()
    assert lines[2].split() == ["group", "feature", "coefficient", "importance", "cost"]
    assert [line.split()[-1] for line in lines if line.startswith(("blood", "body"))] == ["0.5", "3"]
    assert lines[0].startswith("2 groups of 3, 5 coefficients, total cost 3.5,")
    by_column = SparseRegressor(k=2, feature_groups=GROUPS, costs=[1] * 6).fit(X, y)
    assert by_column.path_.prices.tolist() == [1, 4, 1]


def test_without_costs_nothing_is_said_of_them(table):
    X, y = table
    model = SparseRegressor(k=2, costs=PRICES).fit(X, y)
    assert hasattr(model, "cost_")
    model.set_params(costs=None).fit(X, y)
    assert not hasattr(model, "cost_")
    assert "cost" not in model.summary()
    assert "cost" not in model.path_.table()[0]
    assert "cost" not in model.path_.to_frame()
    with pytest.raises(ValueError, match="no costs were given"):
        model.path_.cost(1)
    assert copy.deepcopy(model).path_.prices is None


# Which class a coefficient favours.


@pytest.mark.parametrize("labels", [("benign", "malignant"), (0, 1), (False, True)])
def test_summary_says_which_class_positive_coefficients_speak_for(table, labels):
    X, y = table
    model = SparseClassifier(k=2).fit(X, np.where(y > 0, labels[1], labels[0]))
    words = f"positive coefficients favour class {str(labels[1])!r}, negative ones {str(labels[0])!r}"
    assert words in model.summary().splitlines()
    assert rows(model)[0] == ["feature", "coefficient", "importance"]
    # It is true: the score rises with the feature, and so does the share of the second class.
    assert model.coef_[0, 4] > 0
    assert model.predict(X)[X["sugar"].argmax()] == labels[1]


def test_elsewhere_nothing_is_said_of_positive_coefficients(table):
    X, y = table
    many = SparseClassifier(k=2).fit(X, np.digitize(y, [-1, 1]))
    two_outputs = SparseRegressor(k=2).fit(X, np.column_stack([y, -y + X["dose"]]))
    one_column = SparseRegressor(k=2).fit(X, y[:, None])
    nothing = SparseClassifier(k=2, tol=1e9).fit(X, y > 0)
    for model in (many, two_outputs, one_column, nothing, SparseRegressor(k=2).fit(X, y)):
        assert "positive" not in model.summary()


# Fewer than were requested.


@pytest.mark.parametrize("method", ["exchange", "forward", "foba"])
def test_features_that_do_not_help_are_told_of_once_and_only_where_asked_for(method):
    y = np.array([1.0, -1, 1, -1] * 4)
    X = np.column_stack(
        [np.repeat([1.0, -1], 8), np.tile([1.0, 1, -1, -1], 4), y + np.repeat([1.0, -1], 8), np.ones(16)]
    )
    words = (
        "^Constant columns were left out: 'x3'. k=2 features were requested, but the search ended at 0: "
        "no other lowers the objective. Ask for fewer.$"
    )
    with pytest.warns(PaucaWarning, match=words) as caught:
        model = SparseRegressor(k=2, never=[2], method=method).fit(X, y)
    assert len(caught) == 1
    assert model.stop_ is Stop.NO_GAIN
    SparseRegressor(k=None, never=[2], method=method).fit(X[:, :3], y)
    with pytest.warns(PaucaWarning, match="Constant columns were left out: 'x3'.$"):
        SparseRegressor(k=None, never=[2], method=method).fit(X, y)


def test_limits_of_groups_are_said_in_groups(table):
    X, y = table
    with pytest.warns(
        PaucaWarning, match="k=3 groups were requested, but the search ended at 2: no other fits in budget=5"
    ):
        model = SparseRegressor(k=3, feature_groups=GROUPS, costs=[1] * 6, budget=5).fit(X, y)
    assert "unit" not in model.stop_.message


def test_numbers_that_are_hardly_classes_are_doubted():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 3))
    with pytest.warns(PaucaWarning, match=r"y holds 40 different numbers.*use SparseRegressor"):
        SparseClassifier(k=1, method="forward", ridge=1.0).fit(X, np.arange(90) % 40)


def test_names_of_several_kinds_have_scikit_learns_message():
    X = pd.DataFrame(np.eye(4), columns=["a", "b", 3, "c"])
    with pytest.raises(TypeError, match="all input features have string names"):
        SparseRegressor(k=1).fit(X, [1, 2, 3, 4])


def test_a_name_that_is_nearly_right_is_proposed():
    X = pd.DataFrame(np.random.default_rng(0).standard_normal((20, 3)), columns=["bmi", "age", "dose"])
    with pytest.raises(ValueError, match=r"'BMI', which X does not have. Did you mean 'bmi'"):
        SparseRegressor(k=1, always=["BMI"]).fit(X, X["age"])


def test_the_summary_of_another_size_does_not_say_that_it_was_asked_for():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    model = SparseRegressor(k=3).fit(X, X @ np.arange(5) + rng.standard_normal(40))
    assert "requested size" in model.summary()
    assert "requested size" not in model.at(2).summary()


# Raw tables: what is counted, and what levels are compared with.


def test_the_baseline_of_a_category_is_told():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"city": rng.choice(["Paris", "Lyon", "Nice"], 90, p=[0.6, 0.2, 0.2]), "age": rng.normal(size=90)})
    y = (X["city"] == "Nice") * 3.0 + X["age"] + rng.normal(size=90)
    model = SparseRegressor(k=2).fit(X, y)
    assert model.summary().startswith("2 columns of 2")
    assert rows(model)[0] == ["column", "term", "coefficient", "importance"]
    for text in (model.summary(), model.inference().summary()):
        assert "Baseline: city=Paris. The coefficient of a level is its difference to the baseline" in text
    assert "A category counts as one column" in model.summary()
    assert "Baseline" not in model.at(0).summary()
    assert model.path_.raw_columns(2)[0].levels == ("Paris", "Lyon", "Nice")
    marked = SparseRegressor(k=2, missing="category").fit(X.assign(age=X["age"].where(X["age"] > -1)), y)
    assert f"by the median (age by {X['age'][X['age'] > -1].median():.6g})" in marked.summary()


# What smaller models cost.


@pytest.fixture(scope="module")
def fading():
    """Coefficients that fade: the best model by cross-validation is far from the smallest good one."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.standard_normal((120, 10)), columns=list("abcdefghij"))
    return X, X.to_numpy() @ 0.75 ** np.arange(10) + 1.5 * rng.standard_normal(120)


def test_a_smaller_model_within_one_standard_error_is_told(fading):
    model = SparseRegressor(ridge=[0, 0.1, 1]).fit(*fading)
    smaller = SparseRegressor(ridge=[0, 0.1, 1], selection_rule="1se").fit(*fading)
    assert 0 < smaller.k_ < model.k_
    assert model.path_.choice.one_error_size == smaller.k_
    assert f'at({smaller.k_}, ridge="best") gives it, and selection_rule="1se" chooses such sizes' in model.summary()
    search, fit = model.path_.choice.surface.best_of(smaller.k_)
    ridges = f"({search:.3g} in the search, {fit:.3g} in the fit)"
    assert f"A smaller model, of size {smaller.k_} with ridges of its own {ridges}, is within" in model.summary()
    assert "A smaller model" not in smaller.summary()
    assert model.path_.choice.n_folds == 5


def test_errors_beside_differences_are_those_of_differences(fading):
    model = SparseRegressor(ridge=[0, 0.1, 1]).fit(*fading)
    choice = model.path_.choice
    place = choice.surface.sizes == choice.one_error_size
    best = np.argmax(choice.surface.mean[:, :, place])
    error = choice.surface.standard_error[:, :, place].ravel()[best]
    assert f"(± {100 * error:.2g}, the standard error of this difference)" in choice.smaller
    simple = SparseRegressor(ridge=0, selection_rule="1se").fit(*fading).path_.choice
    error = simple.difference_error[simple.position(simple.best)]
    assert f"more (± {100 * error:.2g}, the standard error of this difference)" in simple.message


def test_what_fewer_features_give_is_at_the_top(fading, tmp_path):
    """The smallest size with 95 % of the gain if half the size has it, then 90 %, then 80 %."""
    model = SparseRegressor(k=range(11), ridge=[0, 0.1, 1]).fit(*fading)
    choice, chosen = model.path_.choice, model.path_.choice.chosen
    mean = choice.surface.mean.max(axis=(0, 1))  # every size at the ridges that are best for it
    mean[chosen] = choice.mean[chosen]
    size = choice.fewer_size
    assert 0 < size <= choice.chosen / 2
    reached = mean / mean[choice.chosen]
    share = next(share for share in (0.95, 0.9, 0.8) if (reached[: choice.chosen // 2 + 1] >= share).any())
    assert size == np.flatnonzero(reached >= share)[0]
    assert choice.mean[size] / mean[choice.chosen] < share  # the path's own model does not gain as much
    other = model.at(size, ridge="best")
    few = f"{size} features ({quoted(other.path_.names(size))}) give "
    line = model.summary().splitlines()[1]
    assert line == (
        f"{few}{100 * reached[size]:.0f} % of the share that {choice.chosen} explain on held-out rows "
        f"({100 * mean[size]:.1f} of {100 * mean[choice.chosen]:.1f} %, with the ridge that is best for {size}); "
        f'see at({size}, ridge="best").'
    )
    assert other.path_.choice.mean[size] == mean[size]  # what the line says is what its call gives
    model.save(tmp_path / "model.json")
    assert pauca.load(tmp_path / "model.json").summary().splitlines()[1].startswith(few)
    assert f"the ridge that is best for {size})." in choice.fewer("feature", [], ON_PAGE)
    assert f"; pauca fit with --size {size} added gives it." in choice.fewer("feature", [], in_shell())
    assert "explain on held-out rows" not in model.at(size).summary().splitlines()[1]
    few = Choice(
        "best", "accuracy", np.arange(5), np.array([0.5, 0.89, 0.88, 0.89, 0.9]), np.ones(5), np.ones((5, 5)), 4
    )
    assert few.fewer("feature", ["a"]) == "1 feature ('a') has accuracy 0.89 on held-out rows, 4 have 0.9; see at(1)."
    none = Choice("best", "explained", np.arange(5), np.linspace(0, 0.4, 5), np.ones(5), np.ones((5, 5)), 4)
    assert none.fewer("feature", []) == ""


def test_of_ridges_that_score_the_same_the_path_has_one():
    """Two searches that find the same two features are one model: at(2) is it, and nothing sends readers elsewhere."""
    model = SparseRegressor().fit(*load_diabetes(return_X_y=True, as_frame=True))
    assert model.path_.choice.surface.mean[:, :, 2].ravel().tolist().count(model.path_.choice.mean[2]) > 1
    assert model.at(2, ridge="best").path_ is model.path_
    assert "at(2)." in model.summary().splitlines()[1]


def test_other_sizes_tell_their_own_scores_and_ridges(fading):
    model = SparseRegressor(k=range(11), ridge=[0, 0.1, 1]).fit(*fading)
    surface = model.path_.choice.surface
    assert "new fit" not in model.summary()
    for size in (1, 3, 9):
        search, ridge = surface.best_of(size)
        score = surface.mean[:, :, surface.sizes == size].max()
        text, other = model.at(size).summary(), model.at(size, ridge="best").summary()
        assert f"Its ridge is that of the whole path, {model.ridge_:.3g}" in text  # and not 0
        assert f"a new fit with k={size} has none unless you give one." in text
        assert (f'at({size}, ridge="best") has {ridge:.3g}' in text) == (ridge != model.ridge_)
        if (search, ridge) != (surface.search_ridge, surface.ridge):
            assert f"scored best for it: {100 * score:.2f} %" in other
            assert f"This size was set by hand, and its ridge, {ridge:.3g}" in other
            assert "Its ridge is" not in other
            assert f"{model.k_} with ridge {surface.ridge:.3g} was chosen" in other
        assert model.at(size, ridge="best").path_.to_frame()["score"][size] == pytest.approx(score)
        assert text.splitlines()[0].endswith(
            f", {100 * model.path_.choice.mean[size]:.2f} % on held-out rows (optimistic)"
        )
    assert (
        SparseRegressor(k=3)
        .fit(*fading)
        .summary()
        .splitlines()[0]
        .endswith("% of the variance explained on the rows of the fit (for others see evaluate)")
    )
    given = SparseRegressor(k=range(11), ridge=0.1).fit(*fading)
    assert "Its ridge is" not in given.at(1).summary()


def test_a_path_without_a_ridge_is_not_told_from_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    model = SparseRegressor(k=range(7), ridge=[0, 1]).fit(X, X @ [3, 2, 1, 1, 1, 1] + rng.normal(size=200))
    assert model.ridge_ == model.search_ridge_ == 0
    text = model.at(5).summary()
    assert "It has no ridge, like the whole path, which scored best for it too." in text
    assert "new fit" not in text


def test_a_shell_and_a_page_have_no_calls_of_python(fading):
    model = SparseRegressor(k=range(11), ridge=[0, 0.1, 1]).fit(*fading)
    for size in model.path_.sizes:
        shell, page = (model.at(size).summary(how) for how in (in_shell("a {1}.json"), ON_PAGE))
        assert not any(call in shell + page for call in ("at(", "evaluate", "rule=", "ridge="))
    assert "pauca fit with --size 2 added gives it." in model.summary(in_shell("a {1}.json"))
    given = SparseRegressor(k=range(11), ridge=0).fit(*fading)
    assert "pauca explain 'a {1}.json' --size" in given.summary(in_shell("a {1}.json"))
    assert "pauca fit --k 1 without --ridge has none" in model.at(1).summary(in_shell())


def test_warnings_name_options_in_a_shell():
    text = "Set a ridge, such as ridge=1e-3, or selection_rule='best'. Left out: 'k=3', 'method=\"x\"', tank=3."
    words = "Set a ridge, such as --ridge 1e-3, or --selection-rule best. Left out: 'k=3', 'method=\"x\"', tank=3."
    assert parameters_as_options(text) == words
    text = "The column's name, 'old k=3 (ridge=1)', stays; never=['old k=3', \"b's\"] leaves them out."
    words = "The column's name, 'old k=3 (ridge=1)', stays; --never 'old k=3,b'\"'\"'s' leaves them out."
    assert parameters_as_options(text) == words


def test_proofs_of_another_objective_have_names_that_say_so(fading):
    model = SparseRegressor(k=3, ridge=0.5, search_ridge=0.1).fit(*fading)
    found = model.path_.to_frame()
    assert found["search_proved"].all()
    assert found["search_lower_bound"][3] == pytest.approx(found["search_objective"][3])
    assert "lower_bound" not in found
    assert "lower_bound" in SparseRegressor(k=3).fit(*fading).path_.to_frame()


def test_a_size_that_scores_higher_than_the_best_is_explained():
    mean = np.array([0.0, 0.03, 0.0442, 0.04, 0.0424])
    error = np.full(5, 0.01)
    choice = Choice(0.25, "explained", np.arange(5), mean, error, np.tile(mean, (5, 1)), 3, best_size=4)
    assert "the best, 4, has 4.24 %" in choice.message
    assert (
        "2 scored higher, 4.42 %, but does not count as the best: with the sizes just above it the average is 4.22 %"
        in choice.message
    )
    mean[2] = 0.02
    assert "scored higher" not in choice.message


# What must be known to read a table.


def test_categories_of_many_levels_are_folded_and_told(tmp_path, capsys):
    rng = np.random.default_rng(0)
    level = rng.integers(0, 26, 120)
    X = pd.DataFrame({"model": [f"m{code:02}" for code in level], "area": rng.normal(size=120)})
    y = 2 * X["area"] + 0.1 * level + 9 * (level == 7) + 0.1 * rng.normal(size=120)
    with pytest.warns(
        PaucaWarning, match="The 2 chosen columns have 26 coefficients, on 120 rows \\('model' alone has 25"
    ):
        model = SparseRegressor(k=2).fit(X, y)
    lines = model.summary().splitlines()
    assert sum("model=m" in line for line in lines[: lines.index("", 4)]) == 5
    assert any("model=m07" in line for line in lines)
    assert any(line.split() == ["and", "20", "more"] for line in lines)
    assert "path_.coefficients(2) has all of them" in model.summary()
    assert "pauca explain m.json --size 2 has all" in model.summary(in_shell("m.json"))
    model.save(tmp_path / "m.json")
    assert main(["explain", str(tmp_path / "m.json")]) == 0
    text = capsys.readouterr().out.split("Effects:")[0]
    assert sum("model=m" in line and "aseline" not in line for line in text.splitlines()) == 25
    assert "has all of them" not in text
    coefficients = model.path_.coefficients(2)
    assert list(coefficients) == list(model.get_feature_names_out())
    assert list(coefficients.values()) == model.coef_[model.support_].tolist()
    few = SparseRegressor(k=2).fit(X.assign(model=["abc"[code % 3] for code in level]), y)  # no warning
    assert "more" not in few.summary()


def test_several_outputs_have_lists_of_coefficients(table):
    X, y = table
    model = SparseRegressor(k=2).fit(X, np.column_stack([y, -y]))
    assert model.path_.coefficients(2) == dict(
        zip(model.path_.names(2), model.coef_[:, model.support_].T.tolist(), strict=True)
    )


@pytest.mark.parametrize("n_columns", [30, 31])
def test_many_columns_without_names_come_with_a_hint(n_columns):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, n_columns))
    X[:, 4] = 1.0
    many = n_columns > 30
    with pytest.warns(PaucaWarning, match="'x4'") as caught:
        model = SparseRegressor(k=1).fit(X, X[:, 7] + rng.normal(size=60))
    said = str(caught[0].message)
    assert said.count("pauca.name_features(pipeline)") == said.count("give feature_names= to fit") == many
    assert parameters_as_options(said).endswith("left out: 'x4'.")
    assert model.summary().count("pauca.name_features(pipeline)") == many
    named = SparseRegressor(k=1).fit(X[:, 5:], X[:, 7], feature_names=[f"word {j}" for j in range(n_columns - 5)])
    assert "name_features" not in named.summary()


def test_columns_that_add_nothing_are_named(table):
    X, y = table
    model = SparseRegressor(k=3).fit(X, 1e3 * X["sugar"] + X["dose"] + X["bmi"] + y)
    assert "0.00 %" in model.summary()
    assert "lost without 'age', 'dose', if only one of them were left out." in model.summary()
    assert "Next to nothing would be lost without 'dose'." in model.at(2).summary()
    assert "Next to nothing" not in SparseRegressor(k=2).fit(X, y).summary()


@pytest.mark.parametrize(("better", "end"), [(1e-6, " explained on held-out rows."), (1e-3, "; ridge 0 has 40.10 %.")])
def test_scores_that_print_alike_are_not_compared(better, end):
    mean, error = np.array([[[0.0, 0.4 + better], [0.0, 0.4]]]), np.array([[[0.1, 0.0], [0.1, 0.1]]])
    sizes, ridges = np.arange(2), np.array([0.0, 0.1])
    surface = Surface(ridges[:1], ridges, sizes, mean, error, 0.1, 0.0, error)
    choice = Choice(0.25, "explained", sizes, mean[0, 1], error[0, 1], np.tile(mean[0, 1], (5, 1)), 1, surface)
    assert choice.message.startswith("1 is the best size by 5-fold cross-validation; of its ridges, 0.1 is the largest")
    assert choice.message.endswith(end)


@pytest.mark.parametrize("groups", [None, ["who", "what", "what", "who", "when"]])
def test_what_is_forced_in_does_not_look_chosen(table, tmp_path, groups):
    X, y = table
    X = X.iloc[:, :5]
    forced = X.columns[0] if groups is None else "when"
    model = SparseRegressor(k=2, always=[forced], feature_groups=groups)
    model.fit(X, 1e3 * X[X.columns[1]] + 1e-3 * np.random.default_rng(0).normal(size=len(y)))
    found = model.stability(4)
    model.save(tmp_path / "model.json")
    for one in (model, pauca.load(tmp_path / "model.json")):
        assert one.summary().count("(forced in)") == 1
        assert f"\n{forced} (forced in)  " in one.summary()
        assert f"lost without {forced!r}" not in one.summary()
    assert found.frequency[forced] == 1
    shown = {line.split()[0]: line for line in str(found).split("\n") if line}
    assert " ".join(shown[forced].split()) == f"{forced} forced in yes"
    assert str(found).count("forced in") == 1
    model.report(tmp_path / "page.html", n_resamples=0)
    page = (tmp_path / "page.html").read_text()
    assert f"{forced} was forced in, not selected." in page
    assert page.count(">forced in<") == 2


def test_summaries_say_what_it_is_that_they_explain(fading):
    X, y = fading
    words = {
        "variance": SparseRegressor(k=1),
        "sum of squares": SparseRegressor(k=1, fit_intercept=False),
        "loss": SparseRegressor(k=1, loss="absolute_error"),
        "deviance": SparseClassifier(k=1),
    }
    for word, model in words.items():
        head = model.fit(X, y > np.median(y) if word == "deviance" else y).summary().splitlines()[0]
        assert f" % of the {word} explained on the rows of the fit (for others see evaluate)" in head


def test_models_without_their_data_do_not_point_to_what_needs_them(fading):
    model = SparseRegressor(k=range(11), ridge=[0, 0.1, 1]).fit(*fading)
    loaded = pickle.loads(pickle.dumps(model))
    assert 'see at(2, ridge="best")' in model.summary()
    assert 'at(2, ridge="best") gives it where the model was fitted' in loaded.summary()
    assert 'at(1, ridge="best") has' in model.at(1).summary()
    assert "and needs the data of the fit" in loaded.at(1).summary()


def test_few_events_among_many_rows_are_warned_of():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.where(np.argsort(np.argsort(-X[:, 0] + rng.normal(size=300))) < 4, "ill", "well")
    with pytest.warns(PaucaWarning, match=r"only 4 rows of class 'ill' among 300 rows, for 1 coefficient: with fewer"):
        SparseClassifier(k=1, ridge=0.1).fit(X, y)
    often = np.arange(300) < 40
    with pytest.warns(PaucaWarning, match=r"only 40 rows of class 'True' among 300 rows, for 9 coefficients"):
        SparseClassifier(k=9, ridge=0.1).fit(rng.normal(size=(300, 9)), often)
    ends = np.arange(1.0, 301.0)
    with pytest.warns(PaucaWarning, match=r"only 4 events among 300 rows, for 2 coefficients.* ask for fewer features"):
        SparseCox(k=2, ridge=0.1).fit(X, pd.DataFrame({"event": y == "ill", "time": ends}), event="event", time="time")
    # The other outcome is the rare one, or the whole table is small: nothing is said of events.
    SparseClassifier(k=1, ridge=0.1).fit(X[:30], np.where(X[:30, 0] > 0.9, "ill", "well"))
    SparseCox(k=1, ridge=0.1).fit(X, pd.DataFrame({"event": y == "well", "time": ends}), event="event", time="time")


def test_a_size_with_a_higher_score_is_named_where_caution_chose_another():
    sizes, ridges = np.arange(4), np.array([0.1])
    mean = np.array([[[0.0, 0.3, 0.2, 0.29]]])
    error = np.array([[[0.1, 0.1, 0.1, 0.0]]])  # the last was compared with all others, and is the choice
    surface = Surface(ridges, ridges, sizes, mean, error, 0.1, 0.1, error)
    choice = Choice(0.25, "explained", sizes, mean[0, 0], error[0, 0], np.tile(mean[0, 0], (5, 1)), 3, surface, 3)
    assert "3 with ridge 0.1 is the choice of" in choice.message
    assert "1 with ridge 0.1 scored higher, 30.00 %, but does not count as the best" in choice.message
    smaller = Choice(0.25, "explained", sizes, mean[0, 0], error[0, 0], np.tile(mean[0, 0], (5, 1)), 1, surface, 3)
    assert "1 with ridge 0.1 is best by" in smaller.message
    assert "scored higher" not in smaller.message  # nothing but the choice itself did
    close = replace(choice, one_error_size=1, chosen=2)
    assert close.smaller == "A smaller model, of size 1, is within one standard error of the best: 30.00 %."
    two = Surface(
        np.array([0.01, 0.1]),
        np.array([0.01, 0.1]),
        sizes,
        np.stack([np.stack([mean[0, 0] + 0.05] * 2), np.stack([mean[0, 0]] * 2)]),
        np.stack([np.full((2, 4), 0.1), np.stack([np.full(4, 0.1), error[0, 0]])]),
        0.1,
        0.1,
        np.full((2, 2, 4), 0.1),
    )
    two.mean[0, 0, 3] = 0.4
    same = Choice(0.25, "explained", sizes, mean[0, 0], error[0, 0], np.tile(mean[0, 0], (5, 1)), 3, two, 3)
    assert "3 with ridge 0.1 is the choice of" in same.message
    assert (
        "3 with ridge 0.01 scored higher, 40.00 %, but does not count as the best: its predictions are too sure"
        in same.message
    )
    mean[..., 1] = 0.1
    assert "3 with ridge 0.1 is best by" in choice.message
