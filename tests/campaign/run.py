"""The campaign: random trials by seed, in a process that may hang or crash without harm, with results in a file.

    python tests/campaign/run.py --seeds 0:30000                 # cases: an estimator, parameters and data
    python tests/campaign/run.py --part files --seeds 0:20000    # model files, changed at random
    python tests/campaign/run.py --part invariances --seeds 0:5000   # what must not change a model
    python tests/campaign/run.py --part kills --seeds 0:500      # processes killed while they write
    python tests/campaign/run.py --part signals --seeds 0:500    # Ctrl-C at random times
    python tests/campaign/run.py --seed 1234                     # one case again, and a smaller one with the same find
    python tests/campaign/run.py --hours 1                       # all parts, one after the other

Blocks of seeds that the file has are not run again.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import itertools
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections import Counter, deque

import interruptions
import invariances
import mutated_files
from cases import FAMILIES, draw_case
from smaller import program, smaller_case
from verdicts import judged

BLOCK = 100

SHARES = {"files": 0.1, "invariances": 0.1, "kills": 0.05, "signals": 0.1, "cases": 0.65}
"""What each part gets of the time."""

HANGS_AFTER = 60.0
"""Seconds of processor time."""

WAITS_AT_MOST = 1200.0
"""Seconds by the clock, for a process that does not compute at all; others may need the machine."""


def judged_case(seed):
    """Run one case: what came of it, and what was found."""
    verdict = judged(draw_case(seed))
    return verdict.outcome, verdict.finds


PARTS = {
    "cases": judged_case,
    "files": mutated_files.trial,
    "invariances": invariances.trial,
    "kills": interruptions.kill,
    "signals": interruptions.interrupt,
}


def one_of_each():
    """Fit one case of each family: what is imported and compiled on the way is then there in all processes."""
    seen, seed = set(), 0
    while len(seen) < len(FAMILIES):
        case = draw_case(seed)
        # Threads of other libraries do not outlive a fork: nothing that starts any.
        tame = case.form == "array" and "n_jobs" not in case.parameters
        if tame and case.family not in seen and judged(case).outcome == "fitted":
            seen.add(case.family)
        seed += 1


PREPARED = {
    "cases": one_of_each,
    "files": mutated_files.model_files,
    "invariances": int,
    "kills": interruptions.models,
    "signals": one_of_each,
}


def work(part, seeds, connection, stacks):
    """Run cases and send what came of each; where it stands is written to a file on a signal."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):
        os.nice(int(os.environ.get("CAMPAIGN_NICE", "15")))
    with open(stacks, "w") as file:
        faulthandler.register(signal.SIGUSR1, file=file, all_threads=False)
        for seed in seeds:
            connection.send((seed, None))
            began = time.process_time()
            try:
                outcome, finds = PARTS[part](seed)
            except Exception as error:  # of the trial itself
                outcome, finds = "no verdict", [("judge", f"{type(error).__name__}: {error}"[:300])]
            connection.send((seed, (outcome, finds, time.process_time() - began)))


def results(part, seeds):
    """What came of every seed; a case that hangs or kills its process is left, and the others go on."""
    left = deque(seeds)
    PREPARED[part]()  # what all processes share
    context = multiprocessing.get_context("fork")
    while left:
        receiver, sender = context.Pipe(duplex=False)
        with tempfile.NamedTemporaryFile("r") as stacks:
            worker = context.Process(target=work, args=(part, list(left), sender, stacks.name))
            worker.start()
            sender.close()
            current, find = left[0], None
            try:
                while left:
                    if not _arrives(receiver, worker):
                        os.kill(worker.pid, signal.SIGUSR1)
                        time.sleep(0.5)
                        find = ("hang", _place(stacks.read()))
                        break
                    current, result = receiver.recv()
                    if result is not None:
                        left.popleft()
                        yield current, *result
            except EOFError:
                find = ("crash", "the process ended")
            finally:
                worker.kill()
                worker.join()
        if find is not None:
            left.popleft()
            yield current, "stopped", [find], HANGS_AFTER


def _arrives(receiver, worker):
    """Whether something comes before the worker has computed, or waited, for too long."""
    before, began = _processor_time(worker.pid), time.monotonic()
    while not receiver.poll(5.0):
        if _processor_time(worker.pid) - before > HANGS_AFTER or time.monotonic() - began > WAITS_AT_MOST:
            return False
    return True


def _processor_time(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except OSError:  # no such system, or the process has ended
        return time.monotonic()


def _place(stack):
    lines = [line.strip() for line in stack.splitlines() if "pauca" in line]
    return " < ".join(line.split("pauca/")[-1].replace('", line ', ":") for line in lines[:6])


def finished(part, path):
    """Blocks of seeds that a file has whole."""
    if not os.path.exists(path):
        return set()
    with open(path) as file:
        entries = [json.loads(line) for line in file]
    return {entry["block"] for entry in entries if "block" in entry and entry["part"] == part}


def campaign(part, first, last, path, until=float("inf")):
    """Run the seeds from ``first`` up to ``last`` in blocks; returns how many trials, and finds by their kind."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    done, finds, cases, began = finished(part, path), Counter(), 0, time.monotonic()
    starts = [start for start in range(first, last, BLOCK) if start not in done]
    trials = results(part, (seed for start in starts for seed in range(start, min(start + BLOCK, last))))
    with contextlib.closing(trials), open(path, "a") as file:
        for start in starts:
            if time.monotonic() > until:
                break
            outcomes, seconds = Counter(), 0.0
            for seed, outcome, found, took in itertools.islice(trials, min(BLOCK, last - start)):
                outcomes[outcome] += 1
                seconds += took
                cases += 1
                for what, text in found:
                    finds[what] += 1
                    entry = {"part": part, "seed": seed, "find": what, "text": text}
                    if part == "cases":
                        entry["case"] = draw_case(seed).text()
                    file.write(json.dumps(entry) + "\n")
            file.write(
                json.dumps({"part": part, "block": start, "outcomes": outcomes, "seconds": round(seconds, 2)}) + "\n"
            )
            file.flush()
            elapsed = time.monotonic() - began
            shown = ", ".join(f"{count} {what}" for what, count in finds.most_common()) or "no finds"
            print(f"{part}, seeds to {start + BLOCK}: {cases} in {elapsed:.0f} s; {shown}", flush=True)
    return cases, finds


def again(seed):
    """Run one case, and a smaller one with the same find."""
    case = draw_case(seed)
    print(case.text())
    verdict = judged(case)
    print(f"{verdict.outcome} in {verdict.seconds:.2f} s {verdict.message}")
    for what, text in verdict.finds:
        print(f"{what}: {text}")
    if verdict.finds:
        print("\nA smaller case:\n")
        print(program(smaller_case(case, verdict.finds[0][0])))
    return int(bool(verdict.finds))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, default="cases")
    parser.add_argument("--seeds", default="0:1000", help="the range FIRST:LAST")
    parser.add_argument("--seed", type=int, help="one case again")
    parser.add_argument("--hours", type=float, help="all parts from the first seed on, for so long")
    parser.add_argument("--out", default="campaign_output/results.jsonl")
    options = parser.parse_args(argv)
    if options.seed is not None:
        return again(options.seed)
    first, last = map(int, options.seeds.split(":"))
    if options.hours is None:
        return int(bool(campaign(options.part, first, last, options.out)[1]))
    found = 0
    for part, share in SHARES.items():
        until = time.monotonic() + share * 3600 * options.hours
        found += sum(campaign(part, first, first + 10**6, options.out, until)[1].values())
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
