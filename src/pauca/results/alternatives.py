"""What could take the place of each feature of a model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pauca.wording import aligned


class Alternatives(list[dict[str, Any]]):
    """Records with the keys feature, replacement, objective and explained_lost, which print as a table.

    Attributes
    ----------
    noun : str
        What is replaced: "feature", "column" or "group".
    ridge, search_ridge : float
        The ridge of the model, at which models are compared, and that of the search.
    shrunken : bool
        Whether the ridge adds to the objective of the model: then what is lost is no share explained.
    """

    def __init__(
        self,
        records: Iterable[dict[str, Any]] = (),
        noun: str = "feature",
        ridge: float = 0.0,
        search_ridge: float = 0.0,
        *,
        shrunken: bool = False,
    ) -> None:
        super().__init__(records)
        self.noun, self.ridge, self.search_ridge, self.shrunken = noun, ridge, search_ridge, shrunken

    @property
    def lost(self) -> str:
        """What the numbers of the table are: the head of its last column."""
        return "rise of objective" if self.shrunken else "explained lost"

    @property
    def notes(self) -> list[str]:
        """What must be known to read the table."""
        rise = "Rise of objective: the ridge included, as a share of the empty model's; importances are the same."
        return [*([rise] if self and self.shrunken else []), *self._on_gains()]

    def _on_gains(self) -> list[str]:
        """Why some replacements gain something, where they do."""
        if not any(record["explained_lost"] < 0 for record in self):
            return []
        gain = "A negative number is a gain on the rows of the fit:"
        if self.ridge != self.search_ridge:
            return [
                f"{gain} features were searched at ridge {self.search_ridge:.3g}, and here models are compared at "
                f"ridge {self.ridge:.3g}, that of the model."
            ]
        return [f"{gain} the search had not tried this swap. method='exchange' would."]

    def summary(self) -> str:
        """The table as text, to be printed."""
        if not self:
            return f"Nothing can take the place of a {self.noun}: no other {self.noun} is left, or none may be used."
        head = [self.noun, "replacement", self.lost]
        body = [[one["feature"], one["replacement"], f"{100 * one['explained_lost']:z.2f} %"] for one in self]
        for place in range(len(body) - 1, 0, -1):
            if body[place][0] == body[place - 1][0]:
                body[place][0] = ""
        lines = aligned([head, *body], left=2)
        return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:], *([""] if self.notes else []), *self.notes])

    def __repr__(self) -> str:
        return self.summary()
