"""The calculator of bounds: formulas, inverses are inverses, invalid arguments raise errors."""

import inspect
import math

import numpy as np
import pytest

from pauca import losses, theory
from pauca.losses import Huber, LogLoss, Loss, Poisson
from pauca.theory import Constants

# Every function with arguments it can work with: laws below hold all of them.
CURVED = {"n_reference": 4, "curvature": 0.5, "decrease": 1.5}


UNITS = {"scale": 1.2, "ridge": 0.1}


NOISE = {"noise": 0.7, "n_samples": 400, "curvature": 0.6}


CALLS = {
    "ball_accuracy": {"loss": "log_loss", "radius": 3.0, "steps": 50, **UNITS},
    "ball_steps": {"loss": "log_loss", "radius": 3.0, "accuracy": 0.02, **UNITS},
    "bounds_table": {"loss": "log_loss", "accuracy": 0.02, "norm": 3.0, "confidence": 0.8, **UNITS},
    "epoch_accuracy": {
        **{"steps": 900, "learning_rate": 0.02, "gradient_norm": 3.0, "distance": 1.5, "center_radius": 2.0},
        **{"confidence": 0.8, "distance_bound": 1.7},
    },
    "foba_additions": {"decrease": 1.5, "tol": 0.02, "nu": 0.3},
    "foba_additions_by_gradient": {"loss": "huber", "decrease": 1.5, "gradient": 0.02, "nu": 0.3, **UNITS},
    "foba_errors": {"tol": 0.02, "n_weak": 2, "curvature": 0.5, "single": 1.2},
    "foba_exact": {"gradient": 0.02, "curvature": 0.5, "single": 1.2},
    "foba_features": {"n_reference": 4, "curvature": 0.5, "smoothness": 1.5, "single": 1.2},
    "foba_tolerance": {"gradient": 0.02, "curvature": 0.5, "single": 1.2},
    "foba_visible": {"tol": 0.02, "curvature": 0.5, "single": 1.2},
    "forward_accuracy": {"loss": "absolute_error", "norm": 3.0, "k": 50, **UNITS},
    "forward_accuracy_if_curved": {"loss": "squared_error", "k": 20, **CURVED, **UNITS},
    "forward_features": {"loss": "absolute_error", "norm": 3.0, "accuracy": 0.02, **UNITS},
    "forward_features_if_curved": {"loss": "squared_error", "accuracy": 0.02, **CURVED, **UNITS},
    "isotropic_curvatures": {"least": 0.4, "largest": 1.1, "ridge": 0.1},
    "least_features_absolute": {"radius": 3.0, "accuracy": 0.02},
    "least_features_squared": {"radius": 3.0, "accuracy": 0.02},
    "magnitude_draws": {"loss": "squared_error", "norm": 3.0, "accuracy": 0.02, "confidence": 0.8, **UNITS},
    "moment_draws": {"loss": "squared_error", "norm": 3.0, "accuracy": 0.02, "confidence": 0.8},
    "moment_norm": {"coef": [3.0, -2.0], "moments": [1.0, 4.0]},
    "noise_distance": {"n_reference": 4, "n_weak": 2, "tol": 0.02, "confidence": 0.8, **NOISE},
    "noise_excess": {"n_reference": 4, "n_weak": 2, "tol": 0.02, "confidence": 0.8, **NOISE},
    "noise_excess_if_larger": {"n_reference": 4, "tol": 0.02, "confidence": 0.8, "noise": 0.7, "n_samples": 400},
    "noise_selection": {"n_weak": 2, "curvature": 0.6},
    "noise_sparsity": {"n_reference": 4, "curvature": 0.6},
    "noise_sparsity_for_excess": {"n_reference": 4, "curvature": 0.6},
    "noise_tolerance": {"n_features": 300, **NOISE},
    "noise_tolerance_for_exact": {"n_features": 300, "confidence": 0.8, **NOISE},
    "noise_tolerance_if_larger": {"n_reference": 4, "confidence": 0.8, "noise": 0.7, "n_samples": 400},
    "noise_tolerance_to_select": {"n_features": 300, "confidence": 0.8, **NOISE},
    "noise_tolerance_to_stop": {"n_features": 300, "n_reference": 4, "confidence": 0.8, "misfit": 0.1, **NOISE},
    "noise_visible": {"tol": 0.02, "curvature": 0.6},
    "norm_bound": CURVED,
    "repeats": {"confidence": 0.8},
    "replacement_excess": {
        **{"loss": "squared_error", "k": 200, "n_reference": 4, "curvature": 0.5},
        **{"step_decrease": 0.01, "start_excess": 0.5, "swaps": 3, **UNITS},
    },
    "replacement_features": {"loss": "squared_error", "n_reference": 4, "curvature": 0.5, **UNITS},
    "replacement_swaps": {"loss": "squared_error", "k": 200, "accuracy": 0.02, **CURVED, **UNITS},
    "sampling_accuracy": {"loss": "hinge", "norm": 3.0, "k": 50, **UNITS},
    "sampling_features": {"loss": "hinge", "norm": 3.0, "accuracy": 0.02, **UNITS},
    "sampling_features_if_curved": {"loss": "hinge", "accuracy": 0.02, **CURVED, **UNITS},
    "stream_accuracy": {"radius": 3.0, "samples": 10**7, "confidence": 0.8, "row_norm": 0.5, "error_bound": 2.0},
    "stream_plan": {"radius": 3.0, "accuracy": 0.02, "confidence": 0.8, "row_norm": 0.5, "error_bound": 2.0},
    "tight_distribution": {"n_samples": 9, "n_features": 3, "radius": 3.0, "random_state": 0},
    "tight_error": {"k": 3, "radius": 3.0},
    "tight_features": {"error": 0.2, "radius": 3.0},
}


POSITIVE, SHARE = (0, -1.0, np.nan, np.inf, "1", None, True), (0, 1, -0.1, 1.5, np.nan, "1", True)


COUNT, NOT_NEGATIVE = (0, -1, 1.5, np.nan, "1", None, True), (-1.0, np.nan, np.inf, "1", None, True)


BAD = {
    **dict.fromkeys(["accuracy", "norm", "radius", "scale", "curvature", "decrease", "tol", "single"], POSITIVE),
    **dict.fromkeys(["smoothness", "noise", "row_norm", "error_bound", "largest"], POSITIVE),
    **dict.fromkeys(["confidence", "nu", "error"], SHARE),
    **dict.fromkeys(["k", "steps", "samples", "n_reference", "n_samples", "n_features"], COUNT),
    **dict.fromkeys(["ridge", "misfit", "least"], NOT_NEGATIVE),
    **dict.fromkeys(["learning_rate", "gradient_norm", "center_radius", "distance_bound"], POSITIVE),
    **dict.fromkeys(["distance", "step_decrease", "start_excess"], NOT_NEGATIVE),
    "swaps": (-1, 1.5, "1", None, True),
    "n_weak": (-1, 1.5, "1", None, True),
    "gradient": (-1.0, np.nan, np.inf, "1", None, True),
    "loss": ("poisson", "nonsense", Poisson(), Huber, 1.0, None),
    "coef": ([1.0], [np.nan, 1.0], [[1.0, 2.0]]),
    "moments": ([1.0], [-1.0, 1.0], [np.inf, 1.0]),
}


FREE = {"random_state"}


RADIUS_ABOVE_ONE = (1, 0.5, -3.0, np.nan, "3")


def test_all_functions_are_under_the_laws():
    assert set(CALLS) == {name for name in theory.__all__ if inspect.isfunction(getattr(theory, name))}


@pytest.mark.parametrize("name", CALLS)
def test_invalid_arguments_raise_errors(name):
    function, call = getattr(theory, name), CALLS[name]
    function(**call)
    for argument in set(call) - FREE:
        # None stands for what is not known, where that may be left out.
        optional = inspect.signature(function).parameters[argument].default is None
        tight = argument == "radius" and name.startswith("tight")
        for value in (*BAD[argument], *(RADIUS_ABOVE_ONE if tight else ())):
            if value is None and optional:
                continue
            # What is not a number, or not a whole one where that is needed, is of the wrong type.
            whole = BAD[argument] is COUNT or argument in {"n_weak", "swaps"}
            wrong_type = isinstance(value, str | bool | None) or (whole and not isinstance(value, int))
            error = TypeError if wrong_type and argument not in {"loss", "coef", "moments"} else ValueError
            with pytest.raises(error, match=r"[a-z]") as raised:
                function(**{**call, argument: value})
            message = str(raised.value)
            if argument not in ("loss", "norm", "radius"):
                assert argument in message, (argument, value, message)
            assert message.endswith("."), message


def test_invalid_options_raise_errors():
    with pytest.raises(
        ValueError, match=r"'stop' parameter of this function must be one of 'accuracy', 'gap'. Got 'time'"
    ):
        theory.ball_steps("squared_error", radius=1, accuracy=1, stop="time")
    with pytest.raises(
        ValueError, match=r"'rule' parameter of this function must be one of 'objective', 'gradient'. Got 'refit'"
    ):
        theory.foba_tolerance(gradient=1.0, curvature=1.0, single=1.0, rule="refit")


def test_contradictory_arguments_raise_errors():
    with pytest.raises(ValueError, match="curvature is the smallest along sparse directions and cannot be above"):
        theory.forward_features_if_curved("log_loss", accuracy=0.1, **CURVED)
    with pytest.raises(ValueError, match="curvature is the smallest along sparse directions and cannot be above"):
        theory.foba_exact(gradient=1.0, curvature=2.0, single=1.0)
    with pytest.raises(ValueError, match="smoothness is over more directions than single"):
        theory.foba_features(n_reference=1, curvature=0.5, smoothness=1.0, single=2.0)
    with pytest.raises(ValueError, match="curvature is at most 1 where columns have mean square one; got 2"):
        theory.noise_sparsity(n_reference=1, curvature=2)
    with pytest.raises(ValueError, match="needs k of at least 19 with these constants; got 5"):
        theory.replacement_swaps("squared_error", k=5, n_reference=4, curvature=1.0, decrease=1.0, accuracy=0.1)
    with pytest.raises(ValueError, match="needs k of at least 19 with these constants; got 5"):
        theory.replacement_excess("squared_error", k=5, n_reference=4, curvature=1.0, step_decrease=0.0)
    with pytest.raises(ValueError, match="Give step_decrease, start_excess, or both"):
        theory.replacement_excess("squared_error", k=50, n_reference=4, curvature=1.0)
    with pytest.raises(ValueError, match="'hinge' has a kink"):
        theory.forward_features_if_curved("hinge", accuracy=0.1, **CURVED)
    with pytest.raises(ValueError, match="least cannot be above largest"):
        theory.isotropic_curvatures(least=2.0, largest=1.0)
    with pytest.raises(ValueError, match="least and ridge are both zero"):
        theory.isotropic_curvatures(least=0.0, largest=1.0)
    for function, accuracy in ((theory.least_features_squared, 0.06), (theory.least_features_absolute, 0.11)):
        with pytest.raises(ValueError, match="proved for an accuracy of at most"):
            function(radius=3.0, accuracy=accuracy)
        with pytest.raises(
            ValueError, match=r"'radius' parameter of this function must be a float in the range \(2, 1e\+30\]. Got 2"
        ):
            function(radius=2.0, accuracy=0.01)
    with pytest.raises(ValueError, match=r"'norm' .* must be a float in the range \[1e-30, 1e\+30\]. Got 1e\+200"):
        theory.forward_features("squared_error", norm=1e200, accuracy=0.1)


STEEP = {"curvature": 0.5, "single": 2.0}


LOUD = {"noise": 2.0, "n_samples": 100, "curvature": 0.5}


STOP = 0.3 + 0.108 * (16 * math.log(160) + 0.1 * math.log(2 * math.e / 0.05))


SELECT = 0.216 * (8 * math.log(160) + 0.5 * math.log(2 * math.e / 0.1))


EXCESS = 0.04 * (74 + 13.5 * math.log(2 * math.e / 0.1)) + 10.8


QUIET = {name: LOUD[name] for name in ("noise", "n_samples")}


TAIL = math.log(2 * math.e / 0.1)


EPOCH = {"steps": 100, "learning_rate": 0.1, "gradient_norm": 2.0, "confidence": 1 - math.exp(-2)}


REPLACED = {"loss": "squared_error", "k": 67, "n_reference": 4, "curvature": 0.5}


FORMULAS = [
    ("sampling_features", {"loss": "squared_error", "norm": 3.0, "accuracy": 0.1}, 90),
    ("sampling_features", {"loss": "squared_error", "norm": 3.0, "accuracy": 0.1, "scale": 2.0, "ridge": 1.0}, 270),
    ("sampling_features", {"loss": "absolute_error", "norm": 3.0, "accuracy": 0.1}, 3600),
    ("sampling_features", {"loss": "absolute_error", "norm": 3.0, "accuracy": 0.1, "scale": 4.0}, 14400),
    ("sampling_features_if_curved", {"loss": "squared_error", "accuracy": 0.1, **CURVED}, 240),
    ("sampling_features_if_curved", {"loss": "absolute_error", "accuracy": 0.1, **CURVED}, 9600),
    ("magnitude_draws", {"loss": "squared_error", "norm": 3.0, "accuracy": 0.1, "confidence": 0.75}, 180),
    ("ball_steps", {"loss": "squared_error", "radius": 3.0, "accuracy": 0.1}, 720),
    ("ball_steps", {"loss": "squared_error", "radius": 3.0, "accuracy": 0.1, "stop": "gap"}, 1440),
    ("ball_steps", {"loss": "hinge", "radius": 3.0, "accuracy": 0.1}, 14400),
    ("ball_steps", {"loss": "hinge", "radius": 3.0, "accuracy": 0.1, "scale": 2.0, "ridge": 5.0}, 36000),
    ("forward_features", {"loss": "squared_error", "norm": 3.0, "accuracy": 0.1}, 180),
    ("forward_features", {"loss": "absolute_error", "norm": 3.0, "accuracy": 0.1}, 3600),
    ("forward_features", {"loss": Constants(lipschitz=2.0), "norm": 3.0, "accuracy": 0.1}, 14400),
    ("forward_features_if_curved", {"loss": "squared_error", "accuracy": 1.5 / math.e**2, **CURVED}, 16),
    ("forward_features_if_curved", {"loss": "squared_error", "accuracy": 7.0, **CURVED}, 0),
    ("replacement_features", {"loss": "squared_error", "n_reference": 4, "curvature": 0.5}, 67),
    ("norm_bound", CURVED, math.sqrt(24)),
    ("least_features_squared", {"radius": 4.0, "accuracy": 0.01}, 100),
    ("least_features_absolute", {"radius": 4.0, "accuracy": 0.01}, 800),
    ("foba_additions", {"decrease": 1.0, "tol": 0.1}, 21),
    ("foba_additions", {"decrease": 1.0, "tol": 0.1, "nu": 0.75}, 41),
    ("foba_features", {"n_reference": 1, "curvature": 1.0, "smoothness": 1.0}, 33),
    ("foba_additions_by_gradient", {"loss": "squared_error", "decrease": 1.0, "gradient": 0.5, "scale": 2.0}, 33),
    ("foba_tolerance", {"gradient": 0.1, **STEEP}, 0.32),
    ("foba_tolerance", {"gradient": 0.1, "rule": "gradient", **STEEP}, 0.8 * math.sqrt(2)),
    ("foba_visible", {"tol": 0.08, **STEEP}, 3.2),
    ("foba_visible", {"tol": 0.1, "rule": "gradient", **STEEP}, 0.4 * math.sqrt(2)),
    ("foba_exact", {"gradient": 0.1, **STEEP}, 6.4),
    ("noise_sparsity", {"n_reference": 1, "curvature": 1.0}, 18),
    ("noise_tolerance", {"n_features": 10, **LOUD}, 4.32 * math.log(160)),
    ("noise_tolerance_to_stop", {"n_features": 10, "n_reference": 4, "confidence": 0.9, "misfit": 3.0, **LOUD}, STOP),
    ("noise_tolerance_to_select", {"n_features": 10, "confidence": 0.7, **LOUD}, SELECT),
    ("noise_visible", {"tol": 0.25, "curvature": 0.5}, 8.0),
    ("noise_excess", {"n_reference": 2, "n_weak": 3, "tol": 0.1, "confidence": 0.9, **LOUD}, EXCESS),
    ("noise_sparsity_for_excess", {"n_reference": 1, "curvature": 1.0}, 83),
    ("noise_distance", {"n_reference": 2, "n_weak": 3, "tol": 0.1, "confidence": 0.8, **LOUD}, math.sqrt(4 * EXCESS)),
    ("noise_excess_if_larger", {"n_reference": 2, "tol": 0.1, "confidence": 0.9, **QUIET}, 0.216 * TAIL - 0.14),
    ("noise_tolerance_if_larger", {"n_reference": 2, "confidence": 0.9, **QUIET}, 0.54 * TAIL),
    ("noise_tolerance_for_exact", {"n_features": 10, "confidence": 0.7, **LOUD}, 4.32 * math.log(160)),
    ("epoch_accuracy", {**EPOCH, "center_radius": 3.0, "distance": 1.0}, 3.45),
    ("replacement_excess", {**REPLACED, "step_decrease": 0.01}, 0.16),
    ("replacement_excess", {**REPLACED, "start_excess": 1.0, "swaps": 2}, (15 / 16) ** 2),
    ("replacement_excess", {**REPLACED, "start_excess": 0.1, "step_decrease": 0.01}, 0.1),
    ("tight_error", {"k": 8, "radius": 3.0}, 0.5),
    ("tight_features", {"error": 0.5, "radius": 3.0}, 8),
]


@pytest.mark.parametrize(("name", "call", "expected"), FORMULAS)
def test_formulas(name, call, expected):
    found = getattr(theory, name)(**call)
    assert found == expected or (isinstance(expected, float) and math.isclose(found, expected))
    assert isinstance(found, type(expected))


def test_records():
    found = theory.foba_errors(tol=0.08, n_weak=1, **STEEP)
    assert math.isclose(found.distance, 3.2)
    assert math.isclose(found.excess, 0.64)
    assert (found.missed, found.extra) == (2, 256)
    found = theory.foba_errors(tol=0.1, n_weak=3, rule="gradient", **STEEP)
    assert math.isclose(found.distance, math.sqrt(0.96))
    assert math.isclose(found.excess, 0.06)
    assert (found.missed, found.extra) == (6, 768)
    assert theory.noise_selection(n_weak=3, curvature=0.5) == (6, 768)
    assert theory.isotropic_curvatures(least=0.5, largest=2.0, ridge=1.0) == (1.25, 4.0)
    plan = theory.stream_plan(radius=2.0, accuracy=0.25, confidence=0.9, row_norm=3.0, error_bound=2.0)
    assert plan.epochs == 4
    assert plan.first == math.ceil((48 + 192 * math.sqrt(2 * math.log(40))) ** 2)
    assert plan.samples == 15 * plan.first
    assert math.isclose(plan.step, 1 / (6 * math.sqrt(plan.first)))


INVERSES = [
    ("sampling_features", "sampling_accuracy", "k"),
    ("forward_features", "forward_accuracy", "k"),
    ("ball_steps", "ball_accuracy", "steps"),
    ("forward_features_if_curved", "forward_accuracy_if_curved", "k"),
]


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "log_loss", Constants(3.0, 0.1)], ids=str)
@pytest.mark.parametrize(("features", "accuracy", "counted"), INVERSES)
def test_inverses(features, accuracy, counted, loss):
    loss = "huber" if "curved" in features and loss == "absolute_error" else loss  # for smooth losses only
    call = {name: value for name, value in CALLS[accuracy].items() if name != counted}
    call |= {"loss": loss, "scale": 4.0}
    features, accuracy = getattr(theory, features), getattr(theory, accuracy)
    for k in (1, 2, 7, 100):
        assert features(**call, accuracy=accuracy(**call, **{counted: k})) == k
    for wanted in (1.0, 0.1, 0.013):
        k = features(**call, accuracy=wanted)
        assert accuracy(**call, **{counted: k}) <= wanted * (1 + 1e-8)
        assert k == 1 or accuracy(**call, **{counted: k - 1}) > wanted


@pytest.mark.parametrize("samples", [10**5, 10**6, 10**8])
def test_stream_inverse(samples):
    about = {"radius": 3.0, "confidence": 0.8, "row_norm": 0.5, "error_bound": 2.0}
    accuracy = theory.stream_accuracy(samples=samples, **about)
    plan = theory.stream_plan(accuracy=accuracy, **about)
    assert plan.samples <= samples < theory.stream_plan(accuracy=0.99 * accuracy, **about).samples
    assert theory.stream_accuracy(samples=1, **about) == 9.0
    assert plan.samples == plan.first * (2**plan.epochs - 1)


RISING = {"norm", "radius", "scale", "ridge", "decrease", "n_reference", "confidence", "row_norm", "error_bound", "nu"}


FALLING = {"accuracy", "curvature", "tol", "gradient", "error"}


COUNTS = [name for name in CALLS if name.endswith(("features", "steps", "draws", "additions", "curved", "sparsity"))]


@pytest.mark.parametrize("name", [name for name in COUNTS if "accuracy" not in name and "least" not in name])
def test_counts_rise_with_difficulty(name):
    function, call = getattr(theory, name), CALLS[name]
    for argument, value in call.items():
        if argument in RISING | FALLING:
            # Integers go up by one, everything else by a quarter of the way to where it may go.
            harder = value + 1 if isinstance(value, int) else value + 0.25 * (1 - value if value < 1 else value)
            counts = function(**call), function(**{**call, argument: harder})
            assert counts[0] < counts[1] if argument in RISING else counts[0] > counts[1], argument


def test_losses_by_name_object_and_constants():
    call = {"norm": 3.0, "accuracy": 0.1}
    by_curvature = theory.forward_features(Constants(smoothness=0.25), **call)
    by_slope = theory.forward_features(Constants(lipschitz=1.0), **call)
    assert by_curvature < by_slope
    assert theory.forward_features("log_loss", **call) == theory.forward_features(LogLoss(), **call) == by_curvature
    assert theory.forward_features("log_loss", norm=3.0, accuracy=10.0) == 1
    # Far from the optimum slopes may say more than curvature does.
    both = Constants(smoothness=100.0, lipschitz=0.5)
    assert theory.forward_features(both, norm=3.0, accuracy=1.0) == 9

    class Own(Loss):
        smoothness = 0.25

        def value(self, y, a):
            return np.logaddexp(0, a)

        derivative = curvature = value

    assert theory.forward_features(Own(), **call) == by_curvature
    Own.smoothness = None
    with pytest.raises(ValueError, match=r"that is known.*'smoothness'.*Constants\(smoothness=") as told:
        theory.forward_features(Own(), **call)
    assert "'lipschitz'" in str(told.value)
    unbounded = {"gamma", "negative_binomial", "poisson", "tweedie"}
    for name in {**losses.REGRESSION_LOSSES, **losses.CLASSIFICATION_LOSSES}.keys() - unbounded:
        assert theory.forward_features(name, **call) >= 1
    assert theory.forward_features(losses.Multinomial(), **call) == 2 * by_curvature
    for name in unbounded:
        with pytest.raises(ValueError, match="has no bound on its curvature or its slope"):
            theory.forward_features(name, **call)
    with pytest.raises(ValueError, match="'smoothness' parameter"):
        Constants(smoothness=0.0)


def test_bounds_table():
    about = {"accuracy": 0.02, "norm": 3.0, "scale": 1.2, "ridge": 0.1, "confidence": 0.95}
    curved = {"n_reference": 4, "curvature": 0.2, "decrease": 1.5}
    rows = theory.bounds_table("log_loss", **about, **curved)
    found = {row.method: row.number for row in rows}
    assert len(found) == len(rows)
    call = {"accuracy": 0.02, "scale": 1.2, "ridge": 0.1}
    smooth, steep = Constants(smoothness=0.25), Constants(lipschitz=1.0)
    assert found["forward selection"] == theory.forward_features(smooth, norm=3.0, **call)
    assert found["forward selection, by slopes"] == theory.forward_features(steep, norm=3.0, **call)
    gap = theory.ball_steps(smooth, radius=3.0, stop="gap", **call)
    assert found["greedy in the l1 ball, small gap"] == gap
    assert found["repeats of a sampling, for 95 %"] == 5
    assert found["the model to compare with, at most"] == theory.norm_bound(**curved)
    assert found["sampling, where Q is curved"] == theory.sampling_features_if_curved(smooth, **call, **curved)
    assert found["forward selection, where Q is curved"] == theory.forward_features_if_curved(
        "log_loss", **call, **curved
    )
    assert found["FoBa with this tolerance, until no worse"] == theory.foba_additions(decrease=1.5, tol=0.02)
    assert "any method, on some data" not in found
    for row in rows:
        assert "\n" not in str(row)
        assert str(row).startswith(row.method)
    lines = str(rows).splitlines()
    assert len(lines) == len(rows)
    assert repr(rows) == str(rows)
    ends = {
        line.index(f"{row.number:,.10g}  {row.unit}") + len(f"{row.number:,.10g}")
        for line, row in zip(lines, rows, strict=True)
    }
    assert len(ends) == 1  # numbers stand below one another
    assert all(line.startswith(row.method) and line.endswith(row.source) for line, row in zip(lines, rows, strict=True))
    assert isinstance(rows, list)
    assert str(theory.BoundsTable()) == "no bounds"


def test_lower_bounds_are_for_their_own_losses_only():
    for loss in ("squared_error", losses.SquaredError(), "absolute_error", losses.AbsoluteError()):
        assert any(row.method.startswith("any method") for row in theory.bounds_table(loss, norm=3.0, accuracy=0.01))
    for loss in ("squared_hinge", "huber", "hinge", Constants(smoothness=1.0)):
        assert all(
            not row.method.startswith("any method") for row in theory.bounds_table(loss, norm=3.0, accuracy=0.01)
        )
    assert all(
        not row.method.startswith("any method") for row in theory.bounds_table("squared_error", norm=1.0, accuracy=0.01)
    )
    assert all(
        not row.method.startswith("any method") for row in theory.bounds_table("squared_error", norm=3.0, accuracy=0.2)
    )


def test_a_table_needs_something_to_compare_with():
    with pytest.raises(ValueError, match="nothing to compare with: give norm, or n_reference"):
        theory.bounds_table("squared_error", accuracy=0.1)
    with pytest.raises(ValueError, match="belong together: give all three or none"):
        theory.bounds_table("squared_error", accuracy=0.1, norm=1.0, n_reference=3)
