"""The pages' own files are written to a folder of their own."""

import pytest


@pytest.fixture(autouse=True)
def _apart(request, monkeypatch, tmp_path_factory):
    if request.node.path.suffix == ".md":
        monkeypatch.chdir(tmp_path_factory.mktemp("page"))
