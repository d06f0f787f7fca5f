"""What reading a text costs, counted: lines of Python that run, and the most bytes that are held.

Neither depends on how busy the machine is. `excess` reads two texts of the same kind, one four
times as long, and tells whether the cost is out of proportion to the length.
"""

import gc
import sys
import tracemalloc
from contextlib import suppress

import gridlayout as gl

LENGTHS = 3_000, 12_000
# What a reader may do for a text in any case, and for each character of it.
LINES, LINES_PER_CHARACTER = 200_000, 600
NBYTES, NBYTES_PER_CHARACTER = 4 << 20, 400
TIMES = 6.5  # how much more a text of four times the length may cost; it is 16 if quadratic


class Runaway(BaseException):
    """Raised inside a reader that runs too many lines."""


def counted_lines(read, text, most):
    """The lines of Python that run while a text is read or refused; about `most` at most."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        count += event == "line"
        if count > most:
            raise Runaway
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with suppress(gl.LayoutError, Runaway):
            read(text)
    finally:
        sys.settrace(before)
    return count


def held_bytes(read, text):
    """The most bytes that Python's objects take while a text is read or refused."""
    gl.caches.clear()
    gc.collect()
    tracemalloc.start()
    try:
        with suppress(gl.LayoutError):
            read(text)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def excess(read, text_of):
    """Why the cost of texts is out of proportion to their length; empty if it is not."""
    texts = [text_of(length) for length in LENGTHS]
    counted_lines(read, text_of(500), LINES)  # what is only done once
    found = []
    for text in texts:
        gl.caches.clear()
        most = LINES + LINES_PER_CHARACTER * len(text)
        found.append(counted_lines(read, text, most))
        if found[-1] > most:
            return f"{len(text):,} characters run over {most:,} lines"
    short, long = found
    if long > LINES and long > TIMES * short:
        return f"texts of {', '.join(f'{len(text):,}' for text in texts)} characters: {found} lines"
    held = [held_bytes(read, text) for text in texts]
    if held[1] > NBYTES + NBYTES_PER_CHARACTER * len(texts[1]):
        return f"{len(texts[1]):,} characters hold {held[1]:,} bytes"
    if held[1] > NBYTES and held[1] > TIMES * held[0]:
        return f"texts of {', '.join(f'{len(text):,}' for text in texts)} characters: {held} bytes"
    return ""
