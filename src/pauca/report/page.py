"""The page: one file that asks nothing of the network."""

from __future__ import annotations

import base64
import hashlib
import os
from importlib.resources import files
from typing import Any

from pauca.export.files import write_whole
from pauca.report.figures import figures, plotly_script
from pauca.report.markup import Markup, data_block, escaped, joined, tag
from pauca.report.model_data import ModelData, model_data_of
from pauca.report.model_table import layout
from pauca.report.sections import all_sizes, alternatives, header, settings, stability, the_model
from pauca.report.size_slider import which_size
from pauca.report.sizes import numbered, records


def write_report(model: Any, path: str | os.PathLike[str], title: str | None = None) -> None:
    """Write a fitted estimator's report to a file; what was there is replaced once the new file is whole."""
    script = plotly_script()  # first, so that a missing library is said before any work
    # Half of a surrogate pair, which a name may hold and UTF-8 may not, becomes a question mark.
    write_whole(path, page(model_data_of(model), title, script).encode("utf-8", "replace"))


def page(facts: ModelData, title: str | None, plotly: str) -> str:
    """The page as text."""
    found = records(facts)
    title = facts.task if title is None else str(title)
    words: list[str] = []
    data: dict[str, Any] = {
        "start": [record["size"] for record in found].index(facts.size),
        "heads": layout(facts.path).heads,
        "names": layout(facts.path).n_names,
        "sizes": numbered(found, layout(facts.path).n_names, words),
        "words": words,
        "figures": figures(facts),
    }
    # Plotly takes its time to be read: all but the curves is there before it.
    scripts = [_part("page.js"), plotly.replace("\r\n", "\n").replace("\r", "\n"), _part("charts.js")]
    parts = [
        header(facts, title),
        tag(
            "main",
            the_model(facts),
            which_size(facts, found, list(data["figures"])),
            all_sizes(facts, found),
            stability(facts),
            alternatives(facts),
            settings(facts),
        ),
        tag("footer", tag("p", "Written by pauca. This page holds all it needs and asks nothing of the network.")),
        data_block("data", data),
        *(Markup(f"<script>{script}</script>") for script in scripts),
    ]
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="pauca">
<title>{escaped(title)}</title>
<style>
{_part("page.css")}</style>
</head>
<body>
{joined(parts)}
</body>
</html>
"""


def _policy(scripts: list[str]) -> str:
    """Only the scripts that were laid in may run, and nothing may be fetched or sent."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{value}'" for value in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _part(name: str) -> str:
    return files("pauca.report").joinpath(name).read_text(encoding="utf-8")
