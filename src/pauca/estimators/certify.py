"""Lower bounds for a fitted model: after every fit on a narrow table, and on request."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pauca.checks import ParameterChecks
from pauca.clock import OutOfTime, deadline_after, limited_until
from pauca.estimators.fitted_base import shows_progress
from pauca.estimators.missing_methods import CERTIFICATE, MissingMethod
from pauca.methods import Exact, Exchange
from pauca.model import Model, Snapshot
from pauca.relaxations.optimality_bounds import NoBoundError, Proofs, known_models
from pauca.relaxations.size_proof import SizeProof
from pauca.relaxations.tree import Wanted
from pauca.results.certificate import Certificate
from pauca.results.path import Path
from pauca.results.pool import Pool
from pauca.runs.problem import LinearProblem
from pauca.runs.progress import phase
from pauca.runs.run import History, Method, SearchRun, Stop, ended_early
from pauca.subsets.base import Subset, is_lower
from pauca.subsets.least_squares import LeastSquaresSubset
from pauca.subsets.smooth import SmoothSubset

# A fit on at most this many columns proves its models.
NARROW = 40

# Enumeration proves every size of nearly all such tables; what it leaves gets the bound of its root. Where a budget or
# places limit which features go together, there is no enumeration, and such a fit spends so many nodes of a tree on
# each size, up to ``FEW_COLUMNS`` and beyond. On 27 tables with 10 to 40 columns fits of five features take 1.1 to 3.5
# times as long as without the proof, and fits of every size 1.2 to 5 times.
FEW_COLUMNS = 30
NODES_PER_SIZE = (600, 200)


# Where sizes were compared, the chosen one has the bound of its root on tables with up to so many columns.
MOST_BOUNDED = 200

# Why a certificate has no bound.
NOTHING_TO_PROVE = "The path has no model with features"
CHOSEN_COPIES = "The chosen features are nearly copies of others, which stand for them in proofs"
NO_TIME = "The time was up before there was a bound"
INTERRUPTED = "The proof was interrupted before there was a bound"


def prove_narrow(run: SearchRun, method: Method, n_columns: int) -> None:
    """After a fit on few columns with the default method: prove its models, and put better ones in their place.

    The number of nodes is fixed, and no clock is read: the same data give the same answer, and each size is searched by
    itself, so that it does not depend on how many are requested.
    """
    subset, history = run.subset, run.history
    assert history is not None
    if method != Exchange() or run.stopped_early or not isinstance(subset, LeastSquaresSubset):
        return
    if subset.null_value <= subset.perfect_below or not 0 < n_columns <= NARROW:
        return
    limited = subset.limits.price is not None or subset.limits.kind is not None
    most_nodes = NODES_PER_SIZE[0 if n_columns <= FEW_COLUMNS else 1] if limited else 0
    prove(subset, history, most_nodes=most_nodes, compiled=False)
    history.no_proof = None  # none was requested


def bound_chosen(search: SearchRun, method: Method, size: int, n_columns: int) -> None:
    """After a choice of the size on more columns: bound the chosen size, and swap columns from its relaxation.

    That costs a small part of a comparison of sizes, though much of a single fit.
    """
    subset, history = search.subset, search.history
    assert history is not None
    if method != Exchange() or search.stopped_early or not isinstance(subset, LeastSquaresSubset):
        return
    if not NARROW < n_columns <= MOST_BOUNDED or size not in history.best or subset.null_value <= subset.perfect_below:
        return
    try:
        proofs = Proofs(subset, {size: history.best[size]})
        proofs.bound_roots_only()
    except NoBoundError:
        return  # none was requested
    _keep(proofs, subset, history)


def prove(
    subset: Subset,
    history: History,
    *,
    relative_gap: float = 0.0,
    most_nodes: float = np.inf,
    time_limit: float | None = None,
    compiled: bool = True,
) -> None:
    """Bound every size in a history, and put better models in the place of those it has.

    Time and Ctrl-C end it; what was found is kept.
    """
    deadline, stops, copies = deadline_after(time_limit), list[Stop](), set[int]()
    with ended_early(stops.append):
        try:
            proofs = Proofs(subset, history.best)
        except NoBoundError as error:
            history.no_proof = str(error)
            return
        copies = proofs.copies
        _grow(proofs.grow(relative_gap, most_nodes, compiled=compiled), deadline, stops.append)
        _keep(proofs, subset, history)
    history.proofs_stopped_after = time_limit if Stop.TIME in stops else None
    history.proofs_interrupted = Stop.INTERRUPTED in stops
    if not history.proofs:
        history.no_proof = INTERRUPTED if history.proofs_interrupted else CHOSEN_COPIES if copies else NO_TIME


def _keep(proofs: Proofs, subset: Subset, history: History) -> None:
    """Put what was proved into the history, and better models in the place of those it has."""
    history.n_copies = len(proofs.copies)
    for size in proofs.sizes:
        proof = proofs.proof(size)
        if is_lower(proof.objective, history.best[size].value, subset.negligible):
            history.best[size] = fitted(subset, proofs.support(size))
        history.proofs[size] = proof


def _grow(growing: Iterator[None], deadline: float, note: Callable[[Stop], None]) -> None:
    """Let trees grow until they are done, the time is up, or Ctrl-C; in the middle of a bound the others are kept."""
    with ended_early(note), limited_until(deadline):
        for _ in growing:
            if time.monotonic() >= deadline:
                raise OutOfTime


def fitted(subset: Subset, support: tuple[int, ...]) -> Snapshot:
    """The model of some units."""
    model = subset.restarted()
    for unit in support:
        if unit not in model.support:
            model.add(unit)
    return model.snapshot()


def fitted_again(subset: Subset, supports: Sequence[tuple[int, ...]]) -> list[Snapshot]:
    """The models of some supports."""
    if isinstance(subset, LeastSquaresSubset):
        try:
            return known_models(subset, supports)
        except np.linalg.LinAlgError:
            pass  # the subset knows what to do with dependent columns
    return [fitted(subset, support) for support in supports]


def certificate_of(
    search: SearchRun,
    models: Mapping[int, Model],
    names: Sequence[str] | np.ndarray | None,
    ridges: tuple[float, float],
) -> Certificate | None:
    """The certificate of a search for its finished ``models``; None where no bounds were requested.

    ``ridges`` are those of the models and of the search. Where they are one, the objective that users see is that of
    the models, which may differ from that of the search by rounding.
    """
    history, subset = search.history, search.subset
    assert history is not None
    if not history.proofs and history.no_proof is None:
        return None
    limits, n_columns = subset.limits, 0
    if isinstance(subset, LeastSquaresSubset | SmoothSubset):
        # Limits are on units: columns, or groups of them.
        usable = subset.usable if isinstance(subset, SmoothSubset) else subset.objective.design.usable
        n_columns = len(limits.candidates(usable)) - history.n_copies
    limited = limits.budget is not None or limits.kind is not None
    proofs = dict(history.proofs)
    if not proofs:
        proofs = {
            size: SizeProof(snapshot.value, -np.inf)
            for size, snapshot in history.best.items()
            if size in models and size
        }
    by_unit = isinstance(subset, SmoothSubset) and subset.objective.ridge_by_unit and ridges[1] > 0
    same = ridges[0] == ridges[1] and not by_unit
    if same:
        proofs = {size: _for_model(proof, models[size]) for size, proof in proofs.items()}
    return Certificate(
        proofs,
        n_columns,
        len(limits.always),
        limited,
        names,
        history.no_proof,
        search_ridge=None if same else ridges[1],
        n_copies=history.n_copies,
        ridge=ridges[0],
        stopped_after=history.proofs_stopped_after,
        interrupted=history.proofs_interrupted,
    )


def certify(
    problem: LinearProblem, search_ridge: float, weights: np.ndarray, path: Path, time_limit: float | None
) -> Path:
    """A path with a certificate for the objective that was searched, and with the better models found for it."""
    search = problem.searched_at(search_ridge).begin(weights)
    history = search.history = History(search.subset, None)
    supports = [tuple(model.units.tolist()) for model in path if model.size]
    if supports:
        history.best.update({len(one.support): one for one in fitted_again(search.subset, supports)})
        # The start of a search has the forced features, which a path that went down need not have reached.
        history.best = {size: one for size, one in history.best.items() if size in path.models}
        prove(search.subset, history, time_limit=time_limit)
    else:
        history.no_proof = NOTHING_TO_PROVE
    better = [model for size, model in history.best.items() if size and _differs(path[size], model)]
    subset, finished = search.subset, list[Model]()
    # Where this is interrupted, the models are what they were: bounds hold for them too.
    with ended_early(lambda stop: None):
        if problem.differs_from_search(search_ridge):
            subset = problem.begin(weights, search.design).subset
            better = [fitted(subset, model.support) for model in better]
        finished = subset.finish(better, 0) if better else []
    models = {**path.models, **{model.size: model for model in finished}}
    certificate = certificate_of(search, models, path.column_names, (problem.ridge, search_ridge))
    return replace(path, models=models, certificate=certificate)


def find_pools(data: Any, path: Path, sizes: Sequence[int], wanted: Wanted, seconds: float | None) -> dict[int, Pool]:
    """Good models of some sizes by the objective that was searched, as far as the time allows."""
    phase("looking for other models")
    subset = data.problem.searched_at(data.search_ridge).begin(data.weights).subset
    deadline, stops = deadline_after(seconds), list[Stop]()
    models = fitted_again(subset, [tuple(path[size].units.tolist()) for size in sizes])
    proofs = Proofs(subset, {len(model.support): model for model in models}, wanted)
    _grow(proofs.grow(0.0), deadline, stops.append)
    stopped_after, interrupted = seconds if Stop.TIME in stops else None, Stop.INTERRUPTED in stops
    search_ridge = data.search_ridge if data.problem.differs_from_search(data.search_ridge) else None
    pools = {}
    for size in sizes:
        found, complete = proofs.collected(size)
        names = [tuple(path.unit_name(j) for j in support) for _, support in found]
        values = [value for value, _ in found]
        pools[size] = Pool(
            size, names, values, complete, wanted.within, wanted.n_best, search_ridge, stopped_after, interrupted
        )
    return pools


def _differs(model: Model, snapshot: Snapshot) -> bool:
    return set(model.units.tolist()) != set(snapshot.support)


def _for_model(proof: SizeProof, model: Model) -> SizeProof:
    """A proof with the objective of the finished model."""
    return replace(proof, objective=model.objective, lower_bound=min(proof.lower_bound, model.objective))


def prove_fit(
    method: Method, search: SearchRun, seconds: float | None, *, n_columns: int, size: int, size_was_chosen: bool
) -> None:
    """Prove the models of a search where the method or the shape of the table calls for it.

    ``n_columns`` may be chosen, and ``size`` is the answer. Where it was given, ``Exact`` has proved its models itself.
    """
    prove_narrow(search, method, n_columns)
    if size_was_chosen:
        bound_chosen(search, method, size, n_columns)
    if isinstance(method, Exact) and size_was_chosen and not search.stopped_early:
        assert search.history is not None
        prove(search.subset, search.history, relative_gap=method.relative_gap, time_limit=seconds)


def follow_search(run: SearchRun, search: SearchRun) -> None:
    """Fit again, with another ridge than that of the search, where a proof has put a better model in its place."""
    assert run.history is not None
    assert search.history is not None
    for size, model in search.history.best.items():
        refitted = run.history.best.get(size)  # None where columns depend on each other and the ridge is zero
        if size and refitted is not None and set(model.support) != set(refitted.support):
            run.history.best[size] = fitted(run.subset, model.support)


class ProvingMixin:
    """Questions to a fitted model about other models of its size."""

    path_: Path
    certificate_: Certificate = MissingMethod(CERTIFICATE)  # type: ignore[assignment]
    k_: int
    _data: Any
    _set_size: Any

    @shows_progress
    def certify(self, time_limit: float | None = 10.0) -> Certificate:
        """Lower bounds of the objective of every size on the path: how far each model can be from the best one.

        The tree of each size is searched until its model is proved to be best, or until the time is up. Where a better
        model turns up, it takes the place of the one on the path. For squared error of one output, with a ridge or with
        more rows than columns, and for other smooth losses with a ridge; elsewhere lower bounds are minus infinity, and
        ``reason`` says why. Where the ridge was chosen, the proof is about the objective that was searched: the one
        with ``search_ridge_``. The data of the fit are read once more, as by ``alternatives``.

        Parameters
        ----------
        time_limit : float or None, default=10.0
            Seconds, for all sizes together. None: as long as it takes, which may be for ever.

        Returns
        -------
        Certificate
            Kept as ``certificate_`` and in ``path_.certificate``; ``summary()``, tables and reports then say what is
            proved.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from pauca import SparseRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> certificate = SparseRegressor(k=5).fit(X, y).certify()
        >>> certificate.message(5)
        'Proved to be the best of all 252 subsets of 5 features.'
        >>> certificate.always_in[5]
        ['sex', 'bmi', 'bp', 's3', 's5']
        """
        seconds, data = ParameterChecks("certify").time_limit(time_limit), self._data("certify")
        phase("proving the models to be best")
        self.path_ = certify(data.problem, data.search_ridge, data.weights, self.path_, seconds)
        self._set_size(self.k_)
        return self.certificate_

    @shows_progress
    def pool(self, within: float | None = None, *, n_best: int | None = None, time_limit: float | None = 10.0) -> Pool:
        """Other models of the same size that are nearly as good: several good models instead of one.

        For squared error. The search is that of ``certify``, and has the same conditions; a ``ValueError`` says which
        of them does not hold. Models are compared by the objective that was searched, the one with ``search_ridge_``.
        The data of the fit are read once more, as by ``alternatives``.

        Parameters
        ----------
        within : float or None, default=None
            All models whose objective is above the best by no more than this share of it. None: 0.01, or no limit if
            ``n_best`` is given.
        n_best : int or None, default=None
            The best so many models. None: no limit.
        time_limit : float or None, default=10.0
            Seconds. If the time is up, ``complete`` is False.

        Returns
        -------
        Pool
            The models, the features they share, and how many models each feature is in.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from pauca import SparseRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> SparseRegressor(k=4).fit(X, y).pool(within=0.01).message
        '2 models of 4 features within 1 % of the best objective; there are no others.'
        """
        check = ParameterChecks("pool")
        if within is None and n_best is None:
            within = 0.01
        wanted = Wanted(
            None if within is None else check.number("within", within),
            None if n_best is None else check.count("n_best", n_best),
        )
        seconds, data = check.time_limit(time_limit), self._data("pool")
        if not self.k_:
            raise ValueError("pool() needs a model with features: the model of size 0 is the only one of its size.")
        return find_pools(data, self.path_, [self.k_], wanted, seconds)[self.k_]

    @shows_progress
    def best_subsets(self, n_best: int = 5, *, time_limit: float | None = 10.0) -> dict[int, Pool]:
        """The ``n_best`` best models of every size on the path, in one run.

        As ``regsubsets(nbest=)`` of R's leaps; conditions and objective are those of ``pool``.

        Parameters
        ----------
        n_best : int, default=5
        time_limit : float or None, default=10.0
            Seconds, for all sizes together. Where ``complete`` is False, there may be better models.

        Returns
        -------
        dict of int to Pool
            By size.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from pauca import SparseRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> pools = SparseRegressor(k=3).fit(X, y).best_subsets(n_best=2)
        >>> pools[3].supports
        [('bmi', 'bp', 's5'), ('bmi', 's1', 's5')]
        """
        check = ParameterChecks("best_subsets")
        wanted = Wanted(n_best=check.count("n_best", n_best))
        seconds, data = check.time_limit(time_limit), self._data("best_subsets")
        sizes = [size for size in self.path_.sizes if size]
        return find_pools(data, self.path_, sizes, wanted, seconds)
