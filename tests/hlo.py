"""What a compiled program moves between devices, read off its text."""

import re

import jax
import numpy as np

KINDS = "all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter"
# As reports name them.
OURS = {kind: kind.replace("-", "_") for kind in KINDS.split("|")} | {
    "collective-permute": "permute"
}
BITS = {"pred": 8, "bf16": 16} | {f"{k}{n}": n for k in "fsuc" for n in (8, 16, 32, 64, 128)}


def operations(fn, *args):
    """What XLA makes of a function: its instructions, but for views."""
    text = jax.jit(fn).lower(*args).compile().as_text()
    found = re.findall(r" = (\S+) ([\w-]+)\(", text)
    return sorted(op for _, op in found if op != "bitcast")


def collectives(text, devices):
    """The collectives of a program: kind, and bytes that all devices receive.

    An all-reduce counts as a reduce-scatter and an all-gather, which is the least there is.
    """
    found = []
    for line in text.splitlines():
        if match := re.search(rf"= (.*?) ({KINDS})(?:-start)?\(", line):
            out = sum(
                BITS[kind] // 8 * int(np.prod([int(n) for n in dims.split(",") if n]))
                for kind, dims in re.findall(r"(\w+)\[([\d,]*)\]", match[1])
            )
            found.append((match[2], received(match[2], out, devices, line)))
    return found


def compiled_collectives(text, devices):
    """The collectives that a program runs: kind, group size, and bytes that all devices receive.

    What is in the body of a loop is counted as often as XLA says that it goes round.
    """
    found, name = [], None
    blocks = {}
    for line in text.splitlines():
        if match := re.match(r"(?:ENTRY )?%?([\w.-]+) .*\{$", line):
            name = match[1]
            blocks[name] = []
        elif name and line.startswith("  "):
            blocks[name].append(line)
    entry = re.search(r"^ENTRY %?([\w.-]+)", text, re.MULTILINE)[1]

    def visit(block, times):
        for line in blocks.get(block, ()):
            if match := re.search(rf"= (.*?) ({KINDS})(?:-start)?\(", line):
                out = sum(
                    BITS[kind] // 8 * int(np.prod([int(n) for n in dims.split(",") if n]))
                    for kind, dims in re.findall(r"(\w+)\[([\d,]*)\]", match[1])
                )
                size = None if match[2] == "collective-permute" else group_size(line)
                if size != 1:
                    found.append((match[2], size, times * received(match[2], out, devices, line)))
            if match := re.search(r" while\(.*body=%?([\w.-]+)", line):
                trips = re.search(r'"known_trip_count":\{"n":"(\d+)"', line)
                visit(match[1], times * int(trips[1] if trips else 1))
            for inner in re.findall(r"(?:to_apply|calls)=%?([\w.-]+)", line):
                visit(inner, times)

    visit(entry, 1)
    return found


def received(kind, out, devices, line):
    """out: bytes that the operation makes on one device."""
    if kind == "collective-permute":
        pairs = re.search(r"source_target_pairs=\{(.*?)\}\}", line)[1] + "}"
        return out * sum(a != b for a, b in re.findall(r"\{(\d+),(\d+)\}", pairs))
    n = group_size(line)
    share = {"all-reduce": 2 * (n - 1) / n, "reduce-scatter": n - 1}.get(kind, (n - 1) / n)
    return round(devices * out * share)


def group_size(line):
    """How many devices take part, in each of the ways in which XLA writes it."""
    if match := re.search(r"replica_groups=\{\{([\d,]+)\}", line):
        return len(match[1].split(","))
    if match := re.search(r"replica_groups=\[\d+,(\d+)\]<=", line):
        return int(match[1])
    match = re.search(r"replica_groups=mesh\[(.*?)\](?:, device_ids=\(.*?\))? ?\{(.*?)\}", line)
    sizes = dict(re.findall(r"'(\w+)'=(\d+)", match[1]))
    return int(np.prod([int(sizes[name]) for name in re.findall(r"'(\w+)'", match[2])]))
