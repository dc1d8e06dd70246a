"""An objective of the user's own: the answers of estimators and brute force, whatever it offers beyond a gradient."""

import itertools
import json
from functools import cache

import matplotlib as mpl
import numpy as np
import pytest
from custom_objectives import (
    HOOKS,
    Half,
    Logits,
    Scaled,
    Squares,
    assert_same,
    numbers,
    restricted,
    signs,
    subset_of,
    with_curvature,
    with_gains,
    with_removal_costs,
)

import pauca
from pauca import ModelFileError, Path, SparseClassifier, SparseRegressor, select
from pauca.export.json_files import JsonReader
from pauca.export.path_file import read_path, write_path
from pauca.methods import FoBa
from problems import METHODS

mpl.use("Agg")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", [0, 1])
def test_squares_and_logits_take_the_path_of_the_estimators(method, seed):
    X, y = numbers(seed=seed)
    ours, theirs = select(Squares(X, y), 5, method=method), SparseRegressor(k=5, method=method).fit(X, y)
    assert_same(ours, theirs.path_, shift=1)
    assert ours.stop is theirs.stop_
    assert ours[5].coef == pytest.approx(theirs.path_[5].coef, rel=1e-5)
    assert ours[5].free == pytest.approx([theirs.intercept_], rel=1e-5, abs=1e-6)
    assert ours[5].importance == pytest.approx(theirs.path_[5].importance, rel=1e-2)
    X, y = signs(seed=seed)
    theirs = SparseClassifier(k=5, method=method).fit(X, y).path_
    # Without a ridge the classifier has a tiny one.
    assert_same(select(Logits(X, y), 5, method=method), theirs, shift=1, within=1e-7)


@cache
def without_hooks(method):
    return select(Logits(*signs(8)), 3, method=method)


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("method", [*METHODS, FoBa(rule="refit", removal="zero")], ids=str)
def test_hooks_change_no_answer(hook, method):
    kind = type("Hooked", (Logits,), {hook: HOOKS[hook]})
    assert_same(select(kind(*signs(8)), 3, method=method), without_hooks(method))


@cache
def least_of_size(size):
    """The least values of all supports."""
    objective = Logits(*signs(8, seed=3))
    return {S: restricted(objective, [0, *S])[0] for S in itertools.combinations(range(1, 9), size)}


@pytest.mark.parametrize("method", METHODS)
def test_every_model_is_the_minimum_on_its_support_and_exchange_the_best_of_all(method):
    objective = Logits(*signs(8, seed=3))
    path = select(objective, 4, method=method)
    for size in (1, 2, 4):
        least = least_of_size(size)
        assert path[size].objective == pytest.approx(least[tuple(path[size].support)], abs=1e-9)
        assert path[size].objective == pytest.approx(objective.value(path.parameters(size)), abs=1e-14)
        assert path[size].objective >= min(least.values()) - 1e-9
        if method == "exchange":
            assert path[size].objective == pytest.approx(min(least.values()), abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("outside", [np.inf, np.nan])
def test_a_domain_with_a_border_and_values_below_zero(method, outside):
    X, y = numbers(8)
    y = 0.1 * (y - y.mean())
    path = select(Scaled(X, y, outside=outside), 5, method=method)
    assert path[5].objective < 0
    for model in SparseRegressor(k=5, method=method, fit_intercept=False).fit(X, y).path_:
        size = model.size
        assert path[size].support.tolist() == (model.support + 1).tolist()
        # Half the mean square is known, and (1 + log of the mean square) / 2 is the least value.
        assert path[size].objective == pytest.approx(0.5 + 0.5 * np.log(2 * model.objective), abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_changes_nothing(method):
    X, y = numbers()

    class Lower(Squares):
        def value(self, w):
            return super().value(w) - shift

    plain = select(Squares(X, y), 4, method=method)
    for shift in (plain[0].objective, 3 * plain[0].objective):
        path = select(Lower(X, y), 4, method=method)
        assert path.moves == plain.moves
        assert path[4].objective == pytest.approx(plain[4].objective - shift, abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_groups(method):
    X, y = numbers(12, seed=4)
    labels = np.array(list("ccaabbddeeff"))
    theirs = SparseRegressor(k=3, method=method, feature_groups=labels).fit(X, y).path_
    path = select(Squares(X, y), 3, method=method, groups=["free", *labels])
    assert_same(path, theirs, shift=1)
    assert path.groups(3) == theirs.groups(3)
    assert path.moves == theirs.moves
    curved = type("Curved", (Squares,), {"curvature": with_curvature, "groups": np.array(["z", *labels])})
    assert_same(select(curved(X, y), 3, method=method), path)


@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "constraints",
    [{"always": [5]}, {"never": [0, 3]}, {"costs": np.arange(1.0, 13)}, {"costs": np.arange(1.0, 13), "budget": 15.0}],
    ids=str,
)
def test_constraints_give_the_same_path_as_estimators(method, constraints):
    X, y = numbers(12, seed=5)
    theirs = SparseRegressor(k=4, method=method, **constraints).fit(X, y).path_
    ours = {name: [j + 1 for j in columns] for name, columns in constraints.items() if name in ("always", "never")}
    ours |= {"costs": [9.0, *constraints["costs"]]} if "costs" in constraints else {}
    ours |= {"budget": constraints["budget"]} if "budget" in constraints else {}
    path = select(Squares(X, y), 4, method=method, **ours)
    assert_same(path, theirs, shift=1)
    assert path.stop is theirs.stop


@pytest.mark.parametrize("hooks", [(), ("curvature",), ("curvature", "hessian"), ("gains",)])
@pytest.mark.parametrize("seed", range(3))
def test_rules_and_removals_rank_as_brute_force_does(hooks, seed):
    X, y = signs(9, seed=seed)
    objective = type("Hooked", (Logits,), {hook: HOOKS[hook] for hook in hooks})(X, y)
    chosen = [2, 5, 8]
    subset = subset_of(objective, chosen)
    value, w = restricted(objective, [0, *chosen])
    assert subset.value == pytest.approx(value, rel=1e-6)
    others = [j for j in range(1, 10) if j not in chosen]
    assert subset.best_addition("gradient") == max(others, key=lambda j: abs(objective.gradient(w)[j]))
    assert subset.best_addition("objective") == others[int(np.argmax(with_gains(objective, w)[others]))]
    refitted = {j: value - restricted(objective, [0, *chosen, j])[0] for j in others}
    best = max(others, key=refitted.get)
    assert subset.best_addition("refit") == best
    assert subset.decrease(best) == pytest.approx(refitted[best], rel=1e-2)
    zeroed = dict(zip(chosen, with_removal_costs(objective, w, chosen), strict=True))
    assert subset.cheapest_removal("zero") == (
        min(zeroed, key=zeroed.get),
        pytest.approx(min(zeroed.values()), rel=1e-3),
    )
    lost = {i: restricted(objective, [0, *(j for j in chosen if j != i)])[0] - value for i in chosen}
    assert subset.cheapest_removal("refit") == (min(lost, key=lost.get), pytest.approx(min(lost.values()), rel=1e-2))
    assert subset.cheapest_removal("refit", 1e-3 * min(lost.values())) is None


@pytest.mark.parametrize("hooks", [(), ("curvature",), ("hessian",)])
@pytest.mark.parametrize("seed", range(3))
def test_exchanges_and_replacements_against_brute_force(hooks, seed):
    X, y = signs(9, seed=seed)
    objective = type("Hooked", (Logits,), {hook: HOOKS[hook] for hook in hooks})(X, y)
    chosen = [1, 4, 7]
    subset = subset_of(objective, chosen)
    swapped = {
        (i, j): restricted(objective, [0, *(other for other in chosen if other != i), j])[0]
        for i in chosen
        for j in range(1, 10)
        if j not in chosen
    }
    found = subset.best_swap()
    if min(swapped.values()) < subset.value - 1e-6:
        assert swapped[found.out, found.into] < subset.value
        assert found.decrease == pytest.approx(subset.value - swapped[found.out, found.into], rel=0.05)
    for out, swaps in subset.replacements(2).items():
        best = min(swapped[out, j] for i, j in swapped if i == out)
        assert subset.value - swaps[0].decrease == pytest.approx(best, rel=0.05)
    # Until none helps: then no exchange does.
    while (swap := subset.best_swap()) is not None:
        subset.drop(swap.out)
        subset.add(swap.into)
    chosen = list(subset.support)
    for i, j in itertools.product(chosen, set(range(1, 10)) - set(chosen)):
        assert restricted(objective, [0, *(o for o in chosen if o != i), j])[0] >= subset.value - 1e-7


def test_a_trial_leaves_no_trace():
    subset = subset_of(Logits(*signs()), [2, 3])
    before, value = list(subset.support), subset.value
    with subset.trial():
        subset.add(5)
    twin = subset.copy()
    twin.drop(2)
    assert (subset.support, subset.value) == (before, value)
    assert subset.restarted().support == []
    assert subset.data_key() == subset.restarted().data_key() != subset_of(Logits(*signs(seed=1))).data_key()


def test_two_functions_and_names():
    X, y = numbers(6)
    objective = Squares(X, y)
    names = ["(intercept)", *"abcdef"]
    path = select(objective.value, 2, gradient=objective.gradient, n_coords=7, free=["(intercept)"], names=names)
    assert_same(path, select(objective, 2))
    assert path.names(2) == [names[j] for j in path[2].support]
    never = select(objective, 2, names=names, never=path.names(1))
    assert path.names(1)[0] not in never.names(2)


@pytest.mark.parametrize("floor", [None, 0.0])
def test_words_and_pictures(floor):
    X, y = numbers(6)
    path = select(Squares(X, y), 3, floor=floor, names=["base", *"abcdef"])
    words, picture = path.summary(3), path.plot()
    assert words.startswith("3 coordinates of 6, objective")
    assert words.splitlines()[7].split() == ["(base)", f"{path[3].free[0]:.6g}"]
    assert picture.figure.axes[-1].get_xlabel() == "number of coordinates"
    if floor is None:
        assert np.isnan(path.explained(3))
        assert "%" not in words
        assert "explained" not in path.table()[1]
        assert picture.get_ylabel() == "objective"
    else:
        assert path.explained(3) == pytest.approx(1 - path[3].objective / path[0].objective)
        assert f"{100 * path.explained(3):.2f} % explained" in words
        assert picture.get_ylabel() == "explained (%)"
    with pytest.raises(ValueError, match="linear model"):
        SparseRegressor(k=2).fit(X, y).path_.parameters(2)


@pytest.mark.parametrize("options", [{}, {"groups": list("zaabbcc"), "costs": {"a": 1, "b": 2, "c": 3}}], ids=str)
@pytest.mark.parametrize("floor", [None, 0.0])
def test_paths_are_written_and_read(options, floor):
    path = select(Squares(*numbers(6)), 3, floor=floor, names=["base", *"abcdef"], **options)
    written = write_path(path)
    read = read_path(JsonReader(json.loads(json.dumps(written))).fields(written))
    assert_same(read, path, within=0.0)
    assert (read.floor, read.noun, read.moves) == (path.floor, path.noun, path.moves)
    assert read.table() == path.table()
    for size in path.sizes:
        np.testing.assert_array_equal(read.parameters(size), path.parameters(size))
    assert isinstance(path, Path)
    written["custom"]["free"] = [7]
    with pytest.raises(ModelFileError, match="a free coordinate is beyond the last"):
        read_path(JsonReader(written).fields(written))


@pytest.mark.parametrize("free", [[], [0], [0, 2]], ids=str)
@pytest.mark.parametrize("options", [{}, {"groups": list("zaabbcc"), "costs": {"a": 1, "b": 2, "c": 3}}], ids=str)
def test_a_path_is_saved_loaded_and_taken_up_again(tmp_path, free, options):
    objective, names = Squares(*numbers(6)), ["base", *"abcdef"]
    if not options.get("groups"):
        options = {"costs": dict.fromkeys(names, 1.0)}
    elif not free:
        options = {**options, "costs": {"a": 1, "b": 2, "c": 3, "z": 1}}
    call = {"free": free, "names": names, "method": "forward", **options}
    whole = select(objective, 3, **call)
    path = select(objective, 2, **call)
    path.save(tmp_path / "path.json")
    again = pauca.load(tmp_path / "path.json")
    assert type(again) is type(path)
    assert (again.moves, again.stop, again.table()) == (path.moves, path.stop, path.table())
    assert again.summary(2) == path.summary(2)
    for size in path.sizes:
        np.testing.assert_array_equal(again.parameters(size), path.parameters(size))
    assert select(objective, 3, resume=again, **call).moves == whole.moves
    text = (tmp_path / "path.json").read_text()
    (tmp_path / "path.json").write_text(text.replace('"add"', '"sub"', 1))
    with pytest.raises(ModelFileError, match="was changed after it was saved"):
        pauca.load(tmp_path / "path.json")


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ({"never": [4]}, "another method, always or never"),
        ({"always": [1]}, "another method, always or never"),
        ({"method": "backward"}, "another method, always or never"),
        ({"costs": [1] * 6}, "other groups or costs"),
        ({"groups": list("abcdef")}, "other groups or costs"),
        ({"free": [0]}, "another objective"),
    ],
)
def test_resume_refuses_other_constraints(constraints, message):
    with pytest.raises(ValueError, match=f"resume is the path of .*{message}"):
        select(Half(), 3, resume=select(Half(), 2), **constraints)
    rich = select(Half(), 2, costs=[1] * 6, budget=2)
    with pytest.raises(ValueError, match="larger budget"):
        select(Half(), 3, resume=rich, costs=[1] * 6, budget=1)
    even = {"gradient": lambda w: w - 1, "n_coords": 6}
    one_free = select(lambda w: 0.5 * np.sum((w - 1) ** 2), 2, free=[0], **even)
    with pytest.raises(ValueError, match="another objective"):
        select(lambda w: 0.5 * np.sum((w - 1) ** 2), 3, free=[1], resume=one_free, **even)
