"""Half a minute of the campaign: a few trials of every part, and the judges themselves."""

import signal
from dataclasses import replace

import interruptions
import invariances
import mutated_files
import numpy as np
import pytest
from cases import FAMILIES, draw_case
from smaller import program, smaller_case
from verdicts import Verdict, judged

# Compiling kernels takes longer than these trials: streams and taggers have tests of their own, and the long campaign.
COMPILED = ("StreamRegressor", "StreamClassifier", "SparseTagger")


def cases_of(family, count):
    """The first cases of a family."""
    found, seed = [], 0
    while len(found) < count:
        case = draw_case(seed)
        found += [case] if case.family == family else []
        seed += 1
    return found


@pytest.mark.parametrize("family", [family for family in FAMILIES if family not in COMPILED])
@pytest.mark.filterwarnings("ignore")
def test_nothing_is_found_in_a_few_cases(family):
    finds = {case.text(): verdict.finds for case in cases_of(family, 12) if (verdict := judged(case)).finds}
    assert not finds


@pytest.mark.filterwarnings("ignore")
def test_changed_files_load_or_are_refused():
    outcomes = [mutated_files.trial(seed) for seed in range(60)]
    assert not [finds for _, finds in outcomes if finds]
    assert {outcome for outcome, _ in outcomes} == {"refused", "loaded"}


def test_nothing_that_must_not_change_a_model_does():
    outcomes = [invariances.trial(seed) for seed in range(20)]
    assert not [finds for _, finds in outcomes if finds]


def test_a_change_of_the_model_is_found(monkeypatch):
    def without_rows(rng, family, given, X, y, weights):
        rows = np.arange(25, len(X))
        other = invariances._coefficients(family, given, X[rows], invariances._rows_of(y, rows), weights[rows])
        return other, lambda coef: coef

    monkeypatch.setattr(invariances, "CHANGES", {"without rows": without_rows})
    assert all(invariances.trial(seed)[1] for seed in range(5))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="processes that can be killed")
@pytest.mark.filterwarnings("ignore")
def test_files_are_whole_after_a_kill():
    assert not [finds for seed in range(6) if (finds := interruptions.kill(seed)[1])]


@pytest.mark.filterwarnings("ignore")
def test_the_judges_find_what_is_wrong():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    y = X[:, 1] + 0.1 * rng.standard_normal(30)
    case = replace(cases_of("SparseRegressor", 1)[0], parameters={"k": 1}, X=X, y=y, form="array", weights=None)
    model = case.estimator().fit(X, y)
    for name, value, find in (
        ("objective_", 2 * model.objective_ + 1, "objective"),
        ("support_", np.array([0, 1]), "support"),
        ("objective_", 10 * model.path_[0].objective, "above empty"),
    ):
        wrong = case.estimator().fit(X, y)
        setattr(wrong, name, value)
        assert find in found_in(case, wrong)
    assert not found_in(case, model)


def found_in(case, model):
    from verdicts import _judge_linear

    verdict = Verdict("fitted")
    _judge_linear(case, model, verdict)
    return {what for what, _ in verdict.finds}


def test_a_find_is_made_smaller(monkeypatch):
    def finds_a_first_column_that_is_large(case):
        verdict = Verdict("fitted")
        if case.X[0, 0] > 5:
            verdict.found("large", "")
        return verdict

    monkeypatch.setattr("smaller.judged", finds_a_first_column_that_is_large)
    case = cases_of("SparseRegressor", 1)[0]
    X = np.random.default_rng(0).standard_normal((40, 3))
    X[0, 0] = 9.0
    case = replace(case, parameters={"k": 1, "ridge": 0.1}, X=X, y=np.ones(40), form="csr", weights=np.ones(40))
    small = smaller_case(case, "large")
    assert small.X.shape == (1, 1)
    assert small.parameters == {"k": 1}
    assert small.form == "array"
    assert small.weights is None
    assert "X = array([[9.]])" in program(small)
