"""The documentation names what exists: public names, rooms, and messages."""

import ast
import importlib
import re
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import pauca

PAGES = Path(__file__).parents[1] / "docs" / "reference"
MODULES = ("pauca", "pauca.losses", "pauca.methods", "pauca.export", "pauca.theory", "pauca.projections")
DIRECTIVE = re.compile(r"^\.\. (currentmodule|autoclass|autofunction|autodata|py:data):: ([\w.]+)", re.MULTILINE)


@cache
def documented():
    """Full names of all entries in the reference, such as ``pauca.losses.Huber``, and of the modules it covers."""
    names = set()
    for page in PAGES.glob("*.md"):
        module = ""
        for directive, name in DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            if directive == "currentmodule":
                module = name
                names.add(name)
            else:
                names.add(name if name.startswith("pauca.") else f"{module}.{name}")
    return names


def public_names():
    for module in MODULES:
        for name in importlib.import_module(module).__all__:
            yield f"{module}.{name}"


def resolved(full_name):
    """What a full name stands for, looked up as a user would, attribute by attribute."""
    value = pauca
    for position, part in enumerate(parts := full_name.split(".")):
        if position and isinstance(value, ModuleType) and not hasattr(value, part):
            importlib.import_module(".".join(parts[: position + 1]))
        value = getattr(value, part) if position else value
    return value


@pytest.mark.parametrize("name", sorted(public_names()))
def test_public_names_are_documented(name):
    """A class that two modules export needs one entry; a module is documented by a page on its members."""
    value = resolved(name)
    if isinstance(value, ModuleType):
        assert any(other.startswith(f"{name}.") for other in documented()), f"no page of docs/reference covers {name}"
    else:
        same = {name, *(other for other in documented() if resolved(other) is value)}
        assert same & documented(), f"{name} is on no page of docs/reference"


@pytest.mark.parametrize("name", sorted(documented()))
def test_documented_names_exist(name):
    assert resolved(name) is not None


def test_pages_are_in_the_contents():
    index = (PAGES.parent / "index.md").read_text(encoding="utf-8")
    for page in PAGES.glob("*.md"):
        assert f"\nreference/{page.stem}\n" in index, f"{page.name} is in no table of contents of docs/index.md"


def test_every_room_is_in_contributing():
    """The table of rooms in CONTRIBUTING.md names every package and every module at the top."""
    text = (PAGES.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for room in Path(pauca.__file__).parent.iterdir():
        if room.is_dir() and (room / "__init__.py").exists():
            assert f"`{room.name}/`" in text, f"CONTRIBUTING.md does not say what {room.name}/ is for"
        elif room.suffix == ".py" and not room.stem.startswith("__"):
            assert f"`{room.stem}`" in text, f"CONTRIBUTING.md does not say what {room.name} is for"


def messages():
    """All texts in the code, parts that are written on several lines joined."""
    for file in Path(pauca.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_quoted_messages_exist():
    """The first column of the table of errors in the guide quotes parts of messages that pauca gives."""
    guide = (PAGES.parent / "troubleshooting.md").read_text(encoding="utf-8")
    table = guide.split("## Errors")[1].split("## ")[0]
    quoted = re.findall(r"^\| (.+?) \|", table, re.MULTILINE)[1:]
    assert len(quoted) > 15
    texts = [*messages(), "object has no attribute 'predict_proba'"]  # the last is Python's own
    for part in quoted:
        assert any(part in text for text in texts), f"no message has the words {part!r}"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_somewhere(page):
    """Sphinx checks the links of the pages in docs; these are checked here, headings included."""
    root = PAGES.parents[1]
    for target, heading in re.findall(r"\]\((?!https?:)([^)#\s]+)(?:#([\w-]+))?\)", (root / page).read_text("utf-8")):
        assert (root / target).exists(), f"{page} links to {target}"
        if heading:
            titles = re.findall(r"^#+ (.+)", (root / target).read_text("utf-8"), re.MULTILINE)
            assert heading in {title.lower().replace(" ", "-") for title in titles}, f"{page}: {target}#{heading}"
