"""Lower bounds for a fitted model: after every fit on a narrow table, and on request."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from pauca.methods import Exchange
from pauca.methods.proving import NoBoundError, Proving, candidates
from pauca.model import Model, Snapshot
from pauca.relaxations.proof import SizeProof
from pauca.results.certificate import Certificate
from pauca.results.path import Path
from pauca.results.pool import Pool
from pauca.search.driver import Method, interrupted_once
from pauca.search.history import History
from pauca.search.problem import LinearProblem, SearchRun
from pauca.subsets.base import Subset, is_lower
from pauca.subsets.least_squares import LeastSquaresSubset
from pauca.subsets.smooth import SmoothSubset
from pauca.threads import blas_threads

# A fit on at most this many columns proves its models.
NARROW = 40

# Nodes that such a fit spends on each size: up to ``FEW`` columns, and beyond. Of ten tables with 10 to 40 columns,
# nine are proved at every size of up to 30 columns, and the fit takes two to six times as long as without the proof.
FEW = 30
NODES_PER_SIZE = (600, 200)


def prove_narrow(run: SearchRun, method: Method) -> None:
    """After a fit on few columns with the default method: prove its models, and put better ones in their place.

    The number of nodes is fixed, and no clock is read: the same data give the same answer, and each size is searched by
    itself, so that it does not depend on how many are asked for.
    """
    subset, history = run.subset, run.history
    assert history is not None
    if method != Exchange() or run.stopped_early or not isinstance(subset, LeastSquaresSubset):
        return
    if subset.null_value <= subset.perfect_below or not 0 < len(candidates(subset)) <= NARROW:
        return
    few = len(candidates(subset)) <= FEW
    prove(subset, history, most_nodes=NODES_PER_SIZE[0 if few else 1], compiled=False)
    history.no_proof = None  # nobody asked for one


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
    deadline = np.inf if time_limit is None else time.monotonic() + time_limit
    try:
        proving = Proving(subset, history.best)
    except NoBoundError as error:
        history.no_proof = str(error)
        return
    _watch(proving.grow(relative_gap, most_nodes, compiled=compiled), deadline)
    for size in proving.sizes:
        history.proofs[size] = proof = proving.proof(size)
        if is_lower(proof.objective, history.best[size].value, subset.negligible):
            history.best[size] = fitted(subset, proving.support(size))


def _watch(growing: Iterator[None], deadline: float) -> None:
    """Let trees grow until they are done, the time is up, or Ctrl-C."""
    try:
        with blas_threads.single():
            for _ in growing:
                if time.monotonic() >= deadline:
                    break
    except KeyboardInterrupt:
        interrupted_once()


def fitted(subset: Subset, support: tuple[int, ...]) -> Snapshot:
    """The model of some units."""
    model = subset.restarted()
    for unit in support:
        if unit not in model.support:
            model.add(unit)
    return model.snapshot()


def certificate_of(
    history: History, run: SearchRun, models: Mapping[int, Model], names: Sequence[str] | np.ndarray | None
) -> Certificate | None:
    """The certificate of a search for its finished ``models``; None where no bounds were asked for."""
    if not history.proofs and history.no_proof is None:
        return None
    subset = run.subset
    chosen = candidates(subset) if isinstance(subset, LeastSquaresSubset | SmoothSubset) else np.zeros(0)
    limits = subset.limits
    limited = limits.budget is not None or limits.kind is not None
    proofs = {size: _for_model(proof, models[size]) for size, proof in history.proofs.items()}
    return Certificate(proofs, len(chosen), len(limits.always), limited, names, history.no_proof)


def certify(problem: LinearProblem, weights: np.ndarray, path: Path, time_limit: float | None) -> Path:
    """A path with a certificate, and with the better models that were found for it."""
    run = problem.begin(weights)
    subset = run.subset
    history = run.history = History(subset, None)
    for model in path:
        if model.size:
            history.best[model.size] = fitted(subset, tuple(model.units.tolist()))
    prove(subset, history, time_limit=time_limit)
    better = {size: model for size, model in history.best.items() if size and _differs(path[size], model)}
    finished = dict(zip(better, subset.finish(list(better.values()), 0), strict=True)) if better else {}
    models = {**path.models, **finished}
    return replace(path, models=models, certificate=certificate_of(history, run, models, path.column_names))


def find_pool(
    problem: LinearProblem, weights: np.ndarray, path: Path, size: int, within: float, seconds: float | None
) -> Pool:
    """All models of a size within a share of the best objective, as far as the time allows."""
    subset = problem.begin(weights).subset
    deadline = np.inf if seconds is None else time.monotonic() + seconds
    proving = Proving(subset, {size: fitted(subset, tuple(path[size].units.tolist()))}, within)
    _watch(proving.grow(-within), deadline)
    models, complete = proving.collected(size)
    names = [tuple(path.unit_name(j) for j in support) for _, support in models]
    return Pool(size, within, names, [value for value, _ in models], complete)


def _differs(model: Model, snapshot: Snapshot) -> bool:
    return set(model.units.tolist()) != set(snapshot.support)


def _for_model(proof: SizeProof, model: Model) -> SizeProof:
    """A proof with the objective that users see, which may differ from that of the search by rounding."""
    return replace(proof, objective=model.objective, lower_bound=min(proof.lower_bound, model.objective))
