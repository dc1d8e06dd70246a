"""Times and events as users give them, checked and brought into one form."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from pauca.estimators.row_values import check_have_an_order
from pauca.survival.risk_sets import SURVIVAL
from pauca.warnings import PaucaWarning
from pauca.wording import closest_name, quoted

FORMS = (
    "y must be a structured array with a field of booleans (the event was seen) and one of numbers (the time), as "
    'scikit-survival makes them, or a frame whose columns are named in the call: fit(X, frame, event="died", '
    'time="days"), or fit(frame, event="died", time="days") where X is in it too'
)


def survival_target(y: Any, event: str | None = None, time: str | None = None) -> np.ndarray:
    """The target of every row, from a structured array or from two columns of a frame."""
    if y is None:
        raise ValueError(f"SparseCox requires y to be passed, but the target y is None. {FORMS}.")
    if event is not None or time is not None:
        events, times = _columns(y, event, time)
    else:
        events, times = _fields(y)
    target = np.empty(len(times), dtype=SURVIVAL)
    target["event"], target["time"] = _checked_events(events, event), _checked_times(times, "y")
    target["entry"], target["stratum"] = -np.inf, 0
    return target


def split_frame(X: Any, y: Any, event: str | None, time: str | None) -> tuple[Any, Any]:
    """X and y, where both may be in one frame: y is then the frame itself, and X its columns but event and time."""
    if event is None or time is None or not hasattr(X, "columns"):
        return X, y
    features = [name for name in X.columns if name not in (event, time)]
    outcome = [name for name in X.columns if name in (event, time)]
    if y is None or not outcome:
        return (X[features], X) if y is None else (X, y)
    if y is not X:
        warnings.warn(
            f"X has columns that are named as the target, and they were left out: {quoted(outcome)}.",
            PaucaWarning,
            stacklevel=3,
        )
    return X[features], y


def _fields(y: Any) -> tuple[np.ndarray, np.ndarray]:
    names = getattr(getattr(y, "dtype", None), "names", None)
    if getattr(y, "dtype", None) == SURVIVAL:  # as scorers are given it
        return y["event"], y["time"]
    if names is None or getattr(y, "ndim", 1) != 1:
        raise ValueError(f"{FORMS}; got {type(y).__name__}.")
    flags = [name for name in names if y.dtype[name].kind == "b"]
    numbers = [name for name in names if y.dtype[name].kind in "iuf"]
    if len(names) != 2 or len(flags) != 1 or len(numbers) != 1:
        raise ValueError(f"{FORMS}; its fields are {', '.join(f'{name!r} ({y.dtype[name]})' for name in names)}.")
    return np.asarray(y[flags[0]]), np.asarray(y[numbers[0]])


def _columns(y: Any, event: str | None, time: str | None) -> tuple[np.ndarray, np.ndarray]:
    if event is None or time is None:
        raise ValueError("Name both columns: event and time.")
    if not hasattr(y, "columns") and not getattr(getattr(y, "dtype", None), "names", None):
        raise ValueError(f"event={event!r} and time={time!r} name columns, but y is {type(y).__name__} without names.")
    known = list(y.columns) if hasattr(y, "columns") else list(y.dtype.names)
    for role, name in (("event", event), ("time", time)):
        if name not in known:
            near = closest_name(str(name), map(str, known))
            hint = f"did you mean {near!r}?" if near else f"there are {quoted(list(map(str, known)))}."
            raise ValueError(f"{role}={name!r} is not a column of the frame; {hint}")
    return np.asarray(y[event]), np.asarray(y[time])


def _checked_events(events: np.ndarray, name: str | None) -> np.ndarray:
    if events.dtype.kind == "b":
        return events
    try:
        numbers = events.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(_unclear_events(events, name)) from None
    if np.isnan(numbers).any():
        raise ValueError(f"The event of row {int(np.argmax(np.isnan(numbers)))} is missing.")
    if not np.all((numbers == 0) | (numbers == 1)):
        raise ValueError(_unclear_events(numbers, name))
    return np.asarray(numbers == 1)


def _unclear_events(values: np.ndarray, name: str | None) -> str:
    """What to do about events that are coded otherwise, such as 0, 1 and 2, or 1 and 2."""
    last = values.max() if values.dtype.kind == "f" else str(values[0])
    shown = f"{last:g}" if isinstance(last, float) else repr(last)
    if name is None:
        return f"The events must be true or false, or 1 and 0; got {shown}."
    return (
        f"The events must be true or false, or 1 and 0; the column {name!r} holds {shown}. Make it so: if {shown} is "
        f"the event, frame[{name!r}] = frame[{name!r}] == {shown}."
    )


def _checked_times(times: Any, what: str) -> np.ndarray:
    if np.asarray(times).dtype.kind == "c":
        raise ValueError(f"The times of {what} must be numbers.")
    if np.asarray(times).dtype.kind in "mM":
        raise ValueError(
            f"The times of {what} are dates or differences of dates: give numbers, such as days from the start, by "
            "(end - start).dt.total_seconds() / 86400."
        )
    try:
        numbers = np.asarray(times).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"The times of {what} must be numbers.") from error
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        raise ValueError(f"The times of {what} must be finite numbers; that of row {bad[0]} is {numbers[bad[0]]}.")
    if np.any(numbers < 0):
        row = int(np.argmax(numbers < 0))
        raise ValueError(f"The times of {what} must not be negative; that of row {row} is {numbers[row]:g}.")
    return numbers


def with_entry(target: np.ndarray, entry: Any) -> np.ndarray:
    """The target of rows that came under observation late."""
    if entry is None:
        return target
    numbers = _checked_times(entry, "entry")
    if numbers.shape != target.shape:
        raise ValueError(f"entry must hold a time for every row: its shape is {numbers.shape}, not {target.shape}.")
    late = np.flatnonzero(numbers >= target["time"])
    if len(late):
        row = int(late[0])
        raise ValueError(
            f"Every row must enter before its time; row {row} enters at {numbers[row]:g} and ends at "
            f"{target['time'][row]:g}."
        )
    found = target.copy()
    # Those there from the start need no subtraction.
    found["entry"] = np.where(numbers < target["time"].min(), -np.inf, numbers)
    return found


def with_strata(target: np.ndarray, strata: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """The target with strata numbered, and their labels."""
    if strata is None:
        return target, None
    values = np.asarray(strata)
    if values.shape != target.shape:
        raise ValueError(f"strata must hold a label for every row: its shape is {values.shape}, not {target.shape}.")
    missing = np.array([_is_missing(label) for label in values.tolist()])
    if missing.any():
        raise ValueError(
            f"The stratum of row {int(np.argmax(missing))} is missing: give these rows a label, or leave them out."
        )
    check_have_an_order(values, "strata")
    found = target.copy()
    labels, found["stratum"] = np.unique(values, return_inverse=True)
    return found, labels


def _is_missing(label: Any) -> bool:
    return label is None or (not isinstance(label, str) and str(label) in {"nan", "<NA>", "NaT"})


def checked_grid(times: Any) -> np.ndarray:
    """Times at which curves are wanted: finite numbers, of any sign."""
    try:
        found = np.atleast_1d(np.asarray(times, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise ValueError(f"times must be numbers; got {times!r}.") from error
    if found.ndim > 1 or not np.all(np.isfinite(found)):
        raise ValueError("times must be a list of finite numbers.")
    return found


def check_events(target: np.ndarray, weights: np.ndarray) -> None:
    """Raise an error where nothing can be learned: no event, or none while somebody else is at risk."""
    if len(target) < 2:
        raise ValueError(f"SparseCox compares rows with each other and needs at least two: n_samples={len(target)}.")
    seen = target["event"] & (weights > 0)
    if not seen.any():
        raise ValueError("No row that has weight has an event, so there is nothing to learn from.")
    for stratum in np.unique(target["stratum"][seen]):
        here = (target["stratum"] == stratum) & (weights > 0)
        first = target["time"][here & seen].min()
        at_risk = here & (target["time"] >= first) & (target["entry"] < first)
        if np.any(at_risk & ~(seen & (target["time"] == first))):
            return
    raise ValueError(
        "Every event happens when nobody else is at risk any more, as if all were at the last time: there is no row to "
        "compare with."
    )
