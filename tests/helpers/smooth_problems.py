"""Small problems for every loss."""

from functools import cache

from judges import (
    LOSSES,
    correlated,
    refit,
)

LAWFUL = ["log_loss", "multinomial", "poisson", "huber", "squared, 2 outputs", "absolute_error", "hinge"]


@cache
def problem(name, seed=0, n=60, d=7, rho=0.7):
    return correlated(LOSSES[name], n, d, rho, seed)


def as_judged(name, X, y, support, **options):
    kind = LOSSES[name]
    return refit(kind, X, y, support, loss=kind.tuned(y, options.get("weights"))[0], **options)[0]
