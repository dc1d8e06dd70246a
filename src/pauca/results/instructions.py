"""How a reader gets other models than the one described: by calls in Python, by options in a shell, or not at all."""

from __future__ import annotations

import ast
import re
import shlex
from dataclasses import dataclass, replace

# A name or a level in quotes; an apostrophe within a word opens none.
QUOTED = r"""(?<!\w)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""

# Parameters that are options of the same name in a shell, with a value in quotes, a number or a list of names. What
# stands in quotes itself, as names of columns and levels do, is passed over.
PARAMETER = re.compile(
    rf"""{QUOTED}|\b(k|ridge|selection_rule|method|missing|criterion|cv|time_limit|never)="""
    rf"""(?:(['"])([\w-]+)\2|(\d[\d.e+-]*\b)|(\[{QUOTED}(?:,\s{QUOTED})*\]))"""
)


NAMELESS = (
    "The columns have no names, so x3 is column 3: fit a frame, or give feature_names= to fit where it takes "
    "them; after the fit of a pipeline pauca.name_features(pipeline) takes those of its steps."
)

GO_ON = ", or go on from there with warm_start=True"
STALLED = ": all of it was needed to repeat the moves of the last fit"


@dataclass(frozen=True)
class Instructions:
    """Parts of sentences for one kind of reader, with ``{size}`` and ``{best}`` to be filled in."""

    size: str
    """Where to see the model of another size, at the path's ridges."""
    size_best: str
    """The same at the ridges that scored best for it."""
    best_ridge: str
    """How to get a size at the ridges that scored best for it, which are ``{best}``."""
    new_fit: str
    """What a fit to this size alone has."""
    smaller: str
    """How to get the smallest size within one standard error of the best, at the path's ridges."""
    smaller_best: str
    """The same at the ridges that scored best for it."""
    best: str
    """How to get the best size where too little is known of it to choose it."""
    honest: str
    """Where there are figures that are not optimistic."""
    other_rows: str
    """Where there are figures of other rows than those of the fit."""
    coefficients: str
    """Where the coefficients are that a table leaves out."""
    names: str
    """How columns get names."""
    search_at: str
    """How to search a size at another ridge."""
    more_time: str
    """How a proof goes on that time has ended."""
    options: bool = False
    """Whether parameters are options."""
    whole: bool = False
    """Whether all coefficients of large categories and groups are shown."""

    def in_words(self, text: str) -> str:
        """A sentence about parameters for this kind of reader."""
        return parameters_as_options(text) if self.options else text


IN_PYTHON = Instructions(
    size="see at({size})",
    size_best='see at({size}, ridge="best")',
    best_ridge='at({size}, ridge="best") has {best}',
    new_fit="a new fit with k={size} has none unless you give one",
    smaller='at({size}) gives it, and selection_rule="1se" chooses such sizes.',
    smaller_best='at({size}, ridge="best") gives it, and selection_rule="1se" chooses such sizes.',
    best=" selection_rule='best' takes it.",
    honest=" (see evaluate)",
    other_rows=" (for others see evaluate)",
    coefficients="path_.coefficients({size}) has all of them",
    names=NAMELESS,
    search_at=": a fit with k={size} and ridge={ridge:.3g} searches at that ridge",
    more_time="; time_limit= allows more",
)

# Files and pickles hold the models at one pair of ridges.
WITHOUT_DATA = replace(
    IN_PYTHON,
    size_best='at({size}, ridge="best") gives it where the model was fitted, since files don\'t keep the data',
    best_ridge="the best one for it is {best}, and needs the data of the fit",
    smaller_best='at({size}, ridge="best") gives it where the model was fitted, since files don\'t keep the data.',
)

ON_PAGE = Instructions(
    size="see every size below",
    size_best="",
    best_ridge="the best one for {size} is {best}",
    new_fit="",
    smaller="",
    smaller_best="",
    best="",
    honest="",
    other_rows="",
    coefficients="",
    names="",
    search_at="",
    more_time="",
)


def in_shell(model: str | None = None, page: str | None = None, *, nested: bool = False) -> Instructions:
    """The options of the command line.

    ``model`` is the file of the model, and ``page`` its report, whose figures are not optimistic if ``nested``.
    """
    file = _literal(model or "MODEL.json")
    fit = "pauca fit with --size {size} added"
    return Instructions(
        size=f"see pauca explain {file} --size {{size}}",
        size_best=f"{fit} gives it",
        best_ridge=f"{fit} has the best one for it, {{best}}",
        new_fit="pauca fit --k {size} without --ridge has none",
        smaller=f"pauca explain {file} --size {{size}} shows it, and --selection-rule 1se chooses such sizes.",
        smaller_best=f"{fit} gives it, and --selection-rule 1se chooses such sizes.",
        best=" --selection-rule best takes it.",
        honest=f" ({page if page and nested else 'pauca fit --report PAGE.html --nested'} has figures that are not)",
        other_rows=f" (for others see {page or 'pauca fit --report PAGE.html'})",
        coefficients=f"pauca explain {file} --size {{size}} has all of them",
        names="",
        search_at=": pauca fit --k {size} --ridge {ridge:.3g} searches at that ridge",
        more_time="; --certify with more seconds allows more",
        options=True,
    )


def _literal(name: str) -> str:
    """A file name in which nothing is filled in."""
    return shlex.quote(name).replace("{", "{{").replace("}", "}}")


def stopped_in_words(seconds: float | None, how: Instructions, *, interrupted: bool) -> str:
    """That a time limit of so many ``seconds``, or Ctrl-C, ended a proof; empty where neither did."""
    if interrupted:
        return " Interrupted from the keyboard."
    return "" if seconds is None else f" Stopped after {seconds:.3g} s{how.more_time}."


def parameters_as_options(text: str) -> str:
    """A sentence of a warning with options of the command line in place of parameters: ``--ridge 1e-3``."""
    text = text.replace(f" {NAMELESS}", "")  # tables of a shell have names, but for LIBSVM files
    text = text.replace(GO_ON, "")
    text = text.replace("use SparseRegressor.", "use --task regression.")
    return PARAMETER.sub(_option, text)


def _option(found: re.Match[str]) -> str:
    """A parameter as an option; what is in quotes as it is."""
    parameter, _, word, number, names = found.groups()
    if parameter is None:
        return found[0]
    value = word or number or shlex.quote(",".join(ast.literal_eval(names)))
    return f"--{parameter.replace('_', '-')} {value}"
