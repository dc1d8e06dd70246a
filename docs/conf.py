"""How the pages are built: ``make docs``. Nothing is fetched, neither by the build nor by the pages."""

import pathlib
import re

project = "pauca"
author = "The pauca developers"
html_title = "pauca"
release = re.search(r'"(.+)"', pathlib.Path(__file__).parents[1].joinpath("src/pauca/version.py").read_text())[1]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build"]

myst_heading_anchors = 3
highlight_language = "none"  # formulas and commands; examples say that they are Python

autodoc_default_options = {"member-order": "bysource"}
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_custom_sections = ["Conventions"]
add_module_names = False
python_maximum_signature_line_length = 80

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False

# Prompts and output stay behind when an example is copied.
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True


def setup(app):
    """The empty line that ends an example for doctest is not shown."""
    app.connect("source-read", _without_empty_ends)


def _without_empty_ends(app, page, source):
    source[0] = re.sub(r"(?ms)^(```python\n.*?)\n\n```$", r"\1\n```", source[0])
