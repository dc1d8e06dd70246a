"""The conditional random field of Liu, Fujimaki and Ye (2014) as it is printed."""

from __future__ import annotations

from typing import Any

from pauca.crf.estimator import SparseTagger
from pauca.crf.fit import WEIGHT
from pauca.methods import FoBa, Forward


def published_tagger(k: int, *, rule: str = "gradient", backward: bool = True, **options: Any) -> SparseTagger:
    """A tagger with the settings of Liu, Fujimaki and Ye (2014), sections 5 and D.2, to the letter.

    Single weights are selected, and every one is scored; transitions are free, and there are no biases; no ridge;
    columns as they are; a removal is priced before the others are refitted. The default of ``SparseTagger`` differs in
    all of that: whole sensors, biases, ridges of a standard normal prior, columns divided by their scale, removals
    priced after refitting, and loose refits on the way. One thing is not in the paper: a ridge of 1e-6 on transitions,
    without which those that never occur go to minus infinity and refits take very long; ``ridge_transitions=0.0``
    leaves it out.

    Parameters
    ----------
    k : int
        Number of weights. ``support_`` has the sensors in use: those with any weight.
    rule : {"gradient", "objective"}, default="gradient"
        FoBa-gdt or FoBa-obj.
    backward : bool, default=True
        Whether weights are removed too; False is the paper's Forward-gdt or Forward-obj.
    **options
        Further parameters of ``SparseTagger``, which may also replace those above.

    Returns
    -------
    SparseTagger
        Not fitted yet.

    Examples
    --------
    >>> from pauca.crf import published_tagger
    >>> published_tagger(20).unit
    'weight'
    """
    method = FoBa(rule=rule, removal="zero", shortlist=None) if backward else Forward(rule=rule, shortlist=None)
    printed = {"unit": WEIGHT, "method": method, "ridge": 0.0, "ridge_transitions": 1e-6}
    flags = {"fit_biases": False, "standardize": False, "exact_refits": True}
    return SparseTagger(k, **(printed | flags | options))
