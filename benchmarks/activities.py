"""Activities in a home, as sequences of binary sensors: made up, and two public recordings."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np

MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
SLICE = timedelta(minutes=1)
IDLE = 0

# How often each of the fourteen activities was recorded, in thousands of steps: Liu, Fujimaki and Ye (2014), Table 1.
TABLE_1 = np.array([81, 66, 64, 25, 6.4, 5.2, 3.9, 3.4, 2.5, 1.6, 1.5, 1.4, 0.5, 6.5])


class Home(NamedTuple):
    """Sequences, one for each day or session."""

    name: str
    X: list[np.ndarray]
    y: list[np.ndarray]

    def days(self, chosen: np.ndarray) -> Home:
        """Some of the sequences."""
        return Home(self.name, [self.X[i] for i in chosen], [self.y[i] for i in chosen])


def made_up(n_sequences: int, length: int, *, n_sensors: int = 40, seed: int = 0) -> Home:
    """Activities with the frequencies of the paper's Table 1, and sensors that fire now and then where one is.

    An activity lasts for about thirty steps. Each sensor covers a few activities, with a rate for each of them, and
    fires by mistake at times.
    """
    rng = np.random.default_rng(seed)
    shares = TABLE_1 / TABLE_1.sum()
    n = len(shares)
    covers = rng.random((n, n_sensors)) < 0.12
    rates = np.where(covers, rng.uniform(0.05, 0.4, (n, n_sensors)), rng.uniform(0.0, 0.03, (n, n_sensors)))
    X, y = [], []
    for _ in range(n_sequences):
        changes = rng.random(length) < 0.03
        changes[0] = True
        labels = rng.choice(n, size=int(changes.sum()), p=shares)[np.cumsum(changes) - 1]
        X.append(rng.random((length, n_sensors)) < rates[labels])
        y.append(labels)
    return Home("made up", X, y)


def house_d(folder: Path, *, unlabelled: bool = False) -> Home:
    """House D of the MIT PlaceLab: 16 days, what 72 sensors saw, 17 activities.

    Five minutes in six have no label. With them, a model that says so of every minute is hard to beat; without them, a
    day is what is left of it.
    """
    home = _home("MIT house D", folder / "sequence/mit/houseD-ss.txt", folder / "sequence/mit/houseD-as.txt")
    if unlabelled:
        return home._replace(name="MIT house D, all minutes")
    kept = [labels != IDLE for labels in home.y]
    return Home(
        home.name,
        [table[some] for table, some in zip(home.X, kept, strict=True) if some.any()],
        [labels[some] for labels, some in zip(home.y, kept, strict=True) if some.any()],
    )


def kasteren(folder: Path) -> Home:
    """Van Kasteren's home of 2008: 28 days, 14 sensors, seven activities."""
    files = folder / "sequence/kasteren2008"
    return _home("van Kasteren 2008", files / "kasterenSenseData.txt", files / "kasterenActData.txt")


def _home(name: str, sensors: Path, activities: Path) -> Home:
    """One sequence for each day, in minutes; a sensor is on from when it fires until another does.

    Van Kasteren et al. (2008) found this "last fired" form of sensors the most telling.
    """
    events, labels = _intervals(sensors), _intervals(activities)
    days = sorted({start.date() for start, _, _ in labels})
    known = sorted({which for _, _, which in events})
    X, y = [], []
    for day in days:
        begin = datetime.combine(day, datetime.min.time())
        table, found = np.zeros((1440, len(known)), dtype=bool), np.zeros(1440, dtype=int)
        fired = sorted(_minute(when, begin) for when, _, which in events if when.date() == day)
        order = sorted((when, known.index(which)) for when, _, which in events if when.date() == day)
        for (_, sensor), minute, until in zip(order, fired, [*fired[1:], 1439], strict=True):
            table[minute : until + 1, sensor] = True
        for start, end, which in labels:
            if start < begin + timedelta(days=1) and end > begin:
                found[max(0, _minute(start, begin)) : min(1440, _minute(end, begin) + 1)] = which
        if order:
            X.append(table)
            y.append(found)
    return Home(name, X, y)


def _intervals(file: Path) -> list[tuple[datetime, datetime, int]]:
    """Start, end and number of every line that holds an interval."""
    found = []
    for line in file.read_text(errors="replace").splitlines():
        fields = line.split("\t")
        if len(fields) >= 3 and fields[0][:2].isdigit() and fields[2].strip().isdigit():
            found.append((_time(fields[0]), _time(fields[1]), int(fields[2])))
    return found


def _time(text: str) -> datetime:
    """Such as ``25-Feb-2008 00:22:46``, whatever language the machine speaks."""
    day, clock = text.split()
    number, month, year = day.split("-")
    hour, minute, second = map(int, clock.split(":"))
    return datetime(int(year), MONTHS.index(month) + 1, int(number), hour, minute, second)


def _minute(when: datetime, begin: datetime) -> int:
    return int((when - begin) / SLICE)
