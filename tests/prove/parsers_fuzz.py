"""A process that gives a reader inputs until one fails: `READER COUNT SEED FOLDER`."""

import random
import re
import resource
import signal
import sys
import warnings
from contextlib import nullcontext, suppress
from pathlib import Path

from prove.parsers import MEGABYTES, SECONDS, SECONDS_OF_ONE

try:
    import atheris
except ImportError:
    atheris = None


def main(name, count, seed, folder):
    """Fuzz a reader; the process ends with a code other than 0 if one input fails."""
    warnings.simplefilter("ignore")
    guide = atheris.instrument_imports(include=["gridlayout"]) if atheris else nullcontext()
    with guide:
        import gridlayout as gl
        from prove.parsers_read import READERS

    def one(data):
        with suppress(gl.LayoutError):
            READERS[name](data)

    if atheris is None:
        return _mutate(one, count, seed, Path(folder))
    options = [
        *(f"-runs={count}", f"-max_total_time={SECONDS}", f"-timeout={SECONDS_OF_ONE}"),
        *(f"-rss_limit_mb={MEGABYTES}", f"-seed={seed + 1}", "-print_final_stats=1"),
        *("-max_len=8192", f"-artifact_prefix={folder}/failed-", f"{folder}/corpus"),
    ]
    atheris.Setup([sys.argv[0], *options], one)
    atheris.Fuzz()
    return None


def _mutate(one, count, seed, folder):
    """Change the seeds at random: bytes that go, are doubled, come from another seed, or differ."""
    resource.setrlimit(resource.RLIMIT_AS, (MEGABYTES << 20,) * 2)
    rng = random.Random(seed)
    corpus = [path.read_bytes() for path in sorted((folder / "corpus").glob("seed*"))]
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    for _ in range(count):
        data = _other_numbers(rng, rng.choice(corpus))
        for _ in range(rng.randint(0, 4)):
            at, size = rng.randint(0, len(data)), rng.randint(0, 8)
            other = rng.choice(corpus)
            start = rng.randint(0, len(other))
            new = (b"", rng.randbytes(size), other[start : start + size], data[at : at + size] * 2)
            data[at : at + size * rng.randint(0, 1)] = rng.choice(new)
        signal.alarm(SECONDS_OF_ONE)
        try:
            one(bytes(data))
        except BaseException:
            (folder / "failed-input").write_bytes(data)
            raise
        signal.alarm(0)
    print(f"read {count}")
    return 0


_NUMBERS = (b"0", b"1000", b"30000", b"1000000", b"1000000000", b"1099511627776", b"%d" % 2**62)


def _other_numbers(rng, data):
    """The text with some of its numbers replaced by nothing or by far too much."""
    numbers = list(re.finditer(rb"[0-9]+", data))
    made = bytearray(data)
    for found in sorted(
        rng.sample(numbers, min(len(numbers), rng.randint(0, 3))), key=_from_the_end
    ):
        made[found.start() : found.end()] = rng.choice((*_NUMBERS, b"9" * 30))
    return made


def _from_the_end(found):
    return -found.start()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
