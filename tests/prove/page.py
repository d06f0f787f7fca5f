"""The table of a run, in Markdown: a page of the site."""

import platform
import subprocess
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version

from prove.outcome import Outcome
from prove.state import LIBRARY, ROOT, key

HEAD = """# Proof anyone can run

`make prove` tries to refute what the library claims, with random cases and with judges that share
no code with it. On two cores that do nothing else it takes a little more than an hour. It shows how
far it is, and goes on after an interrupt. It ends with this table, and with an error if anything
disagreed or was not run. Judges that are not installed are named as missing;
`.venv/bin/pip install -e '.[dev,prove]'` installs them.

Each disagreement is printed with the case and a command that repeats it, such as
`python -m tests.prove maps --part random --seed 1234`. `--scale 0.1` runs a tenth of the cases.

"""
JUDGES = """## The judges

* *The document's reading*: each system's document as loops over single elements, in plain Python.
* *The array program* and *the gather*: the two ways in which the library itself moves data, on the
  host; one layout in 25 is compiled by JAX too. Padding holds NaN or a number unlike all others.
* *isl*: whether the index map is injective; its image, inverse and number of positions.
* *MLIR*: how a map is printed, composed, and folded at single indices.
* *XLA*: how a tiled layout is printed; the sizes of arrays in it, and the bytes of those that a CPU
  can hold.
* *TVM*: `IndexMap.non_surjective_inverse`, the inverse and the predicate of the padding.
* *IREE*: `linalg.pack` and `linalg.unpack`, compiled and run, for cores and then for tiles.
* *torch*: DTensor's rule of the part of a dim that each device holds.
* *CuTe*: positions by strides, and by dividing a tensor into shards and tiles.
* *einops*: the same data by one `rearrange`, for layouts without padding.
* *JAX, on one device*: the same program or harness on plain arrays.
* *itself, with other caches* and *another process*: the reports, and the lowered programs as text.
* *atheris*: inputs that reach new code of a reader, from texts that it reads.
"""
DECIDED = """## Where judges differ

What looked like a disagreement so far was one of these, and is no fault of either side:

* MLIR's text of a map is not always what MLIR prints after reading it again: sums are simplified
  once more. Both texts are compared.
* TVM finds no inverse of maps with gaps, offsets or reversed dims; it is asked about the others.
  Its predicate is about the box that the map reaches; the layout has padding outside of it, too.
* JAX's `Layout` has no text for XLA's combined dims (`*`); such layouts are only printed by XLA.
* XLA rounds `tanh(9)` to 1.0 in one program and to 0.99999994 in another one. Random programs jump
  (`floor`, `>`, casts to integers) only at values that are met rarely, and never on bfloat16.
* JAX's primitive `cholesky` leaves in the upper triangle what LAPACK leaves there; only the lower
  one is compared. `jax.lax.linalg.cholesky` sets it to 0.
* Eigenvectors, singular vectors and the factors of `qr` are unique up to signs: no harness of these
  primitives is compared.
* A sort that need not be stable may order equal keys in any way: no harness of one that sorts other
  operands by keys is compared.
"""
# What is imported under another name than it is installed under, or is of interest besides.
PACKAGES = (
    *(
        "jax",
        "jaxlib",
        "numpy",
        "hypothesis",
        "islpy",
        "einops",
        "apache-tvm",
        "iree-base-compiler",
    ),
    *("torch", "nvidia-cutlass", "atheris"),
)


def written(claims, state):
    """The page of what has been run, and how many disagreements there are."""
    found = {claim.name: _of_claim(claim, state) for claim in claims}
    failed = sum(len(_total(parts).failures) for parts in found.values())
    lines = ["| claim | cases | judged by | disagreements | again |", "|---|--:|---|--:|---|"]
    lines += [_row(claim, found[claim.name]) for claim in claims]
    if any(ran.left for parts in found.values() for ran in parts.values()):
        lines = ["**Not all cases have been run.**", "", *lines]
    table, remarks = "\n".join(lines), "\n".join(_remarks(claims, state, found))
    return f"{HEAD}{table}\n\n{JUDGES}\n{DECIDED}\n{remarks}\n", failed


@dataclass
class Ran:
    """What has been run of a part: the sum of its outcomes, and the chunks with and without one."""

    outcome: Outcome
    done: int = 0
    left: int = 0


def _of_claim(claim, state):
    """What has been run of each part, by name."""
    parts = {}
    for part in claim.parts:
        ran = parts[part.name] = Ran(Outcome())
        for span in part.chunks:
            outcome = state.outcome(claim.name, part.name, span)
            ran.done += outcome is not None
            ran.left += outcome is None
            ran.outcome.add(outcome or Outcome())
    return parts


def _total(parts):
    total = Outcome()
    for ran in parts.values():
        total.add(ran.outcome)
    return total


def _row(claim, parts):
    total, left = _total(parts), sum(ran.left for ran in parts.values())
    judges = "; ".join(f"{name}: {count:,}" for name, count in total.judged.items() if count)
    missing = "".join(f"; {name}: not installed" for name in sorted(total.missing))
    count = sum(part.count for part in claim.parts)
    cases = f"{total.cases:,} {claim.unit}" + (f" so far, of {count:,}" if left else "")
    return (
        f"| {claim.says} | {cases} | {judges}{missing} | {len(total.failures)} "
        f"| `make prove PROVE_ARGS={claim.name}` |"
    )


def _remarks(claims, state, found):
    """How the cases are divided, what was refused, and where and when all of it ran."""
    lines = ["## Cases", "", "| claim | part | cases | minutes of one core |", "|---|---|--:|--:|"]
    for claim in claims:
        for part in claim.parts:
            ran = found[claim.name][part.name].outcome
            cases = f"{ran.cases:,} of {part.count:,}"
            lines.append(f"| {claim.name} | {part.name} | {cases} | {ran.cpu / 60:.1f} |")
    refused = [
        f"* {claim.name}: {reason}, {count:,} case{'s' * (count != 1)}."
        for claim in claims
        for reason, count in sorted(_total(found[claim.name]).refused.items())
    ]
    if refused:
        lines += ["", "Some judges have no answer to some cases:", "", *refused]
    return [*lines, "", "## Where it ran", "", *_where(claims, state, found)]


def _where(claims, state, found):
    times = sorted(
        state.chunks[key(claim.name, part.name, span)]["when"]
        for claim in claims
        for part in claim.parts
        for span in part.chunks
        if state.outcome(claim.name, part.name, span) is not None
    )
    seconds = sum(_total(parts).cpu for parts in found.values())
    lines = [f"* Python {platform.python_version()} on {platform.system()} {platform.machine()}."]
    if times:
        ends = map(datetime.fromisoformat, (times[0], times[-1]))
        first, last = (f"{end:%Y-%m-%d %H:%M}" for end in ends)
        lines.append(
            f"* From {first} to {last} UTC; {seconds / 60:.0f} minutes of one core in "
            "all, including the start of each process."
        )
    left = sum(_left(part, found[claim.name]) for claim in claims for part in claim.parts)
    if left >= 30:
        lines.append(
            f"* The cases that were not run take about {left / 60:.0f} minutes of one core."
        )
    if commit := _commit():
        lines.append(f"* The library of commit {commit}.")
    lines.append(f"* {', '.join(_versions())}.")
    return lines


def _commit():
    """The last commit that changed the library, and whether it was changed since, by git."""

    def git(*words):
        ran = subprocess.run(
            ["git", *words, "--", *LIBRARY], cwd=ROOT, capture_output=True, text=True
        )
        return ran.stdout.strip()

    try:
        commit, changed = git("log", "-1", "--format=%h"), git("status", "--porcelain")
    except FileNotFoundError:
        return ""
    return f"{commit}, with changes" if changed else commit


def _left(part, parts):
    """Seconds of one core for the chunks that have not run, by those that have."""
    ran = parts[part.name]
    return ran.left * (ran.outcome.cpu / ran.done if ran.done else part.seconds)


def _versions():
    for name in PACKAGES:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            yield f"{name}: not installed"
