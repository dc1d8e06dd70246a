"""Sensors: constant ones and copies, more requested than there are, and the columns of each."""

import numpy as np
import pandas as pd
import pytest
from chains import make_chains
from scipy import sparse

import pauca
from pauca import PaucaWarning, SparseClassifier, SparseRegressor, SparseTagger, Stop
from pauca.crf.observations import Observations
from pauca.methods import Forward

LENGTHS = (30, 1, 45, 20, 38, 27)


@pytest.fixture(scope="module")
def chains():
    X, y = make_chains(LENGTHS, 3, 5, informative=3)
    return X, y


def with_redundant_columns(X):
    """Columns 5 to 7: a copy of column 0, ones, a copy of column 2."""
    return [np.column_stack([one, one[:, 0], np.ones(len(one), dtype=one.dtype), one[:, 2]]) for one in X]


def noisy(X):
    rng = np.random.default_rng(0)
    return [one + 0.3 * rng.random(one.shape) for one in X]


KINDS = {
    "patterns": (lambda X: X, list, "x{}"),
    "rows": (noisy, list, "x{}"),
    "CSR": (lambda X: X, lambda X: [sparse.csr_matrix(one) for one in X], "x{}"),
    "frames": (lambda X: X, lambda X: [pd.DataFrame(one).add_prefix("door ") for one in X], "door {}"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", ["sensor", "weight"])
def test_constant_sensors_and_copies_change_nothing(chains, kind, unit):
    change, make, name = KINDS[kind]
    X, y = change(chains[0]), chains[1]
    whole = 5 if unit == "sensor" else 15
    wanted = SparseTagger(k=whole, unit=unit).fit(make(X), y)
    constant, copies = name.format(6), f"'{name.format(5)}', '{name.format(7)}'"
    message = (
        f"Constant sensors were left out: '{constant}'. Sensors that are copies of chosen ones were left out: {copies}."
    )
    with pytest.warns(PaucaWarning) as caught:
        model = SparseTagger(k=whole, unit=unit).fit(make(with_redundant_columns(X)), y)
    assert [str(one.message) for one in caught] == [message]
    assert model.support_.tolist() == wanted.support_.tolist()
    assert model.objective_ == pytest.approx(wanted.objective_, rel=1e-9)
    np.testing.assert_allclose(model.coef_[:, :5], wanted.coef_, atol=1e-6)


def test_no_warning_about_copies_of_sensors_that_were_not_chosen(chains):
    X, y = chains
    model = SparseTagger(k=1).fit([np.column_stack([one, one[:, 4]]) for one in X], y)
    assert model.sensors_.tolist() == [2]


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("n_columns", [1, 3, 40])
def test_equal_columns(make, n_columns):
    rng = np.random.default_rng(n_columns)
    for table in (rng.random((9, n_columns)) < 0.3, rng.integers(0, 2, (3, n_columns)) * 0.5):
        data = Observations.from_rows(make(table), np.array([0, len(table)]))
        first = [next(i for i in range(n_columns) if (table[:, i] == table[:, j]).all()) for j in range(n_columns)]
        assert data.first_copies().tolist() == first
        assert data.varies().tolist() == [len(set(column)) > 1 for column in table.T.tolist()]


def test_a_sensor_of_several_columns_is_constant_or_a_copy_as_a_whole(chains):
    X, y = chains
    more = [np.column_stack([one, np.zeros((len(one), 2), dtype=bool), one[:, [1, 0]], one[:, 2]]) for one in X]
    # "d" has the columns of "a" in another order; "b" is half constant, "e" a copy in part; "c" does not vary.
    groups = ["a", "a", "b", "e", "e", "c", "b", "d", "d", "e"]
    with pytest.warns(PaucaWarning) as caught:
        model = SparseTagger(k=5, feature_groups=groups).fit(more, y)
    assert model.sensors_.tolist() == ["a", "b", "e"]
    assert str(caught[0].message) == (
        "Constant sensors were left out: 'c'. Sensors that are copies of chosen ones were left out: 'd'. "
        "k=5 sensors were requested, but only 3 of 5 can be used together."
    )


def test_of_copies_the_cheapest_and_those_always_in_stay(chains):
    X, y = chains
    with pytest.warns(PaucaWarning, match="copies of chosen ones were left out: 'x2'"):
        cheap = SparseTagger(k=1, costs=[1, 1, 2, 1, 1, 1, 1, 1.5]).fit(with_redundant_columns(X), y)
    assert cheap.sensors_.tolist() == [7]
    with pytest.warns(PaucaWarning, match=r"copies of chosen ones were left out: 'x2'\.$"):
        forced = SparseTagger(k=1, always=[7]).fit(with_redundant_columns(X), y)
    assert forced.sensors_.tolist() == [7]
    both = SparseTagger(k=2, always=[2, 5]).fit([np.column_stack([one, one[:, 2]]) for one in X], y)
    assert both.sensors_.tolist() == [2, 5]
    with pytest.warns(PaucaWarning, match="Constant"):
        other = SparseTagger(k=1, never=[2]).fit(with_redundant_columns(X), y)
    assert other.sensors_.tolist() == [7]
    with pytest.raises(ValueError, match="'always' holds constant columns, which cannot be fitted: 'x6'"):
        SparseTagger(k=1, always=[6]).fit(with_redundant_columns(X), y)


@pytest.mark.parametrize("scale", [1e-120, 1e120])
def test_columns_in_any_units(chains, scale):
    X, y = chains
    wanted = SparseTagger(k=2, ridge=0.0).fit(X, y)
    model = SparseTagger(k=2, ridge=0.0).fit([one * scale for one in X], y)
    assert model.sensors_.tolist() == wanted.sensors_.tolist()
    assert model.objective_ == pytest.approx(wanted.objective_, rel=1e-6)


def test_columns_too_large_to_be_squared(chains):
    X, y = chains
    scale = np.array([1, 1, 1, 1e200, 1])
    with pytest.raises(ValueError, match=r"too large to be squared .* Found in: 'x3'"):
        SparseTagger(k=1).fit([one * scale for one in X], y)
    with pytest.warns(PaucaWarning, match="Constant sensors were left out: 'x3'"):
        SparseTagger(k=1).fit([one / scale for one in X], y)

    model = SparseTagger(k=2).fit(X, y)
    for predict in (model.predict, model.predict_marginals):
        with pytest.raises(ValueError, match=rf"too large to be squared .* Found in: 'x{model.sensors_[1]}'\."):
            predict([one * np.where(np.arange(5) == model.sensors_[0], 1.0, 1e300) for one in X])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_columns_far_from_zero(kind):
    """Columns that are accepted reach the same objective as columns around zero."""
    X, y = make_chains(LENGTHS, 3, 4, informative=2)
    X = [one + 0.2 * np.random.default_rng(len(one)).normal(size=one.shape) for one in X]
    wanted = SparseTagger(k=2).fit(X, y).objective_
    assert SparseTagger(k=2).fit([kind(one + 1e8) for one in X], y).objective_ == pytest.approx(wanted, rel=1e-7)
    shifts = np.array([0, 1e9, -1e12, 1e6])
    with pytest.raises(ValueError, match=r"vary by less than 1e-08 of their values.*: 'x1', 'x2'\. Subtract a number"):
        SparseTagger(k=2).fit([kind(one + shifts) for one in X], y)
    with pytest.warns(PaucaWarning, match=r"Constant sensors were left out: 'x3'\."):
        rounding = SparseTagger(k=2).fit([kind(one * [1, 1, 1, 1e-15] + [0, 0, 0, 1]) for one in X], y)
    assert rounding.objective_ == pytest.approx(wanted, rel=1e-6)


# More sensors requested than there are: as with any other estimator.


def linear(k, method="exchange"):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    return SparseRegressor(k=k, method=method).fit(X, X @ [3.0, 2, 1, 0, 0] + rng.normal(size=60))


def tagger(k, method="foba"):
    return SparseTagger(k=k, method=method).fit(*make_chains(LENGTHS, 3, 5, informative=3))


@pytest.mark.parametrize(("fit", "noun"), [(linear, "features"), (tagger, "sensors")])
@pytest.mark.parametrize("method", ["foba", "forward", "exchange", "backward"])
def test_more_requested_than_there_are(fit, noun, method):
    with pytest.warns(PaucaWarning, match=f"^k=9 {noun} were requested, but only 5 of 5 can be used together.$"):
        model = fit(np.int64(9), method)
    assert (model.k_, model.stop_, model.path_.sizes) == (5, Stop.EXHAUSTED, [0, 1, 2, 3, 4, 5])


@pytest.mark.parametrize("fit", [linear, tagger])
@pytest.mark.parametrize(("sizes", "compared"), [(range(1, 31), [1, 2, 3, 4, 5]), ([2, 9], [2]), ([8, 9], [5])])
def test_sizes_beyond_the_number_of_sensors_are_ignored(fit, sizes, compared):
    assert fit(sizes).path_.choice.sizes.tolist() == compared


def test_more_weights_requested_than_there_are(chains):
    with pytest.warns(PaucaWarning, match="k=99 weights were requested, but only 15 of 15 can be used together"):
        assert SparseTagger(k=99, unit="weight").fit(*chains).k_ == 15


def test_largest_size_compared_was_chosen(chains):
    with pytest.warns(PaucaWarning, match="The largest size that was compared, 2, was chosen"):
        SparseTagger(k=[0, 2], selection_rule="best").fit(*chains)


def test_no_sensor_helps(chains):
    noise = make_chains(LENGTHS, 3, 5, seed=7, informative=0)[0]
    with pytest.warns(PaucaWarning, match="No sensor helps on held-out sequences: transitions alone"):
        model = SparseTagger(k=range(3)).fit(noise, chains[1])
    assert model.k_ == 0
    assert "No sensor helps on held-out data." in model.summary().splitlines()


# The columns of each sensor.

WORDS = [
    [{"word.lower=the": 1, "word": "the", "in": {"first": True}}, {"word.lower=dog": 1, "word": "dog"}],
    [{"word.lower=a": 1, "word": "a", "length": 1}, {"word.lower=dog": 1, "word": "Dog", "length": 3}],
    [{"word": "the", "in": {"second": "no"}, "length": 2}],
]
TAGS = [["DET", "NOUN"], ["DET", "NOUN"], ["DET"]]


def sensor_of_columns(groups, X=WORDS, y=TAGS):
    """The sensor of every column."""
    model = SparseTagger(k=1, feature_groups=groups).fit(X, y)
    path = model.path_
    names = model.names_ if len(model.names_) else range(model.n_features_in_)
    return dict(zip(names, path.group_labels[path.owner].tolist(), strict=True))


def test_groups_by_a_function():
    found = sensor_of_columns(lambda attribute: attribute.split("=")[0])
    assert found == {name: name.split("=")[0] for name in found}
    assert found["word.lower=dog"] == "word.lower"
    # None makes a column a sensor of its own.
    some = sensor_of_columns(lambda attribute: "place" if attribute.startswith("in:") else None)
    assert some == {name: "place" if name.startswith("in:") else name for name in found}


def test_groups_by_a_dict_of_some():
    found = sensor_of_columns({"word": "spelling", "word.lower": "spelling", "word=dog": "animal", "in": "place"})
    assert found == {
        "word.lower=the": "spelling",
        "word=the": "spelling",
        "in:first": "place",
        "word.lower=dog": "spelling",
        "word=dog": "animal",  # the longest name counts
        "word.lower=a": "spelling",
        "word=a": "spelling",
        "word=Dog": "spelling",
        "length": "length",
        "in:second=no": "place",
    }


def test_groups_of_frames_and_arrays(chains):
    X, y = chains
    frames = [pd.DataFrame(one, columns=["on", "on before", "off", "off before", "lamp"]) for one in X]
    wanted = SparseTagger(k=2, feature_groups=["on", "on", "off", "off", "lamp"]).fit(frames, y)
    some = {"on before": "on", "off before": "off"}
    for groups in (some, lambda name: name.split()[0]):
        model = SparseTagger(k=2, feature_groups=groups).fit(frames, y)
        assert model.sensors_.tolist() == wanted.sensors_.tolist()
        np.testing.assert_array_equal(model.coef_, wanted.coef_)
    assert sensor_of_columns({1: "pair", 3: "pair"}, X, y) == {0: "x0", 1: "pair", 2: "x2", 3: "pair", 4: "x4"}
    assert sensor_of_columns(lambda j: j // 2, X, y) == {0: 0, 1: 0, 2: 1, 3: 1, 4: 2}


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"wrd": "w"}, "'feature_groups' names the column 'wrd', which X does not have. Did you mean 'word=a'"),
        ({99: "w"}, "'feature_groups' names column 99"),
        ({0: "w", "word.lower=the": "v"}, "'feature_groups' names the column 'word.lower=the' twice"),
        ({"length": None}, "'feature_groups' holds no label for some columns: 'length'"),
        (lambda name: float("nan"), "'feature_groups' holds no label for some columns"),
    ],
)
def test_invalid_groups(groups, message):
    with pytest.raises(ValueError, match=message):
        SparseTagger(k=1, feature_groups=groups).fit(WORDS, TAGS)


def test_a_file_holds_the_labels_that_a_function_returned(tmp_path):
    model = SparseTagger(k=1, feature_groups=lambda name: name.split("=")[0]).fit(WORDS, TAGS)
    model.save(tmp_path / "model.json")
    again = pauca.load(tmp_path / "model.json")
    assert again.feature_groups.tolist() == list(sensor_of_columns(model.feature_groups).values())
    assert again.sensors_.tolist() == model.sensors_.tolist()
    np.testing.assert_array_equal(again.fit(WORDS, TAGS).coef_, model.coef_)


@pytest.mark.parametrize(("costs", "first"), [(None, "many"), ({"one": 1, "many": 6}, "one")])
def test_sensors_of_many_columns_rank_higher(costs, first):
    """Squares of gradients are summed over the columns of a sensor, by the same rule as in other estimators."""
    X, y = make_chains((60,) * 6, 3, 1)
    rng = np.random.default_rng(3)
    X = [one ^ (rng.random((len(one), 7)) < [0.05] + [0.2] * 6) for one in X]  # one good column, six that are worse
    options = {"k": 1, "feature_groups": ["one"] + ["many"] * 6, "costs": costs}
    assert SparseTagger(**options).fit(X, y).sensors_.tolist() == [first]
    rows = SparseClassifier(method=Forward(rule="gradient"), **options).fit(np.vstack(X), np.concatenate(y))
    assert rows.path_.groups(1) == [first]


@pytest.mark.parametrize("spike", [None, 5_000.0])
def test_analogue_sensors_compare_with_binary_ones(spike):
    """Carbon dioxide is more informative than a pad that is on 60 % or 20 % of the time, with outliers too."""
    rng = np.random.default_rng(0)
    y = [np.cumsum(rng.random(200) < 0.03) % 2 for _ in range(8)]
    X = [
        np.column_stack([rng.random(200) < np.where(one, 0.6, 0.2), 400 + 400 * one + rng.normal(0, 130, 200)])
        for one in y
    ]
    if spike is not None:
        X[0][5, 1] = spike
    assert SparseTagger(k=1).fit(X, y).sensors_.tolist() == [1]
