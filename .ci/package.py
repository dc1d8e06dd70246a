"""Build what would be published and try it as a user would: `make package`."""

import re
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "tests", "docs", "benchmarks", "examples", ".ci")
FILES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CITATION.cff", "LICENSE")
FILES += ("Makefile", "conftest.py", "pyproject.toml")
WRITTEN_BY_TOOLS = {"__pycache__", ".hypothesis", "sg_execution_times.rst"}  # and the gallery of the pages
SMOKE = """
import sys
import pauca
from sklearn.datasets import load_diabetes

X, y = load_diabetes(return_X_y=True)
model = pauca.SparseRegressor(k=3).fit(X, y)
assert len(model.support_) == 3 and model.score(X, y) > 0.45, model.score(X, y)
model.save("model.json")
assert (pauca.load("model.json").predict(X) == model.predict(X)).all()
assert pauca.__version__ == sys.argv[1], pauca.__version__
assert "site-packages" in pauca.__file__, pauca.__file__
"""


def main() -> None:
    """Stop at the first thing that is not as it should be."""
    version = re.search(r'__version__ = "(.+)"', (ROOT / "src/pauca/version.py").read_text(encoding="utf-8"))[1]
    if f"\nversion: {version}\n" not in (ROOT / "CITATION.cff").read_text(encoding="utf-8"):
        sys.exit(f"CITATION.cff does not speak of version {version}")
    with TemporaryDirectory() as name:
        folder = Path(name)
        # Both from the tree: by default the wheel is made from the sdist, and there would be nothing to compare.
        run(sys.executable, "-m", "build", "--sdist", "--wheel", "--outdir", folder / "dist", ROOT, quiet=True)
        (wheel,) = (folder / "dist").glob("*.whl")
        (sdist,) = (folder / "dist").glob("*.tar.gz")
        check_sdist(sdist, wheel, folder)
        check_wheel(wheel, version, folder)
    print(f"pauca {version}: wheel and sdist are sound.")


def check_sdist(sdist: Path, wheel: Path, folder: Path) -> None:
    """Everything is in it, and the wheel built from it is the wheel built from here."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    unpacked = folder / sdist.name.removesuffix(".tar.gz")
    wanted = {*FILES, *(file.relative_to(ROOT).as_posix() for name in FOLDERS for file in sources(ROOT / name))}
    if missing := sorted(name for name in wanted if not (unpacked / name).is_file()):
        sys.exit(f"The sdist lacks {', '.join(missing)}")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder / "again", unpacked, quiet=True)
    (again,) = (folder / "again").glob("*.whl")
    if different := sorted(name for name, _ in contents(wheel) ^ contents(again)):
        sys.exit(f"Wheels of the tree and of the sdist differ in {', '.join(different)}")


def check_wheel(wheel: Path, version: str, folder: Path) -> None:
    """Alone in a fresh environment, without extras, it fits, saves and loads."""
    run(sys.executable, "-m", "venv", folder / "venv")
    python = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    run(python, "-m", "pip", "check", quiet=True)
    run(python, "-W", "error", "-c", SMOKE, version, cwd=folder)
    run(python, "-m", "pauca", "--help", cwd=folder, quiet=True)


def sources(folder: Path) -> list[Path]:
    """The files of a folder that somebody wrote."""
    files = (file for file in folder.rglob("*") if file.is_file() and not WRITTEN_BY_TOOLS.intersection(file.parts))
    return [file for file in files if not file.is_relative_to(ROOT / "docs" / "gallery")]


def contents(wheel: Path) -> set[tuple[str, int]]:
    """Names and checksums of the files in a wheel."""
    with ZipFile(wheel) as archive:
        return {(one.filename, one.CRC) for one in archive.infolist()}


def run(*command: object, quiet: bool = False, cwd: Path | None = None) -> None:
    """Run a command; what it says on the way is shown only if it fails, where it says much."""
    words = [str(word) for word in command]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT} if quiet else {}
    done = subprocess.run(words, cwd=cwd, text=True, check=False, **output)
    if done.returncode:
        sys.exit(f"{done.stdout or ''}\n{' '.join(words[:4])} failed with {done.returncode}")


if __name__ == "__main__":
    main()
