"""When compiled kernels are used: not before loading them pays, and never where that is asked for."""

import importlib.util
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from pauca import compiled
from pauca.clock import deadline_after, limited_until
from pauca.compiled import (
    SAVED_BY_CALL,
    SAVED_BY_NUMBER,
    SECONDS_TO_COMPILE,
    SECONDS_TO_LOAD,
    Kernels,
    kernels_used,
    set_mode,
    was_compiled,
)


@pytest.fixture
def use(monkeypatch):
    """A process that has fitted nothing yet."""
    fresh = compiled._Use()
    fresh.installed = True
    monkeypatch.setattr(compiled, "_USE", fresh)
    return fresh


@pytest.fixture
def imported(monkeypatch):
    """Kernels of a module that is imported so, and how often it was."""

    def kernels(load):
        loads = []
        monkeypatch.setattr(compiled, "import_module", lambda name: loads.append(name) or load())
        return Kernels("a module", "kernel"), loads

    return kernels


def module(*, known):
    """A module with a kernel."""
    index = {"signature": "file"} if known else {}  # empty also where the file of the kernels has changed since
    kernel = SimpleNamespace(_cache=SimpleNamespace(_cache_file=SimpleNamespace(_load_index=lambda: index)))
    return lambda: SimpleNamespace(kernel=kernel)


@pytest.mark.parametrize("known", [True, False])
def test_kernels_are_used_once_they_would_have_saved_what_they_take(use, imported, known):
    found, loads = imported(module(known=known))
    assert found.module is None
    use.missed += 0.6 * SECONDS_TO_LOAD
    assert found.module is None
    assert not loads
    use.missed += 0.6 * SECONDS_TO_LOAD
    assert (found.module is not None) == known
    use.missed += SECONDS_TO_COMPILE
    assert found.module is not None
    assert loads == ["a module"]


def test_what_numpy_computes_instead_is_counted(use, imported):
    found, _ = imported(module(known=True))
    assert found.instead_of(1000, calls=3) is None
    assert use.missed == pytest.approx(3 * SAVED_BY_CALL + 1000 * SAVED_BY_NUMBER)
    before = use.missed = SECONDS_TO_LOAD
    assert found.instead_of(1000) is not None
    assert use.missed == before


def test_nothing_is_loaded_where_a_limit_leaves_no_time_for_it(use, imported):
    found, _ = imported(module(known=True))
    use.missed += 10 * SECONDS_TO_LOAD
    with limited_until(deadline_after(SECONDS_TO_LOAD)):
        assert found.module is None
    assert found.module is not None
    with limited_until(deadline_after(SECONDS_TO_LOAD)):
        assert found.module is not None  # it costs nothing any more


def test_kernels_are_used_as_asked(use, imported):
    found, _ = imported(module(known=False))
    with kernels_used("always"):
        assert found.module is not None
    with kernels_used("never"):
        assert found.module is None
    assert found.module is not None
    with pytest.raises(ValueError, match="PAUCA_KERNELS must be one of 'auto', 'always', 'never'; got 'sometimes'"):
        set_mode("sometimes")


def test_without_numba_nothing_is_loaded(use, imported):
    use.installed = False
    found, loads = imported(module(known=True))
    with kernels_used("always"):
        assert found.module is None
    assert not loads


@pytest.mark.parametrize("error", [ImportError("Numba needs NumPy 2.2 or less"), RuntimeError("cannot cache function")])
def test_where_numba_cannot_be_used_numpy_is(use, imported, error):
    def load():
        raise error

    found, loads = imported(load)
    use.missed += 10 * SECONDS_TO_COMPILE
    assert found.module is None
    assert found.module is None
    assert loads == ["a module"]


@pytest.mark.parametrize("kernel", ["told to compile nothing", "with a damaged cache"])
def test_where_kernels_cannot_be_compiled_numpy_is_used(use, imported, kernel):
    def load_index():
        raise EOFError("Ran out of input")

    damaged = SimpleNamespace(_cache=SimpleNamespace(_cache_file=SimpleNamespace(_load_index=load_index)))
    plain_function = damaged if kernel == "with a damaged cache" else lambda x: x  # NUMBA_DISABLE_JIT=1
    with kernels_used("always"):
        assert imported(lambda: SimpleNamespace(kernel=plain_function))[0].module is None


def test_kernels_are_known_by_the_release_and_the_file_that_they_were_compiled_from(tmp_path, monkeypatch):
    """An index that is there, but of a file that has changed, is as good as none: a limit must not wait for that."""
    numba = pytest.importorskip("numba")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    source = tmp_path / "one_kernel.py"
    text = "import numba\n@numba.njit(cache=True)\ndef twice(x):\n    return 2 * x\n"
    known = []
    for version in (text, text + "# changed\n"):
        source.write_text(version, encoding="utf-8")
        os.utime(source, (len(version), len(version)))
        spec = importlib.util.spec_from_file_location("one_kernel", source)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        known.append(was_compiled(module.twice))
        if len(known) == 1:
            module.twice(1.0)
            known.append(was_compiled(module.twice))
    assert known == [False, True, False]


def test_the_environment_says_how_kernels_are_used_and_a_small_fit_does_not_import_numba():
    fit = (
        "import sys, numpy as np; from pauca import SparseClassifier; X = np.random.default_rng(0).normal(size=(90, 4))"
    )
    fit += "; SparseClassifier(2).fit(X, X[:, 0] + X[:, 1] + np.sin(9 * X[:, 2]) > 0); print('numba' in sys.modules)"
    for mode, expected in (("auto", "False"), ("never", "False")):
        environment = os.environ | {"PAUCA_KERNELS": mode}
        done = subprocess.run([sys.executable, "-c", fit], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == expected
    wrong = os.environ | {"PAUCA_KERNELS": "perhaps"}
    done = subprocess.run([sys.executable, "-c", fit], env=wrong, capture_output=True, text=True, check=False)
    assert "PAUCA_KERNELS must be one of" in done.stderr
