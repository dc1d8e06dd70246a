"""Names in pictures, cut to what there is room for."""

from __future__ import annotations

LONGEST_NAME = 20


def change(entered: list[str], left: list[str]) -> str:
    """``+bmi``, or a line each for ``+s2``, ``+s4`` and ``-s3`` where a swap came with the step; long lists are cut."""
    words = [f"+{short(name)}" for name in entered] + [f"\N{MINUS SIGN}{short(name)}" for name in left]
    return "\n".join(words if len(words) <= 3 else [*words[:2], f"and {len(words) - 2} more"])


def short(name: str, longest: int = LONGEST_NAME) -> str:
    """A name in one line; of long ones the middle goes, since they tend to differ at their ends."""
    line = " ".join(name.split())
    half = longest // 2
    cut = line if len(line) <= longest else f"{line[:half]}\N{HORIZONTAL ELLIPSIS}{line[-half:]}"
    return cut.replace("$", r"\$")  # to matplotlib, dollars are mathematics


def size_label(grouped: bool) -> str:
    """What the sizes count."""
    return "number of groups" if grouped else "number of features"
