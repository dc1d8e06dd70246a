"""The path of an objective of the user's own, which can be written to a file."""

from __future__ import annotations

import os
from dataclasses import dataclass

from pauca.export import register_kind, save
from pauca.results.path import Path


@register_kind("Selected")
@dataclass(frozen=True, eq=False, repr=False)
class Selected(Path):
    """The model of every size that ``select`` has found: a ``Path`` that can be saved."""

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the path to a file of plain JSON, for ``pauca.load``.

        The file holds every model, every move and the names, but not the objective. What ``load`` returns can be given
        to ``select`` as ``resume``. A file that is there already is replaced in one step, once the new one is whole.

        Parameters
        ----------
        file : str or path-like

        Examples
        --------
        >>> import os, tempfile, pauca
        >>> path = pauca.select(lambda w: (w[0] - 1) ** 2, 1, gradient=lambda w: 2 * (w - 1), n_coords=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path.save(os.path.join(folder, "path.json"))
        ...     pauca.load(os.path.join(folder, "path.json")).parameters(1)
        array([1.])
        """
        save(self, file)
