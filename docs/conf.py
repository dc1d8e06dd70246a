"""Configuration of the documentation: ``make docs``. Neither the build nor the pages use the network."""

import pathlib
import re

project = "pauca"
author = "The pauca developers"
html_title = "pauca"
release = re.search(r'"(.+)"', pathlib.Path(__file__).parents[1].joinpath("src/pauca/version.py").read_text())[1]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",  # written here, and in no repository
    "download_all_examples": False,
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
    "show_memory": False,
    "capture_repr": (),  # what is printed is shown, and nothing else
    "abort_on_example_error": True,
    "default_thumb_file": str(pathlib.Path(__file__).parent / "_static" / "path.png"),
}
autosummary_generate = False  # the tables only; the pages are written by hand
exclude_patterns = ["_build"]

myst_heading_anchors = 3
highlight_language = "none"  # formulas and commands; Python examples are marked as such

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

# Copying an example copies the code without prompts and output.
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True


def setup(app):
    """Hide the blank line that ends an example for doctest."""
    app.connect("source-read", _remove_final_blank_lines)


def _remove_final_blank_lines(app, page, source):
    source[0] = re.sub(r"(?ms)^(```python\n.*?)\n\n```$", r"\1\n```", source[0])
