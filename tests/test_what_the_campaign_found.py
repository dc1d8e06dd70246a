"""What cases of the campaign have found, each as small as it could be made."""

import signal

import numpy as np
import pandas as pd
import pytest

import pauca
from pauca.cli import main
from pauca.clock import OutOfTime, interrupts_held, limited_until
from pauca.design import make_design
from pauca.l1 import radii
from pauca.losses import LogLoss, NegativeBinomial
from pauca.losses.base import Loss
from pauca.objectives import GramRows
from pauca.objectives.restricted import Restricted
from pauca.relaxations.optimality_bounds import MOST_DENSE
from pauca.solvers import newton
from pauca.solvers.factorisation import InverseFactor, positive_inverse


def problem(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(n)


def counted(monkeypatch, owner, name):
    """The list to which every call of a method adds its object."""
    calls, method = [], getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *args: calls.append(args[0]) or method(*args))
    return calls


@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning")
def test_steps_on_kinks_end_where_rounding_leaves_nothing(monkeypatch):
    X, y = problem(12, 3)
    calls = counted(monkeypatch, Restricted, "slope_along")
    model = pauca.SparseRegressor(k=2, method="forward", loss="absolute_error", ridge=1e-6).fit(X, y + 1e10)
    assert np.isfinite(model.objective_)
    assert len(calls) < 50_000  # 106,000 before, and no end in minutes for y + 1e12


@pytest.mark.parametrize("solver", ["forward", "corrective", "pairwise"])
@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning")
def test_bounds_of_a_ball_hold_for_targets_far_from_zero(solver):
    X, y = problem(40, 5)
    for loss in (pauca.losses.Huber(1.0), "absolute_error"):
        near, far = (
            pauca.L1Regressor(radius=0.1, solver=solver, loss=loss, max_iter=100).fit(X, np.round(y, 1) + shift)
            for shift in (0.0, 2.0**40)
        )
        assert far.lower_bound_ <= far.objective_
        # Both have the digits of targets that are multiples of 2^-12.
        assert far.objective_ == pytest.approx(near.objective_, rel=0.01)
        assert far.intercept_ == pytest.approx(near.intercept_ + 2.0**40, rel=1e-12)


@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning")
def test_a_model_in_a_ball_is_not_above_the_empty_one():
    rng = np.random.default_rng(2)
    for _ in range(6):
        X = np.sinh(3 * rng.standard_normal((20, 3)))
        y = rng.integers(0, 2, 20)
        if y.min() < y.max():
            model = pauca.L1Classifier(radius=100.0, solver="away", loss="hinge", max_iter=50).fit(X, y)
            assert model.objective_ <= model.path_[0].objective
            assert model.lower_bound_ <= model.objective_


@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning")
def test_intercepts_are_found_for_targets_of_any_size(monkeypatch):
    X, y = problem(12, 3)
    calls = counted(monkeypatch, Loss, "slopes")
    pauca.L1Regressor(radius=1.0, solver="away", loss=pauca.losses.Quantile(0.3), max_iter=20).fit(X, 1e-147 * y)
    assert len(calls) < 3000  # 200 for each step before


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_backward_search_starts_from_all_columns_beside_those_that_are_always_in(loss):
    X, y = problem(30, 4)
    y = np.floor(np.exp(y)) if loss == "poisson" else y
    path = pauca.SparseRegressor(k=None, method="backward", always=[0], loss=loss).fit(X, y).path_
    assert all(model.size == size == len(model.support) for size, model in path.models.items())


def test_log_odds_of_a_class_with_next_to_no_weight():
    weights = np.array([1.0, 1e-17])
    assert LogLoss().constant(np.array([1.0, -1.0]), weights) == pytest.approx(np.log(1e17))
    X, y = np.array([[1.0], [2.0], [4.0]]), np.array([1, 1, 0])
    with pytest.warns(pauca.PaucaWarning):
        model = pauca.SparseClassifier(k=1, ridge=0.0).fit(X, y, sample_weight=[1e16, 1, 1])
    assert model.path_[0].objective < 1e-14


@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning")
def test_a_fold_without_any_event():
    X = np.random.default_rng(0).standard_normal((3, 8))
    y = np.array([(True, 1.0), (False, 2.0), (False, 3.0)], dtype=[("event", bool), ("time", float)])
    model = pauca.SparseCox(k="auto", cv=2, method="forward").fit(X, y)
    assert np.all(np.isfinite(model.coef_))


@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning")
def test_importances_of_extreme_columns_are_finite():
    rng = np.random.default_rng(0)
    X, y = 1e140 * rng.standard_normal((6, 12)), np.array([0, 1, 0, 1, 1, 0])
    model = pauca.SparseClassifier(k=None, method="backward", ridge=1000.0, standardize=False).fit(X, y)
    assert all(np.all(np.isfinite(one.importance)) for one in model.path_)


def test_large_inverses_ask_the_clock():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((600, 700))
    matrix = root @ root.T
    np.testing.assert_allclose(positive_inverse(matrix[None])[0], np.linalg.inv(matrix), rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(InverseFactor.of(matrix).inverse() @ matrix, np.eye(600), atol=1e-9)
    with limited_until(-np.inf), pytest.raises(OutOfTime):
        positive_inverse(matrix[None])


def test_rows_of_the_gram_matrix_ask_the_clock():
    X, _ = problem(20, 6)
    with limited_until(-np.inf), pytest.raises(OutOfTime):
        GramRows(make_design(X, np.full(20, 0.05), center=True)).rows(range(6))


@pytest.mark.parametrize("n_classes", [2, 8])
def test_backward_search_keeps_a_model_when_its_time_is_up_at_once(n_classes, monkeypatch):
    monkeypatch.setattr("pauca.runs.run.GRACE", 0.0)
    X, _ = problem(80, 40)
    y = np.arange(80) % n_classes
    with pytest.warns(pauca.PaucaWarning, match="k=3 features were requested, but the time limit was reached at"):
        model = pauca.SparseClassifier(k=3, method="backward", time_limit=1e-9, ridge=0.1).fit(X, y)
    assert model.stop_ == "time"
    assert all(np.all(np.isfinite(one.importance)) for one in model.path_)


class NothingToGain:
    """A quadratic whose values are all the same to rounding, and whose slopes are rounding."""

    lower = upper = shared = None
    flat = False

    def __init__(self, level):
        self.level, self.trials = level, 0

    def scores(self, coef):
        return coef * 1.0

    def value(self, coef, scores):
        return self.level

    def gradient(self, coef, scores):
        return np.full((1, 1), 1e-5)

    def hessian(self, scores, share):
        return np.ones((1, 1, 1))

    def slope_along(self, coef, scores, step, change):
        self.trials += 1
        return 1.0 if abs(coef[0, 0]) > 1e-17 else -1.0


@pytest.mark.parametrize("level", [1.0, -1.0])
def test_a_line_search_ends_the_steps_where_it_gains_nothing(level):
    objective = NothingToGain(level)
    assert newton.minimise(objective, np.zeros((1, 1))).value == level
    assert objective.trials < newton.MOST_TRIALS


def test_balls_of_folds_are_not_searched_for_digits_that_scores_do_not_show(monkeypatch):
    X, y = problem(40, 6)
    paths = counted(monkeypatch, radii.RadiusPath, "__init__")
    pauca.L1Regressor(solver="away", cv=2, tol=1e-8).fit(X, y)
    whole, *folds = (path.search for path in paths)
    assert len(folds) == 2
    assert whole.settings.tol == 1e-8
    assert sum(fold.n_iter for fold in folds) < 1.5 * whole.n_iter  # 125 and 126 steps; they were 255


def test_folds_of_balls_are_not_begun_after_the_time_is_up(monkeypatch):
    """Each made a first step for every ball, however little time there was: 3 s beyond the limit with 26 classes."""
    X, y = problem(40, 6)
    paths = counted(monkeypatch, radii.RadiusPath, "__init__")
    with pytest.warns(pauca.PaucaWarning):
        model = pauca.L1Regressor(radius="auto", cv=3, time_limit=1e-9).fit(X, y)
    assert len(paths) == 1
    assert model.stop_ == "time"


@pytest.mark.parametrize("given", [{}, {"loss": "poisson", "ridge": 0.1}])
@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning")
def test_a_path_without_features_has_a_certificate_that_says_so(given):
    X, y = problem(20, 3)
    certificate = pauca.SparseRegressor(k=2, tol=1e300, **given).fit(X, np.abs(y)).certify()
    assert not certificate.proofs
    assert certificate.reason == "The path has no model with features"


@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning")
def test_a_certificate_without_a_bound_says_why():
    rng = np.random.default_rng(6)
    one = rng.standard_normal((6, 1))
    X, y = one + 1e-7 * rng.standard_normal((6, 30)), rng.standard_normal(6)
    certificate = pauca.SparseRegressor(k=1, ridge=1000.0).fit(X, y).certify()
    assert certificate.lower_bound[1] == -np.inf
    assert "nearly copies" in certificate.reason


def test_a_certificate_of_one_feature_of_many():
    X, y = problem(20, MOST_DENSE + 1)
    model = pauca.SparseRegressor(k=1, method="forward", ridge=0.1).fit(X, y)
    assert model.certify().proved[1]


@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning")
def test_certificates_of_groups_count_groups():
    X, y = problem(30, 4)
    given = {"loss": "squared_hinge", "method": "exact", "feature_groups": [0, 1, 1, 2], "never": [2]}
    certificate = pauca.SparseClassifier(k=1, ridge=0.1, **given).fit(X, y > 0).certificate_
    assert certificate.n_candidates == 2
    groups = {"levels": list("aabbc") * 6, "same": list("aabbc") * 6, "last": X[:, 0]}  # fewer columns than groups
    model = pauca.SparseClassifier(k=1, ridge=0.1, loss="squared_hinge", method="exact", never=["last"])
    assert model.fit(pd.DataFrame(groups), y > 0).certificate_.n_candidates == 1


def test_an_importance_is_found_where_the_first_step_overflows():
    """Its estimate by Newton's steps together with others was not a number."""
    X = np.array([[-6.0630005066050112e8, -1.186091192720459e12], [-7.55883692e9, 1.713631416e11], [-8.6e9, -1.347e12]])
    given = {"ridge": 0.1, "standardize": False, "loss": "tweedie"}
    model = pauca.SparseRegressor(k=2, **given).fit(X, [0.0, 2.0, 7.0])
    without = pauca.SparseRegressor(k=1, never=[0], **given).fit(X, [0.0, 2.0, 7.0])
    # Of columns of 1e12 beside a ridge, how far a refit gets depends on the processor's rounding: to 1e-16 or a tenth.
    assert model.path_[2].importance[0] == pytest.approx(without.objective_ - model.objective_, rel=0.2)


@pytest.mark.parametrize(
    ("table", "words"),
    [(pd.DataFrame(np.ones((3, 2)), columns=["a", "a"]), "several columns of one name"), (np.ones((0, 2)), "no rows")],
)
def test_encoders_refuse_what_estimators_refuse(table, words):
    with pytest.raises(ValueError, match=words):
        pauca.TableEncoder().fit(table)


@pytest.mark.parametrize("loss", ["poisson", "tweedie", NegativeBinomial(0.5)])
def test_counts_that_are_all_positive_are_fitted_to_the_end(loss):
    """Only zeros may lead to infinite scores: without them no small ridge is needed to hold coefficients."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4, 1)) + 1e-4 * rng.standard_normal((4, 3))
    model = pauca.SparseRegressor(k=3, loss=loss, ridge=0.0, method="forward").fit(X, [2.0, 2, 4, 5])
    assert model.objective_ < 1e-9 * model.path_[0].objective


@pytest.mark.parametrize("loss", ["poisson", "absolute_error"])
@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning")
def test_heredity_with_prices_where_a_table_is_read_in_chunks(loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 5))
    y = rng.poisson(np.exp(X[:, 4])).astype(float)
    given = {"loss": loss, "costs": [3, 3, 2, 1, 3], "budget": 5.0, "heredity": {4: (0, 1)}, "k": 2}
    for method in ("exchange", "forward", "foba"):
        chunks = pauca.scan(lambda: (X[first : first + 3] for first in range(0, 12, 3)))
        in_chunks, in_memory = (pauca.SparseRegressor(method=method, **given).fit(one, y) for one in (chunks, X))
        assert in_chunks.support_.tolist() == in_memory.support_.tolist()


@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning")
def test_a_table_of_one_row_in_chunks():
    row = np.arange(8.0)[None]
    model = pauca.SparseRegressor(k=1, method="forward", loss="tweedie").fit(pauca.scan(lambda: iter([row])), [2.0])
    assert model.k_ == 0
    assert model.predict(row) == pytest.approx([2.0])


@pytest.mark.filterwarnings("error")
def test_intervals_of_a_level_that_resamples_hardly_ever_have():
    X = pd.DataFrame({"city": ["a"] * 11 + ["b"] * 8 + ["c"], "size": np.sin(np.arange(20.0))})
    y = np.where(X["city"] == "c", 40.0, X["size"] + np.sin(7 * X["size"]))
    model = pauca.SparseRegressor(k=2, ridge=0.0).fit(X, y)
    for count in (1, 2, 30):
        found = model.inference("bootstrap", n_resamples=count)
        known = np.isfinite(found.standard_error)
        assert known.any() == (count > 1)
        assert np.all(found.lower[known] <= found.upper[known])


@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning")
def test_a_report_where_a_single_row_counts(tmp_path):
    X, y = problem(20, 3)
    model = pauca.SparseRegressor(k=1, ridge=1.0).fit(X, y, sample_weight=np.eye(20)[4])
    model.report(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").rstrip().endswith("</html>")


@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning")
def test_a_proof_without_any_move_tells_nobody_of_the_last_one():
    X = np.random.default_rng(0).standard_normal((3, 1))
    told = []
    given = {"k": 1, "method": "exact", "ridge": 1e-6, "always": [0], "callback": lambda at: told.append(at.size)}
    model = pauca.SparseClassifier(**given).fit(X, [0, 1, 0])
    assert model.k_ == 1
    assert len(model.stability(n_resamples=3).frequency) == 1


@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning")
def test_folds_of_ordered_classes_with_rows_of_one_class_alone():
    X, _ = problem(12, 3)
    y = [2] * 10 + [1, 2]
    model = pauca.SparseOrdinalClassifier(k="auto", method="forward", cv=2, ridge=0.0).fit(X, y)
    assert np.isfinite(model.objective_)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning")
def test_certificates_of_counts_whose_steps_overflow_warn_of_nothing():
    rng = np.random.default_rng(0)
    for _ in range(5):
        X = rng.standard_normal((6, 5))
        model = pauca.SparseRegressor(k=1, loss="poisson", ridge=1e-6).fit(X, rng.poisson(np.exp(2 * X[:, 0])))
        model.certify(time_limit=0.2)


def test_an_interrupt_waits_until_a_module_is_there_whole():
    """Numba imported in part could not be imported again: all later fits of streams failed."""
    there = []

    def imported():
        with interrupts_held():
            signal.raise_signal(signal.SIGINT)
            there.append("whole")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored here
    try:
        with pytest.raises(KeyboardInterrupt):
            imported()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        imported()
    finally:
        signal.signal(signal.SIGINT, before)
    assert there == ["whole", "whole"]


def test_lines_that_end_in_carriage_returns_and_fields_without_end(tmp_path, capsys):
    rows = "a,b,y\n" + "\n".join(f"{i % 7},{i * i % 11},{i % 3}" for i in range(40))
    for name, text, words in (
        ("cr.csv", rows.replace("\n", "\r"), "carriage returns"),
        ("long.csv", f"{rows}\n1,{'9' * 200_000},1\n", "cannot be read"),
    ):
        (tmp_path / name).write_bytes(text.encode())
        assert main(["fit", str(tmp_path / name), "--target", "y", "--k", "1", "--out", str(tmp_path / "m.json")]) == 1
        message = capsys.readouterr().err
        assert words in message
        assert len(message) < 1000
