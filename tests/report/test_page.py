"""The report: what the page says, that it is one complete file, and that no name in it is ever parsed as HTML."""

import dataclasses
import html.parser
import itertools
import json
import re

import numpy as np
import pandas as pd
import pytest
from fitted_models import MAKERS, fitted
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.exceptions import NotFittedError

import pauca
from pauca import SparseClassifier, SparseRegressor
from pauca.report import size_explorer
from pauca.report.formatting import count, enumerate_names, number, percent
from pauca.report.model_data import model_data_of
from pauca.report.page import page
from pauca.results.alternatives import Alternatives
from pauca.results.plots import COLOURS, INK
from pauca.results.stability import Stability

STRANGE = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "\"><img src=x onerror='alert(3)'>",
    "it's & <b>bold</b> &amp;",
    "<!-- %{x} $a$ \u2028 \u202e ]]>",
    " ",
]
VOID = {"meta", "input", "wbr"}


class Reader(html.parser.HTMLParser):
    """Elements and text of a page, which must close all it opens."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.words, self.blocks = [], [], [], {}
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        where = self.open[-1] if self.open else ("", {})
        if where[0] in ("script", "style"):
            key = where[1].get("id", where[0])
            self.blocks[key] = self.blocks.get(key, "") + data
        else:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).replace("\N{NO-BREAK SPACE}", " ").split())

    @property
    def data(self):
        found = json.loads(self.blocks["data"])
        for record in found["sizes"]:  # names are numbers there
            for key in ("entered", "left"):
                record[key] = [found["names"][index] for index in record[key]]
            for cells in record["rows"]:
                cells[: found["nameColumns"]] = [found["names"][index] for index in cells[: found["nameColumns"]]]
        return found


def read(model, title=None):
    """The report as text, without what ``report`` finds with the data of the fit."""
    return Reader(page(model_data_of(model), title))


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def chosen(diabetes):
    return SparseRegressor().fit(*diabetes)


@pytest.mark.parametrize("name", MAKERS)
def test_every_kind_of_model_has_a_report(name):
    model = fitted(name)
    found = read(model)
    records = found.data["sizes"]
    assert [record["size"] for record in records] == model.path_.sizes
    assert records[found.data["start"]]["size"] == model.k_
    for record in records:
        features = [cells[found.data["nameColumns"] - 1] for cells in record["rows"]]
        features = [feature for feature in features if feature != "(intercept)"]
        assert sorted(features) == sorted(model.path_.names(record["size"]))
        assert all(len(cells) == len(found.data["heads"]) for cells in record["rows"])
    headings = [tag for tag, _ in found.elements if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == "h1"
    assert set(headings[1:]) == {"h2"}
    assert model.path_.stop.message in found.text


def test_the_page_shows_the_model(chosen, diabetes):
    found = read(chosen, title="Diabetes")
    assert "Diabetes" in found.text
    assert "5 of 10" in found.text
    assert chosen.path_.choice.message in found.text
    assert "bmi, s5, bp, s3 and sex" in found.text
    for column, value in zip(chosen.support_, chosen.coef_[chosen.support_], strict=True):
        assert number(value) in found.text
        assert diabetes[0].columns[column] in found.text
    assert pauca.__version__ in found.text
    names = [set(chosen.path_.names(size)) for size in chosen.path_.sizes]
    assert found.data["sizes"][2]["entered"] == ["s5"]
    assert [set(one["left"]) for one in found.data["sizes"][1:]] == [a - b for a, b in itertools.pairwise(names)]


def test_the_page_shows_what_is_exchanged(diabetes):
    found = read(SparseRegressor(k=5).fit(*diabetes))
    assert found.data["sizes"][5]["left"] == ["s1"]


def test_sizes_are_compared_with_the_chosen_one(chosen):
    texts = {record["size"]: record["compared"] for record in read(chosen).data["sizes"]}
    assert texts[5] == "This is the chosen size."
    mean, error = 100 * chosen.path_.choice.mean, 100 * chosen.path_.choice.difference_error
    assert texts[1] == (
        f"4 features fewer than chosen: {mean[5] - mean[1]:.1f} percentage points less explained on held-out rows, "
        f"more than one standard error of the difference ({error[1]:.1f} percentage points)."
    )
    assert texts[8] == (
        f"3 features more than chosen: {mean[5] - mean[8]:.1f} percentage points less explained on held-out rows, "
        f"within one standard error of the difference ({error[8]:.1f} percentage points)."
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"criterion": "bic"}, "BIC {criterion:.1f} higher, which is worse."),
        ({"k": 4}, "{explained:.1f} percentage points less explained on the training data."),
        ({"scoring": "neg_mean_absolute_error"}, "neg_mean_absolute_error"),
        ({"k": 4, "costs": list(range(1, 11))}, "cheaper ("),
    ],
)
def test_sizes_are_compared_by_the_available_score(diabetes, options, words):
    model = SparseRegressor(**options).fit(*diabetes)
    found = read(model)
    path, choice = model.path_, model.path_.choice
    criterion = 0.0 if choice is None else choice.mean[2] - choice.mean[model.k_]
    explained = 100 * (path.explained(model.k_) - path.explained(2))
    assert words.format(criterion=criterion, explained=explained) in found.data["sizes"][2]["compared"]
    done = "given" if "k" in options else "chosen"
    assert f"fewer than {done}:" in found.data["sizes"][2]["compared"]
    assert found.data["sizes"][model.k_]["compared"] == f"This is the {done} size."
    if "criterion" in options or "k" in options:
        assert "was not measured" in found.text


def test_headlines_for_classes_outputs_and_groups():
    assert "A positive coefficient makes it's high more likely, a negative one low." not in read(fitted("words")).text
    assert "A positive coefficient makes low more likely, a negative one it's high." in read(fitted("words")).text
    assert read(fitted("words")).text.startswith("Classifying low against it's high with 2 of 6 features")
    assert read(fitted("multinomial")).text.startswith("Classifying höher, it's high and low with 3 of 6 features")
    assert read(fitted("outputs")).text.startswith('Predicting u and v "2" with 3 of 6 features')
    assert "x0 is the first column of the table, x3 the fourth" in read(fitted("arrays")).text
    assert read(fitted("size 0")).text.startswith("A model with no features")
    assert "predicts a constant" in read(fitted("size 0")).text
    assert "a, b and c" not in read(fitted("groups")).text
    assert "2 of 3 groups" in read(fitted("groups")).text


def test_only_parameters_that_differ_from_their_defaults_are_listed(diabetes):
    X, y = diabetes
    model = SparseRegressor(k=2, ridge=0.5, costs=np.ones(10), callback=lambda progress: None).fit(X, y)
    shown = model_data_of(model).parameters
    assert set(shown) == {"k", "loss", "method", "ridge", "costs", "callback"}
    assert shown["ridge"] == "0.5"
    assert "0x" not in shown["callback"]


@pytest.mark.parametrize("kind", ["columns", "classes", "two classes", "outputs", "groups", "title", "scorer"])
def test_names_are_never_parsed_as_html(kind):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((60, 6)), columns=STRANGE if kind == "columns" else list("abcdef"))
    y = X.iloc[:, 0] + X.iloc[:, 1] + rng.standard_normal(60)
    if kind == "classes":
        model = SparseClassifier(k=2, ridge=0.01).fit(X, np.array(STRANGE)[np.digitize(y, [-1, 0, 1])])
    elif kind == "two classes":
        model = SparseClassifier(k=2, ridge=0.01).fit(X, np.array(STRANGE)[(y > 0).astype(int)])
    elif kind == "outputs":
        model = SparseRegressor(k=2).fit(X, pd.DataFrame({STRANGE[0]: y, STRANGE[1]: -y + X["c"]}))
    elif kind == "groups":
        model = SparseRegressor(k=2, feature_groups=STRANGE).fit(X, y)
    elif kind == "scorer":

        def scorer(estimator, X, y):
            return estimator.score(X, y)

        scorer.__name__ = STRANGE[1]
        model = SparseRegressor(scoring=scorer).fit(X, y)
    else:
        model = SparseRegressor(k=6).fit(X, y)
    text = page(model_data_of(model), STRANGE[1] if kind == "title" else None)
    found = Reader(text)
    assert text.count("</script") == 3
    assert "<!--" not in text
    assert not {"img", "b"} & {tag for tag, _ in found.elements}
    assert not any(key.startswith("on") for _, attributes in found.elements for key in attributes)
    if kind == "columns":
        assert all(" ".join(name.split()) in found.text for name in STRANGE)
        assert {name for cells in found.data["sizes"][-1]["rows"] for name in cells[:1]} >= set(STRANGE)


def test_a_name_that_utf8_cannot_hold(tmp_path):
    names = pd.Index(["half \ud83d", "b"], dtype=object)  # pandas' own texts may be Arrow's, which are UTF-8
    X = pd.DataFrame(np.random.default_rng(0).standard_normal((30, 2)), columns=names)
    SparseRegressor(k=2).fit(X, X.iloc[:, 0]).report(tmp_path / "report.html")
    assert "half ?" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_file_is_complete_small_and_self_contained(chosen, tmp_path):
    file = tmp_path / "report.html"
    file.write_text("old")
    chosen.report(file)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert file.stat().st_size < 3e5
    text = file.read_text(encoding="utf-8")
    assert text.count("<script>") == 2
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert "script-src 'unsafe-inline'" not in policy
    assert text.index("charset") < 1024
    assert not re.search(r"<(link|iframe|img)\b|<script[^>]* src=|@import|url\(", text)


def test_a_loaded_model_has_the_same_report(chosen, tmp_path):
    chosen.save(tmp_path / "model.json")
    again = pauca.load(tmp_path / "model.json")
    before = dataclasses.replace(model_data_of(chosen), alternatives=None)  # they need the rows, which no file holds
    assert page(model_data_of(again)) == page(before)


def test_sizes_with_gaps(chosen):
    path = dataclasses.replace(chosen.path_, models={size: chosen.path_[size] for size in (0, 2, 5, 9)})
    model = chosen.at(5)
    model.path_ = path
    records = read(model).data["sizes"]
    assert [record["size"] for record in records] == [0, 2, 5, 9]
    assert records[1]["entered"] == ["bmi", "s5"]
    assert records[0]["label"] == "no features"


def test_a_size_set_by_hand(chosen):
    found = read(chosen.at(3))
    assert "This size was set by hand" in found.text
    assert found.data["sizes"][found.data["start"]]["size"] == 3


def test_a_long_path_is_thinned_and_its_tables_are_cut(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 120))
    model = SparseRegressor(k=100, method="foba").fit(X, X @ rng.standard_normal(120) + rng.standard_normal(200)).at(37)
    monkeypatch.setattr(size_explorer, "MOST_SIZES", 20)
    monkeypatch.setattr(size_explorer, "MOST_CELLS", 900)
    found = read(model).data["sizes"]
    assert {0, 37, 100} <= {record["size"] for record in found}
    assert len(found) <= 20
    assert 10 <= max(len(record["rows"]) - 1 for record in found) < 40
    assert "most important of 100 features are listed" in found[-1]["note"]
    inside = set()
    for record in found:
        assert inside >= set(record["left"])
        inside = (inside - set(record["left"])) | set(record["entered"])
        assert inside == set(model.path_.names(record["size"]))


def test_a_page_of_many_sizes_and_long_names_stays_small():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        rng.standard_normal((250, 200)), columns=[f"a name as long as they come, {j}" * 3 for j in range(200)]
    )
    model = SparseRegressor(k=200, method="foba").fit(X, X @ rng.standard_normal(200) + rng.standard_normal(250))
    assert model.path_.sizes[-1] == 200
    assert len(page(model_data_of(model))) < 1e6


def test_stability_and_alternatives_are_shown_if_there_are_any(chosen):
    assert "Stability" not in read(chosen).text
    model = chosen.at(5)
    model.stability_ = Stability({"bmi": 1.0, "s6": 0.25, "<i>": 0.1}, ["bmi"], size=5, n_resamples=40)
    lost = {"feature": "s3", "replacement": "<i>s1", "explained_lost": 0.0041}
    gained = {"feature": "s5", "replacement": "s1", "explained_lost": -0.001}
    model.alternatives = lambda: Alternatives([lost, gained], "feature", ridge=0.5)
    found = read(model)
    assert "repeated on 40 random subsamples" in found.text
    assert "s6 25 % no" in found.text
    assert "s3 <i>s1 0.41 %" in found.text
    assert "features were searched at ridge 0, and here models are compared at ridge 0.5" in found.text

    def unable():
        raise ValueError("the rows are gone")

    model.alternatives = unable
    assert "Replacement" not in read(model).text


def test_scores_are_said_to_be_those_of_the_features_of_the_folds(chosen, diabetes):
    said = "Every fold of the rows chooses its own features, which may differ from those listed"
    assert said in read(chosen).text
    assert said not in read(SparseRegressor(k=2).fit(*diabetes)).text
    assert said not in read(SparseRegressor(criterion="bic").fit(*diabetes)).text


def test_a_report_leaves_the_model_as_it_is(diabetes):
    class Talkative(SparseRegressor):
        def alternatives(self):
            self.alternatives_ = Alternatives([{"feature": "bmi", "replacement": "s3", "explained_lost": 0.07}])
            return self.alternatives_

    model = Talkative(k=2).fit(*diabetes)
    before = dict(vars(model))
    assert "bmi s3 7.00 %" in read(model).text
    assert vars(model) == before


def test_prices_and_groups_have_columns():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = SparseClassifier(k=2, feature_groups=[name.split()[-1] for name in X], costs=np.arange(1.0, 31.0)).fit(X, y)
    found = read(model)
    assert found.data["heads"] == ["Group", "Feature", "Coefficient", "Importance", "Cost"]
    assert "total cost" in found.text
    assert len(found.data["sizes"][1]["rows"]) == len(model.path_[1].support) + 1


def test_what_is_not_fitted_has_no_report(tmp_path):
    with pytest.raises(NotFittedError):
        SparseRegressor().report(tmp_path / "report.html")


def test_numbers_and_lists_as_people_write_them():
    assert [number(x) for x in (0.0, 605.7114, 12345.678, 0.0117096, -2.5, 1.23e-9, np.inf)] == [
        "0",
        "605.71",
        "12346",
        "0.011710",
        "\N{MINUS SIGN}2.5000",
        "1.2300e\N{MINUS SIGN}09",
        "\N{EN DASH}",
    ]
    assert percent(-0.00001) == "0.0\N{NO-BREAK SPACE}%"
    assert [enumerate_names(names) for names in ([], ["a"], ["a", "b"])] + [enumerate_names(list("abcd"), 2)] == [
        "",
        "a",
        "a and b",
        "a, b and 2 more",
    ]
    assert [count(0, "feature"), count(1, "feature")] == ["no features", "1 feature"]


@pytest.mark.parametrize("colour", [*COLOURS, INK, "#50565e", "#5f6670"])
def test_colours_can_be_read_on_white(colour):
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    light = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    luminance = 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2]
    assert 1.05 / (luminance + 0.05) >= 4.5
