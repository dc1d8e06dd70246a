"""What a model file may name: kinds of estimators, and the losses and methods among their settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pauca.export.files import ModelFileError
from pauca.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES, Multinomial
from pauca.methods import METHODS

C = TypeVar("C", bound=type)


@dataclass(frozen=True)
class Kind:
    """An estimator that can be saved, or a class of paths, which has none of what follows.

    An estimator has ``path_`` and ``k_``, and ``_choose(size)`` sets what follows from them. ``labels`` are fitted
    attributes that hold an array of labels, such as ``classes_``; ``numbers`` those that are a finite number each,
    which the path does not tell. After loading, ``_restored()`` sets what else is fitted, and raises ValueError or
    TypeError if parts of the file do not go together.
    """

    name: str
    estimator: type
    labels: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()


KINDS: dict[str, Kind] = {}
"""By name; estimators register themselves when they are imported, and ``pauca.loading`` imports them all."""

PARTS: dict[str, type] = {
    part.__name__: part
    for part in (*REGRESSION_LOSSES.values(), *CLASSIFICATION_LOSSES.values(), Multinomial, *METHODS.values())
}


def register_kind(name: str, labels: tuple[str, ...] = (), numbers: tuple[str, ...] = ()) -> Callable[[C], C]:
    """A decorator for estimators: models of this class are saved and loaded under ``name``."""

    def register(estimator: C) -> C:
        KINDS[name] = Kind(name, estimator, labels, numbers)
        return estimator

    return register


def register_part(part: C) -> C:
    """Let a loss or method of your own be named in model files, by the name of its class.

    A model file holds no code, so the class must be made known wherever the file is loaded. Its options must be
    attributes of the same names as the arguments of its constructor, and plain: numbers, strings, lists, tuples, dicts.

    Parameters
    ----------
    part : class
        A subclass of ``pauca.losses.Loss``, or a method.

    Returns
    -------
    class
        The same class, so that this can be written above it as a decorator.

    Examples
    --------
    >>> from pauca.export import register_part
    >>> from pauca.losses import Huber
    >>> @register_part
    ... class Biweight(Huber):
    ...     '''A loss of one's own.'''
    """
    known = PARTS.get(part.__name__)
    # A cell of a notebook that is run again makes the same class once more.
    if known is not None and (known.__module__, known.__qualname__) != (part.__module__, part.__qualname__):
        raise ValueError(f"The name {part.__name__!r} is taken by {known.__module__}.{known.__qualname__}.")
    PARTS[part.__name__] = part
    return part


def kind_of(estimator: Any) -> Kind:
    """The kind an estimator is of."""
    for kind in KINDS.values():
        if kind.estimator is type(estimator):
            return kind
    raise ModelFileError(
        f"{type(estimator).__name__} is not a kind of model that can be saved; known are {', '.join(sorted(KINDS))}."
    )


def is_part(value: Any) -> bool:
    """Whether something is an object of a class that files may name."""
    return PARTS.get(type(value).__name__) is type(value)
