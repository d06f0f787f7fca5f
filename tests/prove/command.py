"""The command line: a whole run, or some cases of one claim in this process."""

import argparse
import json
import os
import resource
import signal
import time
import traceback
import warnings
from pathlib import Path

from prove import page, running
from prove.claims import CLAIMS
from prove.outcome import Outcome
from prove.state import ROOT, State

PROCESSES = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


def parsed(arguments):
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.prove", description=__doc__)
    parser.add_argument("claims", nargs="*", help=f"some of {', '.join(CLAIMS)}; all by default")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="a share of the cases, such as 0.1"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--minutes", type=float, help="start nothing after so many minutes")
    parser.add_argument("--fresh", action="store_true", help="forget the results of earlier runs")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "prove")
    parser.add_argument("--page", type=Path, help="a copy of the table, such as docs/proof.md")
    parser.add_argument("--part", help="the part of a claim that --seed is of")
    parser.add_argument("--seed", type=int, help="run these cases only, in this process")
    parser.add_argument("--count", type=int, help="of cases from --seed on")
    parser.add_argument("--result", type=Path, help="where --seed writes its result as JSON")
    found = parser.parse_args(arguments)
    if wrong := set(found.claims) - set(CLAIMS):
        parser.error(f"no claim {', '.join(sorted(wrong))}; there are {', '.join(CLAIMS)}")
    if found.seed is not None and len(found.claims) != 1:
        parser.error("--seed is of one claim; name it")
    return found


def main(arguments=None):
    """Run what the arguments ask for; the exit code, 0 if nothing disagreed and all was run."""
    options = parsed(arguments)
    if options.seed is not None:
        return _some_cases(options)
    names = options.claims or list(CLAIMS)
    claims = [CLAIMS[name].scaled(options.scale) for name in names]
    path = options.folder / "state.json"
    if options.fresh:
        path.unlink(missing_ok=True)
    state = State(path)
    deadline = None if options.minutes is None else 60 * options.minutes
    for number in (signal.SIGINT, signal.SIGTERM):  # which shells ignore in the background
        signal.signal(number, signal.default_int_handler)
    print(f"python -m tests.prove: results are kept in {path}", flush=True)
    say = lambda text: print(text, flush=True)  # noqa: E731
    whole = running.run(claims, state, options.jobs, deadline, say)
    text, failed = page.written(claims, state)
    for there in (options.folder / "proof.md", options.page):
        if there is not None:
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_text(text)
    print(text)
    return 0 if whole and not failed else 1


def _cpu(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def _some_cases(options):
    claim = CLAIMS[options.claims[0]]
    part = claim.part(options.part)
    count = options.count or (part.size if claim.together else 1)
    warnings.simplefilter("ignore")
    began = time.monotonic()
    try:
        outcome = claim.run(part, options.seed, count)
    except Exception:
        outcome = Outcome(failures=[{"what": traceback.format_exc()[-6000:]}])
    outcome.seconds, outcome.cpu = time.monotonic() - began, sum(map(_cpu, PROCESSES))
    for failure in outcome.failures:
        failure.setdefault("repeat", running.Chunk(claim, part, (options.seed, count)).command)
    if options.result:
        there = options.result.with_suffix(".part")
        there.write_text(json.dumps(outcome.values()))
        os.replace(there, options.result)
    else:
        print(json.dumps(outcome.values(), indent=1))
    return 1 if outcome.failures else 0
