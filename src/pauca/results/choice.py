"""Why a size and a ridge were chosen: the score of every candidate, and the rule."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pauca.results.instructions import IN_PYTHON, Instructions
from pauca.results.surface import Surface
from pauca.statistics.criteria import CRITERIA
from pauca.wording import printable, quoted

EXPLAINED = "explained"
"""The default score: the share of the constant model's loss that is gone on held-out rows."""

ACCURACY = "accuracy"
"""The share of right answers, of which one less is the error."""

FOLD_RULES = ("1se", "best")
"""Names of rules that weigh scores of folds; a number of standard errors is another."""

DEFAULT_RULE = 0.25
"""The smallest model within a quarter of a standard error of the best: docs/choosing_k.md says how it was found."""

WORTHWHILE = (0.95, 0.9, 0.8)
"""Shares of what the chosen model gains on held-out rows; a smaller model with the first that half its size can reach
is pointed to."""

Rule = str | float
"""A rule of cross-validation, or an information criterion."""


def standard_errors(rule: Rule) -> float:
    """By how many standard errors a smaller model may be worse than the best."""
    return {"1se": 1.0, "best": 0.0}[rule] if isinstance(rule, str) else float(rule)


def errors_text(rule: Rule) -> str:
    """That number in words."""
    errors = standard_errors(rule)
    words = {0.25: "a quarter of a standard error", 0.5: "half a standard error", 1.0: "one standard error"}
    return words.get(errors, f"{errors:g} standard errors")


# How many sizes above one that scored higher are looked at to tell luck: as many as the rule of classes looks at.
SIZES_LOOKED_AT = 4


@dataclass(frozen=True, eq=False)
class Choice:
    """How the sizes of a path compare.

    Attributes
    ----------
    rule : str or float
        The number of standard errors, "1se" or "best" for cross-validation, or the information criterion "aic", "bic"
        or "ebic".
    scoring : str
        What is scored: "explained", the name of a scorer, or the criterion once more.
    sizes : ndarray of shape (m,)
        The sizes that were compared, ascending.
    mean : ndarray of shape (m,)
        The mean score of each on held-out rows, at the chosen ridges, higher being better; or the criterion, lower
        being better.
    standard_error : ndarray of shape (m,) or None
        The standard error of that mean.
    fold_scores : ndarray of shape (folds, m) or None
        The scores of every fold. A share explained is one of the constant's loss on the rows of this fold, while that
        of ``mean`` is of all held-out rows together.
    chosen : int
        The size the rule chose.
    surface : Surface or None
        The scores at every ridge, where ridges were compared too.
    best_size : int or None
        The best size at any ridge; None for the best of ``mean``.
    ended : str
        What ended the comparison before it was complete, such as "the time limit"; empty for nothing.
    falling : bool
        Whether held-out loss was still falling at the largest size compared.
    n_folds : int
        How many folds there were to score; ``fold_scores`` has those that were, should the comparison have ended early.
    difference_error : ndarray of shape (m,) or None
        The standard error of the difference between the score of each size and that of the chosen one.
    held_out : dict of str to float
        Further figures of the chosen model on the held-out rows: auc, accuracy and brier, or r2, rmse and mae. They
        are optimistic, since these rows chose it.
    one_error_size : int or None
        The smallest size within one standard error of the best at any ridge, which ``selection_rule="1se"`` would
        choose, unless a constant is as good.
    instead_of : str
        What was chosen, in words, where the scores are about other ridges: those of ``at(size, ridge="best")``.
    fewer_units : tuple of int
        The features, or groups, of the model that ``fewer`` speaks of, where that model is not on the path.
    scored_class : int or None
        Which of two classes the score is about, by its place among them; None where it is about all rows alike.
    """

    rule: Rule
    scoring: str
    sizes: np.ndarray
    mean: np.ndarray
    standard_error: np.ndarray | None
    fold_scores: np.ndarray | None
    chosen: int
    surface: Surface | None = None
    best_size: int | None = None
    ended: str = ""
    falling: bool = False
    n_folds: int = 0
    difference_error: np.ndarray | None = None
    held_out: Mapping[str, float] = field(default_factory=dict)
    one_error_size: int | None = None
    instead_of: str = ""
    fewer_units: tuple[int, ...] = ()
    scored_class: int | None = None

    @property
    def by_folds(self) -> bool:
        """Whether this is cross-validation."""
        return self.fold_scores is not None

    @property
    def scored(self) -> bool:
        """Whether anything was scored: a run that was stopped early may have no fold."""
        return self.fold_scores is None or len(self.fold_scores) > 0

    @property
    def criterion_name(self) -> str:
        """The name of the criterion in messages; for cross-validation, the name of the score."""
        criterion = CRITERIA.get(str(self.rule))
        return self.scoring if criterion is None else criterion.label

    @property
    def best(self) -> int:
        """The size with the best mean score at any ridge, or the lowest criterion."""
        if self.best_size is not None:
            return self.best_size
        position = np.argmax(self.mean) if self.by_folds else np.argmin(self.mean)
        return int(self.sizes[position])

    def among(self, sizes: Collection[int]) -> Choice:
        """The choice without sizes that there is no model of at the chosen ridges."""
        keep = np.array([size in sizes for size in self.sizes.tolist()])
        if keep.all():
            return self
        surface = self.surface
        if surface is not None:
            mean, error = surface.mean[:, :, keep], surface.standard_error[:, :, keep]
            of_score = surface.score_error[:, :, keep]
            surface = replace(surface, sizes=surface.sizes[keep], mean=mean, standard_error=error, score_error=of_score)
        return replace(
            self,
            sizes=self.sizes[keep],
            mean=self.mean[keep],
            standard_error=None if self.standard_error is None else self.standard_error[keep],
            fold_scores=None if self.fold_scores is None else self.fold_scores[:, keep],
            difference_error=None if self.difference_error is None else self.difference_error[keep],
            surface=surface,
            best_size=self.best if self.best in sizes else self.chosen,
            one_error_size=self.one_error_size if self.one_error_size in sizes else None,
        )

    def at_ridges(self, search_ridge: float, ridge: float) -> Choice:
        """The choice with the scores of all sizes at other ridges than the chosen ones."""
        surface = self.surface
        assert surface is not None
        place = np.flatnonzero(surface.search_ridges == search_ridge)[0], np.flatnonzero(surface.ridges == ridge)[0]
        if (search_ridge, ridge) == (surface.search_ridge, surface.ridge):
            return self
        folds = 0 if self.fold_scores is None else len(self.fold_scores)
        return replace(
            self,
            mean=surface.mean[place],
            standard_error=surface.score_error[place],
            fold_scores=np.full((folds, len(self.sizes)), np.nan),  # not kept for every ridge
            difference_error=None,
            held_out={},
            surface=replace(surface, search_ridge=search_ridge, ridge=ridge),
            instead_of=self.instead_of or self._chosen_text,
        )

    def is_of(self, size: int) -> bool:
        """Whether the model of this size is the one that was chosen."""
        return size == self.chosen and not self.instead_of

    def position(self, size: int) -> int | None:
        """Position of a size in the arrays; None if it was not compared."""
        found = np.flatnonzero(self.sizes == size)
        return int(found[0]) if len(found) else None

    def record(self, size: int) -> dict[str, float]:
        """The columns of a table for one size."""
        position = self.position(size)
        mean = np.nan if position is None else float(self.mean[position])
        if self.standard_error is None:
            return {str(self.rule): mean}
        spread = np.nan if position is None else float(self.standard_error[position])
        return {"score": mean, **({"error": 1.0 - mean} if self.scoring == ACCURACY else {}), "standard_error": spread}

    @property
    def message(self) -> str:
        """The choice in words."""
        return self.message_for(IN_PYTHON)

    def message_for(self, how: Instructions) -> str:
        """The choice in the words of a kind of reader."""
        if self.fold_scores is None or self.standard_error is None:
            if self.chosen == 0:
                return f"No feature lowers the {self.criterion_name}: the model is a constant."
            return f"{self.chosen} has the lowest {self.criterion_name} of the sizes tried."
        if not self.scored:
            return f"No size was scored on held-out rows before {self.ended}: the largest model found was kept."
        return " ".join([self._choice_message(how), *self._caveats()])

    def _choice_message(self, how: Instructions) -> str:
        folds = f"{self._n_folds}-fold cross-validation"
        if self.chosen == 0 and self.scoring == EXPLAINED:
            return f"{self._empty_message(folds)}{how.best if self.best else ''}"
        found = f"{self.chosen}{self._ridge_text}"
        scores_as_much = self.surface is not None and self._best_score <= self._score_of(self.chosen)
        if scores_as_much or (self.chosen == self.best and (self.surface is None or self._is_best_cell)):
            chosen = "is the choice of" if self._passed_over() else "is best by"
            return f"{found} {chosen} {folds}: {self.scored_text(self.chosen)}."
        if self.surface is not None and self.chosen == self.best:
            alike = self._plain(self._score_of(self.chosen)) == self._best_plain
            best = "" if alike else f"; ridge {self.surface.reference[1]:.3g} has {self._best_plain}"
            return (
                f"{self.chosen} is the best size by {folds}; of its ridges, {self.surface.ridge:.3g} is the largest "
                f"within {errors_text(self.rule)} of the best: {self.scored_text(self.chosen)}{best}."
            )
        return (
            f"{found} is the smallest size whose difference to the best is within {errors_text(self.rule)} by {folds}: "
            f"{self.scored_text(self.chosen)}; the best, {self.best}{self._best_ridge_text}, has "
            f"{self._best_plain}{self._gap_text(self.mean[self.sizes == self.chosen].max(), self._chosen_error)}."
        )

    def _gap_text(self, score: float, error: float | None) -> str:
        """By how much a score is below that of the best, with the standard error that such a difference has."""
        if error is None or not np.isfinite(error):
            return ""
        below, unit = self._reference_score - score, 100.0 if self.scoring == EXPLAINED else 1.0
        if not 0 < below <= standard_errors(self.rule) * error:  # cautions of the rule have a part in it
            return ""
        return f", {unit * below:.2g} more (± {unit * error:.2g}, the standard error of this difference)"

    @property
    def _chosen_error(self) -> float | None:
        """The standard error of the difference between the chosen size and the best."""
        if self.surface is not None:
            return self.surface.error_at(self.surface.search_ridge, self.surface.ridge, self.chosen)
        place = self.position(self.best)
        return None if self.difference_error is None or place is None else float(self.difference_error[place])

    def _empty_message(self, folds: str) -> str:
        if self.best == 0:
            return f"No feature helps on held-out rows ({folds}, {self._compared}): a constant predicts as well."
        return (
            f"No feature clearly helps on held-out rows ({folds}, {self._compared}): the best model, "
            f"of size {self.best}, has {self._best_number}, too little to be sure."
        )

    def _caveats(self) -> list[str]:
        """What was left out, and what that means."""
        found = []
        if self.ended:
            some = f" on {self._n_folds} of {self.n_folds} folds" if self._n_folds < self.n_folds else ""
            found.append(f"Only {self._compared} were compared{some} before {self.ended}.")
        found += self._passed_over()
        if self.falling:
            found.append(
                f"Held-out loss was still falling at {int(self.sizes.max())}: larger models may predict better."
            )
        return found

    def _passed_over(self) -> list[str]:
        """What scored higher than the candidate that is called the best, and why it is not."""
        if self.instead_of or not len(self.mean):
            return []
        if self.surface is None:
            scores, best, ridge = self.mean, self._score_of(self.best), ""
        else:
            other = self.at_ridges(*self.surface.best[:2])
            scores, best, ridge = other.mean, self._best_score, f" with ridge {self.surface.best[1]:.3g}"
        size = int(self.sizes[np.argmax(scores)])
        score, number = float(np.max(scores)), self._plain(np.max(scores))
        if score <= best or number in (self._plain(best), self._plain(self._score_of(self.chosen))):
            return []
        near = float(np.mean(scores[(self.sizes >= size) & (self.sizes <= size + SIZES_LOOKED_AT)]))
        reason = (
            f"with the sizes just above it the average is {self._plain(near)}, so it may be luck"
            if near <= best
            else "its predictions are too sure of themselves, and one that is wrong on new rows costs more than that"
        )
        return [f"{size}{ridge} scored higher, {number}, but does not count as the best: {reason}."]

    def _score_of(self, size: int) -> float:
        position = self.position(size)
        return np.inf if position is None else float(self.mean[position])

    @property
    def smaller(self) -> str:
        """A sentence about a smaller size within one standard error of the best; empty where there is none."""
        size = self.one_error_size
        if size is None or not 0 < size < self.chosen:
            return ""
        which = f"A smaller model, of size {size}{self._ridges_of_its_own(size)}"
        score = float(self._best_mean[self.sizes == size].max())
        gap = self._one_error_gap(size, score)
        return f"{which}, is within one standard error of the best: {self._plain(score)}{gap}."

    def _ridges_of_its_own(self, size: int) -> str:
        """The ridges at which a size scores best, where the model of this size on the path is another one."""
        if self.surface is None or self.smaller_is_on_path:
            return ""
        search, fit = self.surface.best_of(size)
        return f" with ridges of its own ({search:.3g} in the search, {fit:.3g} in the fit)"

    @property
    def smaller_is_on_path(self) -> bool:
        """Whether the path's ridges are those that score best for that size."""
        surface, size = self.surface, self.one_error_size
        return surface is None or (size is not None and surface.best_of(size) == (surface.search_ridge, surface.ridge))

    def _one_error_gap(self, size: int, score: float) -> str:
        """The difference that is within one standard error, where the scores show it as it was judged."""
        if self.surface is not None:
            place = self.surface.sizes == size
            mean, error = self.surface.mean[:, :, place].ravel(), self.surface.standard_error[:, :, place].ravel()
            of_difference = float(error[int(np.argmax(mean))])
        elif self.chosen == self.best and self.difference_error is not None:
            of_difference = float(self.difference_error[self.sizes == size].max())
        else:  # errors are known of differences to the chosen size alone
            return ""
        below, unit = self._reference_score - score, 100.0 if self.scoring == EXPLAINED else 1.0
        if not 0.0 <= below <= of_difference:  # cautions of the rule have a part in it
            return ""
        shown = self._best_plain == self._plain(self._score_of(self.chosen))
        best = "it" if shown else f"the {self._best_plain} of the best"
        return (
            f", {unit * below:.2g} below {best} (± {unit * of_difference:.2g}, the standard error of this difference)"
        )

    @property
    def fewer_size(self) -> int | None:
        """The smallest size with 95 % of what the chosen one gains over the empty model, if it is at most half of it.

        Gains are those on held-out rows, of each size at the ridges that are best for it. If no such size reaches 95 %,
        90 % counts, then 80 %; None if none reaches that.
        """
        return self._fewer()[0]

    @property
    def fewer_is_on_path(self) -> bool:
        """Whether the path's own model of that size gains this much, so that no other ridge is needed for it."""
        return self._fewer()[1]

    def _fewer(self) -> tuple[int | None, bool]:
        chosen, nothing = self.position(self.chosen), self.position(0)
        if not (self.by_folds and self.scored) or chosen is None or self.instead_of:
            return None, False
        if nothing is None and self.scoring != EXPLAINED:
            return None, False
        empty = 0.0 if nothing is None else float(self.mean[nothing])
        own, best, gain = self.mean - empty, self._best_mean - empty, float(self.mean[chosen]) - empty
        half = (self.sizes > 0) & (2 * self.sizes <= self.chosen)
        for share in WORTHWHILE if gain > 0 else ():
            places = np.flatnonzero(half & (best >= share * gain))
            if len(places):
                return int(self.sizes[places[0]]), bool(own[places[0]] >= share * gain)
        return None, False

    @property
    def _best_mean(self) -> np.ndarray:
        """The score of every size at the ridges that are best for it."""
        return self.mean.copy() if self.surface is None else self.surface.mean.max(axis=(0, 1))

    def fewer(self, noun: str, names: Sequence[str], how: Instructions = IN_PYTHON) -> str:
        """A sentence on what fewer features give on held-out rows, and where to see it; empty if there is none.

        ``names`` are those of the features that it is about.
        """
        size, on_path = self._fewer()
        if size is None:
            return ""
        scores = self.mean if on_path else self._best_mean
        score, chosen = float(scores[self.sizes == size].max()), self._score_of(self.chosen)
        see = (how.size if on_path else how.size_best).format(size=size)
        end = f"; {see}." if see else "."
        own = "" if on_path else f", with the ridge that is best for {size}"
        few = f"{size} {noun}{'' if size == 1 else 's'}{f' ({printable(quoted(names))})' if names else ''}"
        if self.scoring == EXPLAINED:
            share = f"{100 * score / chosen:.0f} % of the share that {self.chosen} explain on held-out rows"
            verb = "gives" if size == 1 else "give"
            return f"{few} {verb} {share} ({100 * score:.1f} of {100 * chosen:.1f} %{own}){end}"
        verb = "has" if size == 1 else "have"
        return f"{few} {verb} {self.scoring} {score:.4g} on held-out rows{own}, {self.chosen} have {chosen:.4g}{end}"

    def comparison(self, size: int, how: Instructions = IN_PYTHON) -> str:
        """What cross-validation says of a size that it did not choose, and which ridges the model has."""
        if self.position(size) is None:
            return f"This size was set by hand; it was not scored on held-out rows. {self.chosen} was chosen."
        ridge = f", and its ridge, {self._ridges}, scored best for it" if self.instead_of else ""
        text = f"This size was set by hand{ridge}: {self.scored_text(size)}; {self.instead_of or self._chosen_text}."
        return " ".join([text, *self._ridges_of(size, how)])

    @property
    def _chosen_text(self) -> str:
        return f"{self.chosen}{self._ridge_text} was chosen, with {self.number_text(self.chosen)}"

    def _ridges_of(self, size: int, how: Instructions) -> list[str]:
        """Which ridges a size on the path has, and how to get others, where several were compared."""
        surface = self.surface
        if surface is None or not size or self.instead_of or surface.mean[:, :, 0].size == 1:
            return []
        other = self.at_ridges(*surface.best_of(size))
        none = surface.ridge == surface.search_ridge == 0.0
        own = "It has no ridge, like the whole path" if none else f"Its ridge is that of the whole path, {self._ridges}"
        parts = [] if none else [how.new_fit.format(size=size)]  # which would be this model
        if other is self:
            own += ", which scored best for it too"
        else:
            best = f"{other._ridges}, with {other.number_text(size)}"
            parts.insert(0, how.best_ridge.format(size=size, best=best))
        others = ", and ".join(part for part in parts if part)
        return [f"{own}{f'; {others}' if others else ''}."]

    @property
    def _ridges(self) -> str:
        """The ridge, and that of the search where it is another."""
        assert self.surface is not None
        ridge, search = self.surface.ridge, self.surface.search_ridge
        return f"{ridge:.3g}" if search == ridge else f"{ridge:.3g} ({search:.3g} in the search)"

    @property
    def _n_folds(self) -> int:
        return 0 if self.fold_scores is None else len(self.fold_scores)

    @property
    def _compared(self) -> str:
        sizes = self.sizes.tolist()
        return f"sizes {sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else f"size {sizes[0]}"

    @property
    def _ridge_text(self) -> str:
        surface = self.surface
        return "" if surface is None or not self.chosen else f" with ridge {surface.ridge:.3g}"

    @property
    def _best_ridge_text(self) -> str:
        if self.surface is None:
            return ""
        return f" with ridge {self.surface.reference[1]:.3g}"

    @property
    def _is_best_cell(self) -> bool:
        assert self.surface is not None
        return self.surface.reference == (self.surface.search_ridge, self.surface.ridge, self.chosen)

    @property
    def _best_number(self) -> str:
        return self.number_text(self.best) if self.surface is None else self._best_plain

    @property
    def _best_plain(self) -> str:
        return self._plain(self._reference_score)

    @property
    def _reference_score(self) -> float:
        return self._score_of(self.best) if self.surface is None else self._best_score

    @property
    def _best_score(self) -> float:
        """The score of the candidate that all others were compared with."""
        assert self.surface is not None
        search, ridge, size = self.surface.reference
        place = (self.surface.search_ridges == search, self.surface.ridges == ridge, self.surface.sizes == size)
        return float(self.surface.mean[np.ix_(*place)].max())

    def scored_text(self, size: int) -> str:
        """The score of a size with its standard error, and what it is a score of."""
        number = self.number_text(size).replace(")", ", one standard error)")
        return f"{number} explained on held-out rows" if self.scoring == EXPLAINED else f"{self.scoring} {number}"

    def number_text(self, size: int) -> str:
        """The score of a size with its standard error."""
        position = self.position(size)
        assert position is not None
        assert self.standard_error is not None
        mean, error = self.mean[position], self.standard_error[position]
        spread = f"{100 * error:.2f}" if self.scoring == EXPLAINED else f"{error:.2g}"
        return f"{self._plain(mean)} (± {spread})"

    def _plain(self, score: float) -> str:
        return f"{100 * score:.2f} %" if self.scoring == EXPLAINED else f"{score:.6g}"
