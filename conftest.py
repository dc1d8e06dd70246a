"""The pages' own files are written to a folder of their own; pages on packages that are not there are left out."""

import os
from importlib.util import find_spec

import pytest

# Several processes of tests share the cores: more threads than these leave room for wait for each other. Set before
# NumPy is loaded; what is set from outside stays.
if "PYTEST_XDIST_WORKER_COUNT" in os.environ:
    share = max(1, (os.cpu_count() or 1) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(share))

NEEDED = {"docs/onnx.md": "skl2onnx", "docs/moving/abess.md": "abess", "docs/sequences.md": "numba"}

collect_ignore = [page for page, package in NEEDED.items() if find_spec(package) is None]


@pytest.fixture(autouse=True)
def _apart(request):
    if request.node.path.suffix == ".md":  # thousands of other tests need no further fixtures
        folder = request.getfixturevalue("tmp_path_factory").mktemp("page")
        request.getfixturevalue("monkeypatch").chdir(folder)
