"""Print the lowest versions that pyproject.toml allows, as constraints for pip; `make test-lowest` tests with them."""

import re
import tomllib
from pathlib import Path

FLOOR = re.compile(r"(?P<name>[\w.-]+)(\[[^]]*\])?\s*>=\s*(?P<version>[\w.]+)")


def main() -> None:
    """Print one line per package."""
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    for requirement in sorted(set(wanted)):
        if requirement.startswith(f"{project['name']}["):
            continue  # one extra that takes in another
        floor = FLOOR.fullmatch(requirement)
        if floor is None:
            raise SystemExit(f"{requirement!r} in pyproject.toml does not say which version is the lowest")
        print(f"{floor['name']}=={floor['version']}")


if __name__ == "__main__":
    main()
