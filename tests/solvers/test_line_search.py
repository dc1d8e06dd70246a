"""Line searches on functions whose minima are known, and damping of matrices that cannot be inverted."""

import numpy as np
import pytest

from pauca.solvers.factorisation import damped, damped_inverse, scaled_to_ones
from pauca.solvers.line_search import SlopeBracket, Trial, backtrack, exact_length


def along(function, slope):
    """Trials of a function of one variable from zero on, with a given slope there."""
    return lambda length: Trial(function(length), -slope * length, length)


def test_backtracking_takes_the_first_length_that_lowers_the_value_enough():
    # (x - 0.2)^2 is lower than at zero below 0.4, and by 1e-4 of what the slope predicts just below that.
    length, trial = backtrack(along(lambda x: (x - 0.2) ** 2, -0.4), 0.04, 0.0, 1e-9)
    assert (length, trial.point) == (0.25, 0.25)
    assert trial.value == pytest.approx(0.0025)


def test_backtracking_leaves_the_domain_out():
    tried = []

    def try_length(length):
        tried.append(length)
        return None if length > 0.3 else Trial(-length, length, length)

    assert backtrack(try_length, 0.0, 0.0, 1e-9)[0] == 0.25
    assert tried == [1.0, 0.5, 0.25]


def test_backtracking_ends_where_nothing_is_lower_but_forgives_rounding():
    assert backtrack(along(lambda x: 1.0 + 1e-15, -1e-18), 1.0, 0.0, 1e-6) is None
    assert backtrack(along(lambda x: 1.0 + 1e-15, -1e-18), 1.0, 4e-15, 1e-6)[0] == 1.0


@pytest.mark.parametrize("minimum", [1e-3, 0.7, 5.0, 300.0])
def test_a_bracket_finds_the_root_of_the_slope(minimum):
    def slope(x):
        return np.exp(x / minimum) - np.e

    length, bracket = 1.0, SlopeBracket(slope(0.0))
    with np.errstate(over="ignore"):
        for _ in range(60):
            found = slope(length)
            bracket.falls_at(length, found) if found < 0 else bracket.rises_at(length, found)
            assert bracket.low <= minimum <= bracket.high
            if abs(found) < 1e-12:
                break
            length = bracket.next_length(length)
    assert length == pytest.approx(minimum, rel=1e-9)


def test_a_bracket_halves_where_the_upper_slope_is_unknown():
    bracket = SlopeBracket(-1.0)
    bracket.rises_at(8.0)
    assert bracket.next_length(8.0) == 4.0
    assert bracket.width == 1.0


def test_the_exact_length_is_the_root_of_the_slope_or_an_end():
    assert exact_length(lambda x: x - 0.3, 1.0) == pytest.approx(0.3, rel=1e-12)
    assert exact_length(lambda x: x - 3.0, 1.0) == 1.0
    assert exact_length(lambda x: x + 1.0, 1.0) == 0.0
    assert exact_length(lambda x: np.inf if x > 0.5 else x - 0.4, 1.0) == pytest.approx(0.4)


def test_damping_makes_singular_matrices_invertible_whatever_their_units():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((5, 3))
    units = np.array([1e-6, 1.0, 1e5, 10.0])
    A = np.column_stack([A, A[:, 1] + A[:, 0]]) * units
    inverse = damped_inverse(A.T @ A, 1e-13)
    assert np.isfinite(inverse).all()
    right = A.T @ rng.standard_normal(5)  # in the range of the matrix: a solution exists
    residual = A.T @ A @ (inverse @ right) - right
    assert np.abs(residual / units).max() <= 1e-2 * np.abs(right / units).max()
    whole = A[:, :3].T @ A[:, :3]
    np.testing.assert_allclose(damped_inverse(whole, 1e-15) @ whole * units[:3, None] / units[:3], np.eye(3), atol=1e-9)


def test_damping_of_stacks_and_of_nothing():
    matrices = np.zeros((2, 2, 2))
    matrices[0] = [[4.0, 1.0], [1.0, 0.0]]
    scaled, scale = scaled_to_ones(matrices, 1e-2, below=1e-2)
    np.testing.assert_allclose(scale, 1 / np.sqrt([[4.0, 0.04], [0.04, 0.04]]))
    np.testing.assert_allclose(np.einsum("bii->bi", scaled), 1.0)
    dampings = [float(one[0, 0, 0]) - 1.0 for one in damped(scaled, 1e-3)]
    np.testing.assert_allclose(dampings, [1e-3, 1e-1], rtol=1e-9)
    np.testing.assert_allclose(damped_inverse(np.zeros((2, 2)), 1e-13), np.eye(2), rtol=1e-9)
