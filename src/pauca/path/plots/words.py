"""Names in pictures, cut to what there is room for."""

from __future__ import annotations

from collections.abc import Sequence

LONGEST_NAME = 20
CUT = "\N{HORIZONTAL ELLIPSIS}"


def change(entered: Sequence[str], left: Sequence[str]) -> str:
    """``+bmi``, or a line each for ``+s2``, ``+s4`` and ``-s3`` where a swap came with the step; long lists are cut."""
    words = [f"+{name}" for name in entered] + [f"\N{MINUS SIGN}{name}" for name in left]
    return "\n".join(words if len(words) <= 3 else [*words[:2], f"and {len(words) - 2} more"])


def short(name: str, longest: int = LONGEST_NAME) -> str:
    """A name in one line; of long ones the middle goes, since they tend to differ at their ends."""
    line = " ".join(name.split())
    half = longest // 2
    return line if len(line) <= longest else f"{line[:half]}{CUT}{line[-half:]}"


def short_names(names: Sequence[str], longest: int = LONGEST_NAME) -> dict[str, str]:
    """Short forms of names; those that would come to the same keep what tells them apart instead of their ends."""
    found: dict[str, str] = {}
    alike: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        alike.setdefault(short(name, longest), []).append(name)
    for form, same in alike.items():
        lines = [" ".join(name.split()) for name in same]
        if len(set(lines)) == 1:
            found.update(dict.fromkeys(same, form))
            continue
        first = _in_common(lines)
        last = _in_common([line[first:][::-1] for line in lines])
        for name, line in zip(same, lines, strict=True):
            middle = short(line[first : len(line) - last], longest - 2)
            before = line[max(0, first - (longest - 2 - len(middle))) : first].partition(" ")[2]  # whole words of it
            found[name] = f"{CUT}{before}{middle}{CUT if last else ''}"
    return found


def _in_common(lines: Sequence[str]) -> int:
    """How many characters all lines begin with."""
    shortest = min(map(len, lines))
    return next((place for place in range(shortest) if len({line[place] for line in lines}) > 1), shortest)


def plain(text: str) -> str:
    """Text as matplotlib should take it: to it, dollars are mathematics."""
    return text.replace("$", r"\$")
