"""The path: the model of every size, how they were found, and why the search ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pauca.model import Model
from pauca.results.certificate import Certificate
from pauca.results.choice import Choice
from pauca.results.data_summary import DataSummary
from pauca.results.fit_statistics import Statistics
from pauca.runs.run import Move, Stop
from pauca.tables import ColumnEncoding, TableEncoding
from pauca.wording import column_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame


# Up to so many columns without names can be counted off.
MANY_COLUMNS = 30


@dataclass(frozen=True, eq=False)
class Path:
    """The model of every size that was found.

    ``path[5]`` is the model of five features, ``path[0]`` the empty one. Iterating goes over the models from the
    smallest to the largest.

    Attributes
    ----------
    moves : list of tuple
        What the search did: ``("add", j)``, ``("drop", i)``, ``("swap", i, j)`` for j in i's place, or
        ``("swap", (i1, i2), (j1, j2))`` where several were swapped at once; with ``()`` first they were only added.
    stop : Stop
        Why it ended; ``stop.message`` says so in words.
    n_features : int
        Number of columns there were to choose from.
    column_names : sequence of str or None
        Their names, if they have any.
    group_labels : ndarray or None
        Labels of the groups, where groups of columns are chosen as a whole; sizes and moves then count groups.
    owner : ndarray of shape (n_features,) or None
        Group of every column, where there are groups.
    output_names : list of str or None
        Names of the outputs or classes, where a feature has a coefficient for each.
    two_classes : list of str or None
        The two classes of a single output: a positive coefficient favours the second.
    prices : ndarray or None
        What every feature, or group, costs, where costs were given.
    choice : Choice or None
        How the sizes compare, where the size was chosen by cross-validation or a criterion.
    free : ndarray or None
        Coordinates that are always in and never counted, where the path is that of an objective of your own; None for
        linear models. ``parameters`` puts a whole vector together.
    floor : float or None
        A value that the objective is never below: zero for losses, None where nothing is known.
    noun : str or None
        What a size counts, where it is neither features nor groups.
    certificate : Certificate or None
        Lower bounds of the objective of every size, where they were computed.
    statistics : dict of int to dict
        Adjusted R^2, Mallows' Cp, AIC and BIC by size, as far as the loss has them.
    encoding : TableEncoding or None
        How the columns come from those of a raw table, with the baseline of every category.
    data_summary : DataSummary or None
        What a file keeps of the data of the fit: rows, missing values, medians and ranges of columns.
    forced : frozenset of int
        Features, or groups, that ``always`` forced into every model: they were not chosen.
    identifiers : frozenset of int
        Columns of models that look like identifiers, such as numbers of rows.
    """

    models: dict[int, Model]
    moves: list[Move]
    stop: Stop
    n_features: int
    column_names: Sequence[str] | np.ndarray | None = None
    group_labels: np.ndarray | None = None
    owner: np.ndarray | None = None
    output_names: list[str] | None = None
    two_classes: list[str] | None = None
    prices: np.ndarray | None = None
    choice: Choice | None = None
    free: np.ndarray | None = None
    floor: float | None = 0.0
    noun: str | None = None
    certificate: Certificate | None = None
    statistics: Statistics = field(default_factory=dict)
    encoding: TableEncoding | None = None
    data_summary: DataSummary | None = None
    forced: frozenset[int] = frozenset()
    identifiers: frozenset[int] = frozenset()

    @property
    def sizes(self) -> list[int]:
        """The sizes there is a model of, ascending, the empty model (0) included."""
        return sorted(self.models)

    def __getitem__(self, size: int) -> Model:
        try:
            return self.models[size]
        except (KeyError, TypeError):
            sizes = self.sizes
            raise KeyError(f"no model of size {size!r} on this path; it has sizes {_ranges(sizes)}") from None

    def __contains__(self, size: object) -> bool:
        return size in self.models

    def __iter__(self) -> Iterator[Model]:
        return (self.models[size] for size in self.sizes)

    def __len__(self) -> int:
        return len(self.models)

    def __repr__(self) -> str:
        return f"<Path of sizes {_ranges(self.sizes)}, {len(self.moves)} moves, stop={self.stop.value!r}>"

    @property
    def counted(self) -> str:
        """What a size counts, in one word."""
        return self.noun or ("feature" if self.group_labels is None else "group")

    @property
    def is_nameless(self) -> bool:
        """Whether there are so many columns without names that nobody knows which x3793 is."""
        return self.column_names is None and self.noun is None and self.n_features > MANY_COLUMNS

    def names(self, size: int) -> list[str]:
        """Names of the features in the model of one size.

        Returns
        -------
        list of str
            ``x3`` stands for column 3 of a table without names.
        """
        return column_names(self.column_names, self[size].support)

    def coefficients(self, size: int) -> dict[str, Any]:
        """The coefficients of the model of one size by name, without the intercept.

        Returns
        -------
        dict of str to float, or to list of float
            With several outputs or classes, a list with one for each, in the order of ``output_names``.
        """
        return dict(zip(self.names(size), np.asarray(self[size].coef).T.tolist(), strict=True))

    def groups(self, size: int) -> list[Any]:
        """Labels of the groups in the model of one size; there must be groups."""
        if self.group_labels is None:
            raise ValueError("no groups were given to this fit; names(size) says which features were chosen")
        return self.group_labels[self[size].units].tolist()

    def unit_name(self, unit: int) -> str:
        """Name of a feature, or of a group where whole groups are chosen."""
        if self.group_labels is not None:
            return str(self.group_labels[unit])
        return column_names(self.column_names, [unit])[0]

    def identifiers_in(self, size: int) -> list[int]:
        """Columns of the model of one size that look like identifiers."""
        return [column for column in self[size].support.tolist() if column in self.identifiers]

    def columns_of(self, size: int, unit: int) -> list[int]:
        """Columns of one chosen unit in the model of one size."""
        support = self[size].support
        return [unit] if self.owner is None else support[self.owner[support] == unit].tolist()

    def has_parts(self, *sizes: int) -> bool:
        """Whether what is chosen as a whole has parts of other names in the models of these sizes: levels, columns."""
        if self.group_labels is None or self.owner is None:
            return False
        used = np.unique(np.concatenate([self[size].support for size in sizes]))
        names = column_names(self.column_names, used)
        return any(name != str(self.group_labels[self.owner[j]]) for name, j in zip(names, used, strict=True))

    def raw_columns(self, size: int) -> list[ColumnEncoding]:
        """The columns of the raw table that the model of one size uses, in the order of the table; there may be none.

        Of a category, ``levels`` holds its levels, the baseline first.
        """
        if self.encoding is None:
            return []
        return [self.encoding.columns[place] for place in np.unique(self.encoding.owner[self[size].support])]

    def counts_categories(self, size: int) -> bool:
        """Whether the model of one size uses a category of several levels, which counts as one column."""
        if self.encoding is None or self.noun is None:
            return False
        return any(column.levels is not None and len(column.terms) > 1 for column in self.raw_columns(size))

    def cost(self, size: int) -> float:
        """What the model of one size costs in all; there must be costs."""
        if self.prices is None:
            raise ValueError("no costs were given to this fit")
        return float(self.prices[self[size].units].sum())

    def parameters(self, size: int) -> np.ndarray:
        """The whole parameter vector of the model of one size, where the path is that of an objective of your own.

        Returns
        -------
        ndarray of shape (n_coords,)
            Zero where a coordinate is neither chosen nor free.
        """
        model = self[size]
        if self.free is None or model.free is None:
            raise ValueError("this path is that of a linear model: see its coef and intercept")
        w = np.zeros(self.n_features + len(self.free))
        w[self.free] = model.free
        w[model.support] = model.coef
        return w

    def explained(self, size: int) -> float:
        """Share of the empty model's loss on the training data that the model of ``size`` removes.

        For squared loss with an intercept this is R^2; for likelihoods it is the share of the deviance. The ridge term
        of the objective does not count. An objective without a floor has no such share, and the answer is not a number.
        """
        if self.floor is None:
            return float("nan")
        null = self[0].loss - self.floor
        return 1.0 - (self[size].loss - self.floor) / null if null > 0 else 0.0

    def table(self) -> list[dict[str, Any]]:
        """The path as a list of records, one per size.

        Returns
        -------
        list of dict
            With the keys size, objective, explained, entered, left and features: which features are in, and which
            features (or groups, if there are any) came in since the size before, and which went out. Where whole
            columns of a raw table or groups are chosen, columns or groups lists those that are in. An objective
            without a floor has no share explained. Where costs were given, cost is what the model costs in all. Where
            the objective has lower bounds, lower_bound, gap, relative_gap and proved say what is proved. Where the
            search had another ridge, proofs are about the objective with that ridge: the keys are search_objective,
            search_lower_bound, search_gap, search_relative_gap and search_proved then. Where the size was chosen by
            cross-validation, score and standard_error are the mean score on held-out rows and its standard error (NaN
            for sizes that were not compared), and of an accuracy there is also error, which is one less it; every fold
            chooses its own features, so that the score is that of a size and not of the features listed; where by a
            criterion, there is a key of its name. For squared error there is adjusted_r2, and
            cp (Mallows) without a ridge, bounds or an offset and with more rows than columns, if the path goes to all
            columns or they are quickly fitted (rows times columns squared up to 5e7); for likelihoods of one target
            there are aic and bic, which count every coefficient and the intercept, or the thresholds. These four are
            figures of the data of the fit, and do not know of the search: the more columns it could choose from, the
            better they make its models look.
        """
        records = []
        before: set[str] = set()
        for size in self.sizes:
            names = self.names(size) if self.group_labels is None else [str(label) for label in self.groups(size)]
            records.append(
                {
                    "size": size,
                    "objective": self[size].objective,
                    **({} if self.floor is None else {"explained": self.explained(size)}),
                    **({} if self.prices is None else {"cost": self.cost(size)}),
                    **({} if self.certificate is None else self.certificate.record(size)),
                    **self.statistics.get(size, {}),
                    **({} if self.choice is None else self.choice.record(size)),
                    "entered": [name for name in names if name not in before],
                    "left": sorted(before.difference(names)),
                    **({} if self.group_labels is None else {f"{self.counted}s": names}),
                    "features": self.names(size),
                }
            )
            before = set(names)
        return records

    def to_frame(self) -> DataFrame:
        """The table as a pandas frame indexed by size.

        Returns
        -------
        pandas.DataFrame
            With the keys of ``table`` as columns.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from pauca import SparseRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> SparseRegressor(k=3).fit(X, y).path_.to_frame()["features"][3]
        ['bmi', 'bp', 's5']
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas; install it with: pip install pandas") from error
        return pd.DataFrame(self.table()).set_index("size")

    def summary(self, size: int) -> str:
        """The model of one size as text, to be printed.

        Returns
        -------
        str
            What was chosen, with coefficients and importances, the most important first.
        """
        from pauca.results.summary import summarize

        return summarize(self, size)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the path in up to three panels over the same sizes.

        The first is the share explained on the data of the fit, which rises with size (of an objective without a floor,
        the objective itself), with the features added (+) and removed (-) where there are at most 15 sizes. If the size
        was chosen, the second is the score of each size on held-out rows, with a band of one standard error, or the
        criterion. The last shows the coefficients, each relative to the largest it has at any size, since their units
        differ; with several outputs, their norm over the outputs. The twelve most important features are named.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw a single panel: the scores where the size was chosen, otherwise the share explained. None
            draws all panels in a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The first panel; ``path.plot().figure.savefig("path.png")`` saves the picture.
        """
        from pauca.results.plots import plot_path

        return plot_path(self, ax)

    def plot_surface(self, ax: Axes | None = None) -> Axes:
        """Draw the scores of all sizes and ridges on held-out rows, where ridges were compared.

        The search is that of the chosen model. A square marks the chosen size and ridge, dots mark what is as good as
        the best by the rule.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from pauca.results.plots import plot_surface

        return plot_surface(self, ax)


def _ranges(sizes: list[int]) -> str:
    """``0-3, 7`` for 0, 1, 2, 3, 7."""
    runs: list[list[int]] = []
    for size in sizes:
        if runs and size == runs[-1][1] + 1:
            runs[-1][1] = size
        else:
            runs.append([size, size])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
