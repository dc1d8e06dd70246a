"""The page: one self-contained file that loads nothing from the network."""

from __future__ import annotations

import base64
import hashlib
import os
from dataclasses import replace
from datetime import date
from importlib.resources import files
from typing import Any

from pauca.export.json_files import check_folder, write_atomically
from pauca.report.calculator import calculator, calculator_data
from pauca.report.class_effects import class_effects
from pauca.report.effects import effects
from pauca.report.figures import figures
from pauca.report.formatting import MANY_NUMBERS, Markup, data_block, escaped, joined, tag
from pauca.report.model_data import Findings, FittedEstimator, ModelData, layout, model_data_of, with_class_names
from pauca.report.performance import performance
from pauca.report.sections import all_sizes, alternatives, header, selected_model, settings, stability, survival
from pauca.report.size_explorer import number_names, size_explorer, size_records
from pauca.version import __version__

# Endings of files that a page would be taken for.
OTHER_FORMATS = {".pdf", ".png", ".jpg", ".svg", ".doc", ".docx", ".md", ".txt", ".csv", ".json", ".xlsx", ".tex"}


def check_page_name(path: str | os.PathLike[str]) -> None:
    """Raise an error for a name that promises another format."""
    ending = os.path.splitext(os.fspath(path))[1].lower()
    if ending in OTHER_FORMATS:
        raise ValueError(
            f"the page is HTML, and {os.fspath(path)!r} ends in {ending}: let the name end in .html; a browser prints "
            "the page, also to PDF"
        )


def check_page_path(path: str | os.PathLike[str]) -> None:
    """Raise an error before any work for a name that promises another format, or a folder that does not exist."""
    check_page_name(path)
    check_folder(path)


def write_report(
    model: FittedEstimator,
    path: str | os.PathLike[str],
    title: str | None = None,
    findings: Findings | None = None,
    class_names: list[str] | None = None,
    event: str | None = None,
) -> None:
    """Write the report of a fitted estimator; an existing file is replaced once the new one is complete."""
    check_page_path(path)
    data = model_data_of(model, findings)
    data = data if event is None else replace(data, event=event)
    # A lone surrogate in a name, which UTF-8 cannot encode, becomes a question mark.
    text = page(data if class_names is None else with_class_names(data, class_names), title, written=date.today())
    write_atomically(path, text.encode("utf-8", "replace"))


def page(data: ModelData, title: str | None = None, *, written: date | None = None) -> str:
    """The page as text; ``written`` is the day that it names."""
    when = "" if written is None else f" on {written.isoformat()}"
    records = size_records(data)
    title = data.headline if title is None else str(title)
    shape = layout(data.path, data.path.sizes)
    names: list[str] = []
    script_data: dict[str, Any] = {
        "start": [record["size"] for record in records].index(data.size),
        "heads": shape.heads,
        "nameColumns": shape.n_names,
        "manyNumbers": MANY_NUMBERS,
        "sizes": number_names(records, shape.n_names, names),
        "names": names,
        "calculator": calculator_data(data),
    }
    scripts = [_resource("page.js"), _resource("calculator.js")]
    parts = [
        header(data, title),
        tag(
            "main",
            selected_model(data),
            effects(data),
            class_effects(data),
            performance(data),
            calculator(data),
            size_explorer(data, records, figures(data)),
            all_sizes(data, records),
            survival(data),
            stability(data),
            alternatives(data),
            settings(data),
        ),
        tag(
            "footer",
            tag("p", f"Written{when} with pauca {__version__}."),
            tag("p", "This page is self-contained and loads nothing from the network."),
        ),
        data_block("data", script_data),
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
{_resource("page.css")}</style>
</head>
<body>
{joined(parts)}
</body>
</html>
"""


def _policy(scripts: list[str]) -> str:
    """Only the scripts of the page may run, and nothing may be fetched or sent."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{value}'" for value in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _resource(name: str) -> str:
    return files("pauca.report").joinpath(name).read_text(encoding="utf-8")
