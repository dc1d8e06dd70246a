"""The pages' own files are written to a folder of their own; pages on packages that are not there are left out."""

from importlib.util import find_spec

import pytest

NEEDED = {"docs/onnx.md": "skl2onnx", "docs/moving/abess.md": "abess", "docs/sequences.md": "numba"}

collect_ignore = [page for page, package in NEEDED.items() if find_spec(package) is None]


@pytest.fixture(autouse=True)
def _apart(request, monkeypatch, tmp_path_factory):
    if request.node.path.suffix == ".md":
        monkeypatch.chdir(tmp_path_factory.mktemp("page"))
