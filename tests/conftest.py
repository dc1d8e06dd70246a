"""Makes the tests' own helpers importable."""

import os
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "helpers"))

# What a test finds must not depend on how much was fitted before it; tests of kernels switch them on.
os.environ.setdefault("PAUCA_KERNELS", "never")


@pytest.fixture
def ctrl_c():
    """Ctrl-C as in a terminal: what is started in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def array_api(monkeypatch):
    """scikit-learn skips its checks with array dispatch where this is not set."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
