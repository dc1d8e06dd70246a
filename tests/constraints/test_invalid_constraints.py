"""Invalid constraints raise an error before any work, with the parameter and the column or value by name."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from pauca import SparseClassifier, SparseRegressor
from pauca.losses import (
    AbsoluteError,
    Hinge,
    Huber,
    LogLoss,
    Multinomial,
    Poisson,
    Quantile,
    SquaredError,
    SquaredHinge,
)

NAMES = ["age", "bmi", "dose", "sex", "sugar", "weight"]
GROUPS = ["body", "body", "drug", "body", "blood", "body"]


def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 6))
    score = X @ [1.0, -1, 0, 0.5, 2, 0] + rng.standard_normal(50)
    return X, score


def refused(error, words, estimator, X, y, **fit):
    """The fit is refused with these words, and no move was made."""
    moves = []
    estimator.set_params(callback=moves.append)
    with pytest.raises(error, match=words):
        estimator.fit(X, y, **fit)
    assert moves == []
    assert not hasattr(estimator, "path_")


def test_a_fit_that_is_not_refused_makes_moves():
    """What the other tests here look at can be seen."""
    moves = []
    SparseRegressor(k=2, callback=moves.append).fit(*table())
    assert moves


CONSTRAINTS = [
    # Groups.
    (
        {"feature_groups": GROUPS[:5]},
        ValueError,
        r"'feature_groups' must hold one label for each of the 6 columns; got shape \(5,\)",
    ),
    ({"feature_groups": [*GROUPS, "x"]}, ValueError, r"'feature_groups' .* 6 columns; got shape \(7,\)"),
    ({"feature_groups": [GROUPS]}, ValueError, r"'feature_groups' .* got shape \(1, 6\)"),
    ({"feature_groups": "body"}, ValueError, r"'feature_groups' must hold one label for each of the 6 columns"),
    ({"feature_groups": 3}, ValueError, r"'feature_groups' must hold one label for each of the 6 columns"),
    ({"feature_groups": set(range(6))}, TypeError, "'feature_groups'"),
    ({"feature_groups": [1.0, 1, 2, 1, np.nan, 1]}, ValueError, "'feature_groups' holds no label for some columns: '"),
    (
        {"feature_groups": ["a", "a", "b", "a", np.nan, "a"]},
        ValueError,
        "'feature_groups'.*sugar",
    ),
    (
        {"feature_groups": np.array(["a", "a", "b", "a", None, "a"], dtype=object)},
        ValueError,
        "'feature_groups'.*sugar",
    ),
    (
        {"feature_groups": pd.Series(["a", "a", "b", "a", pd.NA, "a"], dtype="string")},
        ValueError,
        "'feature_groups'.*sugar",
    ),
    (
        {"feature_groups": dict(zip(NAMES, [1.0, 1, 2, 1, np.nan, 1], strict=True))},
        ValueError,
        "'feature_groups'.*sugar",
    ),
    (
        {"feature_groups": dict(zip(NAMES, [*"aabb", None, "a"], strict=True))},
        ValueError,
        "'feature_groups' .*: 'sugar'",
    ),
    (
        {"feature_groups": {**dict(zip(NAMES, GROUPS, strict=True)), "height": 1}},
        ValueError,
        "'feature_groups' names the column 'height'",
    ),
    (
        {"feature_groups": {**dict(enumerate(GROUPS)), 6: "x"}},
        ValueError,
        "'feature_groups' names column 6; X has columns 0 to 5",
    ),
    ({"feature_groups": {"body": ["age"], "g": []}}, ValueError, "'feature_groups' has no columns in the group 'g'"),
    # At most so many of a group.
    ({"max_per_group": 1}, ValueError, "'max_per_group' needs 'feature_groups'"),
    (
        {"max_per_group": 0, "feature_groups": GROUPS},
        ValueError,
        "'max_per_group' must be an integer of at least 1; got 0",
    ),
    ({"max_per_group": -2, "feature_groups": GROUPS}, ValueError, "'max_per_group' must be .* got -2"),
    ({"max_per_group": 1.5, "feature_groups": GROUPS}, ValueError, r"'max_per_group' must be .* got 1\.5"),
    ({"max_per_group": True, "feature_groups": GROUPS}, ValueError, "'max_per_group' must be .* got True"),
    ({"max_per_group": "two", "feature_groups": GROUPS}, ValueError, "'max_per_group' must be .* got 'two'"),
    # Always and never.
    ({"always": ["height"]}, ValueError, "'always' names the column 'height', which X does not have"),
    ({"never": ["height"]}, ValueError, "'never' names the column 'height', which X does not have"),
    ({"always": [6]}, ValueError, "'always' names column 6; X has columns 0 to 5"),
    ({"never": [-1]}, ValueError, "'never' names column -1; X has columns 0 to 5"),
    ({"always": "age"}, TypeError, r"'always' must be a list of column names or indices; got 'age'. Write \['age'\]"),
    ({"never": "age"}, TypeError, r"'never' must be a list .* Write \['age'\]"),
    ({"always": 2}, TypeError, r"'always' must be a list .* got 2. Write \[2\]"),
    ({"always": 2.5}, TypeError, "'always' must be a list .* got 2.5"),
    ({"always": np.array(2)}, TypeError, "'always'"),
    ({"always": [True]}, TypeError, "'always' must name columns by name or index; got True"),
    ({"never": [False, True]}, TypeError, "'never' must name columns by name or index; got False"),
    ({"always": np.arange(6) == 2}, TypeError, "'always' must name columns by name or index"),
    ({"always": [1.0]}, TypeError, r"'always' must name columns by name or index; got 1\.0"),
    ({"always": [None]}, TypeError, "'always' must name columns by name or index; got None"),
    ({"always": [["age"]]}, TypeError, r"'always' must name columns by name or index; got \['age'\]"),
    ({"always": ["age", "sex"], "never": ["sex"]}, ValueError, "'always' and 'never' overlap: 'sex' cannot be both"),
    ({"always": ["age"], "never": [0]}, ValueError, "'always' and 'never' overlap: 'age'"),
    ({"always": ["age", "sex", "bmi"], "k": 2}, ValueError, "'always' holds 3 features, more than k=2"),
    (
        {"always": ["body", "drug"], "feature_groups": GROUPS, "k": 1},
        ValueError,
        "'always' holds 2 groups, more than k=1",
    ),
    (
        {"always": ["heart"], "feature_groups": GROUPS},
        ValueError,
        "'always' names 'heart', which is no group",
    ),
    (
        {"always": ["age"], "never": ["bmi"], "feature_groups": GROUPS},
        ValueError,
        "'always' and 'never' overlap: 'body'",
    ),
    (
        {"always": [True], "feature_groups": [1, 1, 2, 1, 3, 1]},
        TypeError,
        "'always' .*True",
    ),
    (
        {"always": ["age", "bmi"], "feature_groups": GROUPS, "max_per_group": 1},
        ValueError,
        "'always' holds 2 columns of the group .*'body'.*, max_per_group is 1",
    ),
    # Costs and budget.
    ({"costs": [1] * 5, "budget": 3}, ValueError, r"'costs' .* each of the 6 columns; got 5"),
    ({"costs": 1, "budget": 3}, TypeError, "'costs' must hold a number for every column; got 1"),
    ({"costs": ["dear"] * 6, "budget": 3}, TypeError, "'costs' must hold numbers; those of 'age'"),
    ({"costs": [1, 1, -1, 1, 1, 1], "budget": 3}, ValueError, "'costs' must be finite and not negative; .*'dose'"),
    ({"costs": [1, np.nan, 1, 1, 1, 1], "budget": 3}, ValueError, "'costs' must be finite and not negative; .*'bmi'"),
    (
        {"costs": [1, 1, 1, 1, 1, np.inf], "budget": 3},
        ValueError,
        "'costs' must be finite and not negative; .*'weight'",
    ),
    ({"costs": dict.fromkeys([*NAMES, "height"], 1), "budget": 3}, ValueError, "'costs' names the column 'height'"),
    ({"costs": {**dict.fromkeys(NAMES, 1), "sex": -2}, "budget": 3}, ValueError, "'costs' must be .*'sex'"),
    ({"costs": {**dict.fromkeys(NAMES, 1), "sex": np.nan}, "budget": 3}, ValueError, "'costs' must be .*'sex'"),
    (
        {"costs": {**dict.fromkeys(NAMES, 1), "sex": "1"}, "budget": 3},
        TypeError,
        "'costs' must hold numbers; .*'sex'",
    ),
    ({"costs": {**dict.fromkeys(NAMES, 1), "sex": True}, "budget": 3}, TypeError, "'costs' must hold numbers; .*'sex'"),
    (
        {"costs": {"body": 1, "blood": -1, "drug": 2}, "feature_groups": GROUPS, "budget": 3},
        ValueError,
        "'costs' must be finite and not negative; .*'blood'",
    ),
    (
        {"costs": [2, -1, 1, 1, 1, 1], "feature_groups": GROUPS, "budget": 3},
        ValueError,
        "'costs' must be finite and not negative",
    ),
    ({"budget": 3}, ValueError, "'budget' needs 'costs'"),
    ({"costs": [1] * 6, "budget": np.nan}, ValueError, "'budget' must be finite and not negative; got nan"),
    ({"costs": [1] * 6, "budget": -1}, ValueError, "'budget' must be finite and not negative; got -1"),
    ({"costs": [1] * 6, "budget": np.inf}, ValueError, "'budget' must be finite and not negative; got inf"),
    ({"costs": [1] * 6, "budget": "3"}, TypeError, "'budget' must be a number or None; got '3'"),
    ({"costs": [1] * 6, "budget": True}, TypeError, "'budget' must be a number or None; got True"),
    ({"costs": [4, 5, 6, 7, 8, 3], "budget": 2}, ValueError, "budget of 2 is below the cheapest .* costs 3"),
    ({"costs": [4, 5, 6, 7, 8, 3], "budget": 3, "never": [5]}, ValueError, "budget of 3 is below .* costs 4"),
    (
        {"costs": [1] * 6, "feature_groups": GROUPS[:2] * 3, "budget": 5},
        ValueError,
        "budget of 5 is below .* groups, .* costs 6",
    ),
    ({"costs": [3] * 6, "budget": 5, "always": ["age", "sex"]}, ValueError, "'always' alone costs 6, .* budget of 5"),
    # Bounds.
    ({"bounds": (1, -1)}, ValueError, "bounds is crossed: the lower bound 1 is above the upper bound -1"),
    ({"bounds": {"sex": (2, 1)}}, ValueError, r"bounds\['sex'\] is crossed"),
    ({"bounds": (1, 2)}, ValueError, r"bounds must include 0.*got \(1, 2\)"),
    ({"bounds": {"sex": (None, -1)}}, ValueError, r"bounds\['sex'\] must include 0"),
    ({"bounds": (np.nan, 1)}, ValueError, "bounds holds a bound that is not a number"),
    ({"bounds": {"sex": (0, np.nan)}}, ValueError, r"bounds\['sex'\] holds a bound that is not a number"),
    ({"bounds": (0, 1, 2)}, TypeError, r"bounds must be a pair \(lower, upper\).*got \(0, 1, 2\)"),
    ({"bounds": 1}, TypeError, r"bounds must be a pair \(lower, upper\).*got 1"),
    ({"bounds": [(0, 1)] * 6}, TypeError, r"bounds must be a pair \(lower, upper\)"),
    ({"bounds": [(0, 1)] * 2}, TypeError, r"bounds must be a pair \(lower, upper\)"),
    ({"bounds": "up"}, TypeError, r"bounds must be a pair \(lower, upper\)"),
    ({"bounds": {"sex": 1}}, TypeError, r"bounds\['sex'\] must be a pair \(lower, upper\).*got 1"),
    ({"bounds": {"height": (0, 1)}}, ValueError, "'bounds' names the column 'height'"),
    ({"bounds": {6: (0, 1)}}, ValueError, "'bounds' names column 6; X has columns 0 to 5"),
    ({"bounds": {True: (0, 1)}}, TypeError, "'bounds' must name columns by name or index; got True"),
]


@pytest.mark.parametrize("loss", ["squared_error", "log_loss"])
@pytest.mark.parametrize(("params", "error", "words"), CONSTRAINTS)
def test_constraints_are_refused(params, error, words, loss):
    X, score = table()
    make, y = (SparseRegressor, score) if loss == "squared_error" else (SparseClassifier, score > 0)
    refused(error, words, make(**{"k": 3, **params}), pd.DataFrame(X, columns=NAMES), y)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"always": ["age"]}, "'always' names the column 'age', but X has no column names; give its index"),
        ({"never": ["age"]}, "'never' names the column 'age', but X has no column names"),
        ({"bounds": {"age": (0, None)}}, "'bounds' names the column 'age', but X has no column names"),
        ({"costs": {"age": 1}, "budget": 1}, "'costs' names the column 'age', but X has no column names"),
        ({"feature_groups": {"age": 1}}, "'feature_groups' names the column 'age', but X has no column names"),
        ({"costs": [1, 1, 1, -1, 1, 1], "budget": 1}, "'costs' must be finite and not negative; those of 'x3'"),
    ],
)
def test_names_need_a_frame(kind, params, words):
    X, y = table()
    refused(ValueError, words, SparseRegressor(k=2, **params), kind(X), y)


@pytest.mark.parametrize("method", ["forward", "backward", "foba", "exchange"])
def test_columns_that_cannot_be_fitted_are_not_forced_in(method):
    X, y = table()
    X[:, 3] = 2.0
    frame = pd.DataFrame(X, columns=NAMES)
    refused(
        ValueError,
        "'always' holds constant columns.*'sex'",
        SparseRegressor(k=2, always=["sex"], method=method),
        frame,
        y,
    )


# Losses and targets.


@pytest.mark.parametrize(
    ("make", "loss", "words"),
    [
        (
            SparseRegressor,
            "cubed",
            "loss must be one of 'absolute_error', 'gamma', 'huber', .* 'squared_error', 'tweedie'.*got 'cubed'",
        ),
        (SparseClassifier, "cubed", "loss must be one of 'hinge', 'log_loss', 'squared_hinge'.*got 'cubed'"),
        (SparseRegressor, None, "loss must be one of.*got None"),
        (SparseRegressor, Huber, "loss must be an object, not a class: write Huber"),
        (SparseRegressor, "log_loss", "loss='log_loss' is for targets that are classes; use SparseClassifier"),
        (SparseRegressor, "hinge", "loss='hinge' is for targets that are classes; use SparseClassifier"),
        (SparseRegressor, Multinomial(), r"loss=Multinomial\(\) is for targets that are classes; use SparseClassifier"),
        (SparseRegressor, LogLoss(), r"loss=LogLoss\(\) is for targets that are classes"),
        (SparseRegressor, Hinge(), r"loss=Hinge\(.*\) is for targets that are classes"),
        (SparseRegressor, SquaredHinge(), r"loss=SquaredHinge\(\) is for targets that are classes"),
        (
            SparseClassifier,
            "squared_error",
            "loss='squared_error' is for targets that are numbers; use SparseRegressor",
        ),
        (SparseClassifier, "poisson", "loss='poisson' is for targets that are numbers"),
        (SparseClassifier, SquaredError(), r"loss=SquaredError\(\) is for targets that are numbers"),
        (SparseClassifier, AbsoluteError(), r"loss=AbsoluteError\(.*\) is for targets that are numbers"),
        (SparseClassifier, Quantile(0.3), r"loss=Quantile\(.*\) is for targets that are numbers"),
        (SparseClassifier, Poisson(), r"loss=Poisson\(\) is for targets that are numbers"),
    ],
)
def test_losses_are_refused(make, loss, words):
    X, score = table()
    refused(ValueError, words, make(k=2, loss=loss), X, score if make is SparseRegressor else score > 0)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.arange(50) - 1.0, "counts: y must not be negative, but its minimum is -1"),
        (np.zeros(50), "needs a positive count in every output"),
        (
            np.column_stack([np.arange(50), -np.arange(50)]),
            "counts: y must not be negative, but its minimum is -49",
        ),
        (
            np.column_stack([np.arange(50), np.zeros(50)]),
            "needs a positive count in every output",
        ),
    ],
)
def test_counts_are_refused(y, words):
    refused(ValueError, words, SparseRegressor(k=2, loss="poisson"), table()[0], y)


def test_counts_that_do_not_count_are_refused():
    y = np.where(np.arange(50) < 10, 3.0, 0.0)
    model = SparseRegressor(k=2, loss="poisson")
    refused(ValueError, "positive count", model, table()[0], y, sample_weight=np.where(y > 0, 0.0, 1.0))


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.ones(50), "at least two classes; y holds the one class .*1"),
        (["yes"] * 50, "at least two classes; y holds the one class .*yes"),
        (np.linspace(0, 1, 50), "Unknown label type: continuous.*use SparseRegressor"),
        (np.where(np.arange(50) == 3, np.nan, 1.0), "Input y contains NaN"),
        (np.where(np.arange(50) == 3, np.inf, 1.0), "Input y contains infinity"),
        (np.array([None, *["a", "b"] * 24, "a"], dtype=object), "Unknown label type|contains (NaN|None)"),
        (np.column_stack([np.arange(50) % 2, np.arange(50) % 3]), "y should be a 1d array"),
        (np.arange(49) % 2, r"inconsistent numbers of samples: \[50, 49\]"),
    ],
)
def test_classes_are_refused(y, words):
    refused(ValueError, words, SparseClassifier(k=2), table()[0], y)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.where(np.arange(50) == 3, np.nan, 1.0), "Input y contains NaN"),
        (np.where(np.arange(50) == 3, -np.inf, 1.0), "Input y contains infinity"),
        (np.where(np.arange(100) == 73, np.nan, 1.0).reshape(50, 2), "Input y contains NaN"),
        (["low"] * 50, "y holds text, such as 'low', .* use SparseClassifier"),
        (np.array([b"low"] * 50), "y holds text, such as b'low', .* use SparseClassifier"),
        (pd.Series(["low", "high"] * 25, dtype="category"), "y holds text, such as 'low', .* use SparseClassifier"),
        (np.array([1.0, "high"] * 25, dtype=object), "y holds text, such as 'high', .* use SparseClassifier"),
        (pd.DataFrame({"a": [1.0] * 50, "b": ["low"] * 50}), "y holds text, such as 'low'"),
        (np.ones((50, 2, 2)), "dim 3"),
        (np.full(50, 1e200), "Input y has values of magnitude 1e\\+200"),
    ],
)
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber"])
def test_numbers_are_refused(y, words, loss):
    refused(ValueError, words, SparseRegressor(k=2, loss=loss), table()[0], y)


@pytest.mark.parametrize(("value", "words"), [(np.nan, "Input y contains NaN"), (np.inf, "Input y contains infinity")])
@pytest.mark.parametrize("estimator", [SparseRegressor(k=2), SparseClassifier(k=2)])
def test_plain_arrays_pass_only_with_a_finite_target(estimator, value, words):
    y = np.where(np.arange(50) == 3, value, np.arange(50) % 2)
    refused(ValueError, words, estimator, np.asarray(table()[0]), y)


@pytest.mark.parametrize("estimator", [SparseRegressor(k=2), SparseClassifier(k=2)])
def test_missing_values_of_any_float_are_found_among_objects(estimator):
    y = np.array([0, 1] * 25, dtype=object)
    y[3] = np.float32("nan")
    refused(ValueError, "Input y contains NaN(:|, which is no class)", estimator, table()[0], y)


@pytest.mark.parametrize(
    ("class_weight", "words"),
    [
        ({"no": 1, "maybe": 2}, r"The classes, \['yes'\], are not in class_weight"),
        ("even", "class_weight.*'balanced'.*'even'"),
        (3, "class_weight.*got 3"),
        ({"no": -1, "yes": 1}, "class_weight"),
        ({"no": np.nan, "yes": 1}, "class_weight"),
        ({"no": 0, "yes": 1}, "class"),
    ],
)
def test_class_weights_are_refused(class_weight, words):
    X, score = table()
    y = np.where(score > 0, "yes", "no")
    refused(ValueError, words, SparseClassifier(k=2, class_weight=class_weight), X, y)


@pytest.mark.parametrize("loss", ["log_loss", "hinge", "squared_hinge"])
def test_weights_that_leave_one_class_are_refused(loss):
    X, score = table()
    refused(
        ValueError, "class", SparseClassifier(k=2, loss=loss), X, score > 0, sample_weight=(score > 0).astype(float)
    )


@pytest.mark.parametrize("make", [SparseRegressor, SparseClassifier])
@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (-np.ones(50), "Negative values in data passed to `sample_weight`"),
        (np.zeros(50), "All values in `sample_weight` are zero"),
        (np.ones(49), r"sample_weight.shape == \(49,\), expected \(50,\)"),
        (np.full(50, np.nan), "sample_weight contains NaN"),
    ],
)
def test_weights_are_refused(make, weights, words):
    X, score = table()
    refused(ValueError, words, make(k=2), X, score if make is SparseRegressor else score > 0, sample_weight=weights)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", Hinge()])
def test_margins_are_no_probabilities(loss):
    X, score = table()
    model = SparseClassifier(k=2, loss=loss).fit(X, score > 0)
    for name in ("predict_proba", "predict_log_proba"):
        assert not hasattr(model, name)
        words = f"no attribute '{name}': loss=.*inge.* does not model probabilities. Use loss='log_loss'"
        with pytest.raises(AttributeError, match=words):
            getattr(model, name)(X)
    assert hasattr(SparseClassifier(), "predict_proba")
    assert not hasattr(SparseRegressor(), "predict_proba")


@pytest.mark.parametrize(
    ("make", "word"), [(SparseRegressor, "SparseRegressor"), (SparseClassifier, "SparseClassifier")]
)
@pytest.mark.parametrize(
    ("params", "error"),
    [({"k": 0}, ValueError), ({"k": True}, TypeError), ({"ridge": -1}, ValueError), ({"tol": "a"}, TypeError)],
)
def test_options_of_both_estimators_are_refused_by_name(make, word, params, error):
    X, score = table()
    refused(error, f"The '{next(iter(params))}' parameter of {word} must be", make(**params), X, score > 0)


def test_numbers_written_as_text_are_numbers():
    X, y = table()
    model = SparseRegressor(k=2).fit(X, [f"{value:.17g}" for value in y])
    np.testing.assert_array_equal(model.coef_, SparseRegressor(k=2).fit(X, y).coef_)


def test_messages_show_values_as_users_wrote_them():
    X, y = table()
    params = {"feature_groups": GROUPS, "max_per_group": 1, "always": [0, 1]}
    refused(ValueError, "of the group 'body'", SparseRegressor(k=3, **params), X, y)
    refused(ValueError, "the one class 'yes' alone", SparseClassifier(), X, ["yes"] * 50)


def test_with_groups_an_index_is_said_to_be_no_label():
    X, y = table()
    model = SparseRegressor(k=2, feature_groups=GROUPS, always=[0])
    refused(ValueError, "'always' names 0, which is no group; .*(label|name)", model, X, y)


def test_a_column_named_twice_is_refused():
    X, y = table()
    frame = pd.DataFrame(X, columns=NAMES)
    bounds = {"sex": (0, 1), 3: (-1, 0)}
    refused(ValueError, "'bounds' names the column 'sex' twice", SparseRegressor(k=2, bounds=bounds), frame, y)


# With groups, integer keys of costs are labels.


def prices(costs, groups):
    X, y = table()
    return SparseRegressor(k=1, feature_groups=groups, costs=costs).fit(X, y).path_.prices.tolist()


def test_integer_keys_are_labels_where_one_is_a_label_and_else_columns():
    assert prices({1: 5, 0: 7, 2: 9}, [2, 2, 1, 1, 0, 0]) == [7, 5, 9]
    assert prices(dict(enumerate([1, 2, 3, 4, 5, 6])), [12, 12, 11, 11, 10, 10]) == [11, 7, 3]
    assert prices([1, 2, 3, 4, 5, 6], [2, 2, 1, 1, 0, 0]) == [11, 7, 3]
    X, y = table()
    by_column = SparseRegressor(
        k=2, feature_groups=[0, 0, 1, 1, 2, 2], max_per_group=1, costs=dict(enumerate([1, 2, 3, 4, 5, 6]))
    )
    assert by_column.fit(X, y).path_.prices.tolist() == [1, 2, 3, 4, 5, 6]


def test_indices_among_integer_labels_are_refused():
    X, y = table()
    model = SparseRegressor(k=1, feature_groups=[0, 0, 1, 1, 2, 2], costs=dict(enumerate([1] * 6)))
    refused(ValueError, "'costs' names 3, which is not the label of a group .* write a list", model, X, y)


def test_costs_that_can_be_read_in_two_ways_are_refused():
    X, y = table()
    words = "'costs' can be read in two ways: its keys are labels of groups, and columns too. Write a list"
    costs = dict(enumerate([1, 2, 3, 4, 5, 6]))
    refused(ValueError, words, SparseRegressor(k=1, feature_groups=[5, 4, 3, 2, 1, 0], costs=costs), X, y)
    by_name = dict(zip(NAMES, [1, 2, 3, 4, 5, 6], strict=True))
    model = SparseRegressor(k=1, feature_groups=[*NAMES[1:], NAMES[0]], costs=by_name)
    refused(ValueError, words, model, pd.DataFrame(X, columns=NAMES), y)
    # Where both readings say the same there is nothing to ask.
    assert prices(costs, [0, 1, 2, 3, 4, 5]) == [1, 2, 3, 4, 5, 6]
    assert prices(dict.fromkeys(range(6), 2), [5, 4, 3, 2, 1, 0]) == [2] * 6
