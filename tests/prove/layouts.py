"""Random layouts of every system, before the three judges of the library and before others.

The judges here are the document's reading of each system, element by element; the array program
(pad, reshape, transpose); and the gather, which evaluates the index map. `judges/` asks programs
that share no code with the library.
"""

import functools
import tempfile
import traceback

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from laid_out import indices, poison

import gridlayout as gl
from gridlayout import dtypes
from gridlayout.layouts.program import pack_host, unpack_host
from prove import judges
from prove.outcome import Outcome

COMPILED = 25  # of so many cases one is compiled by JAX too, which takes longest
LISTED = 600  # physical positions that are asked one by one, at most


def run(part, start, count):
    """`count` layouts of a system, drawn by Hypothesis from the seed."""
    outcome = Outcome()
    asked, outcome.missing = judges.of_layouts(part.name)
    for layout, place in drawn(part.name, start, count):
        try:
            with jax.enable_x64(True):  # layouts have all types
                _judged(layout, place, outcome, asked)
        except Exception:
            what = f"layout: {layout!r}\n{traceback.format_exc(limit=-3)}"
            outcome.failures.append({"what": what})
    for judge in asked:
        try:
            outcome.judged[judge.name] += judge.finish()
        except Exception:
            outcome.failures.append({"what": traceback.format_exc(limit=-3)})
    return outcome


def drawn(system, start, count):
    """Layouts with their readings: the same for the same seed and count."""
    from prove.layouts_by_system import SYSTEMS

    found = []

    @seed(start)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(SYSTEMS[system]())
    def draw(case):
        found.append(case)

    draw()
    return found


def _judged(layout, place, outcome, asked):
    """Ask every judge about a layout."""
    holders = held(layout, place)
    is_view = any(len(found) > 1 for found in holders.values())
    assert_places(layout, holders)
    if layout.size and not is_view and layout.tile_format is None:
        assert_image(layout, in_files=outcome.cases % COMPILED == 0)
    assert_data_moves(layout, holders, is_view, compiled=outcome.cases % COMPILED == 0)
    assert_text(layout)
    outcome.cases += 1
    outcome.judged["the document's reading"] += 1
    outcome.judged["the array program"] += 1
    outcome.judged["the gather"] += 1
    outcome.judged["both, compiled by JAX"] += outcome.cases % COMPILED == 1
    for judge in asked:
        said = judge.ask(layout, holders)
        outcome.judged[judge.name] += said is True
        if isinstance(said, str):
            outcome.refused[f"{judge.name}: {said}"] += 1


def held(layout, place):
    """By the reading: for each core and position, the logical indices that it holds."""
    found = {}
    for index in indices(layout.shape):
        found.setdefault(place(index), []).append(index)
    return found


def assert_places(layout, holders):
    """Elements, the way back, and the padding are the reading's."""
    for (core, position), found in holders.items():
        for index in found:
            where = layout.locate(index)
            assert (where.core, where.offset) == (core, position), f"{index} is at {where}"
    mask = layout.padding_mask().reshape(*layout.core_shape, -1)
    wanted = np.ones_like(mask)
    for core, position in holders:
        wanted[(*core, position)] = False
    np.testing.assert_array_equal(mask, wanted)
    local = layout.local_shape
    for k, at in enumerate(np.ndindex(*mask.shape)):
        if k >= LISTED:
            break
        physical = (*at[:-1], *map(int, np.unravel_index(at[-1], local) if local else ()))
        back = layout.logical_index(physical)
        assert back in holders.get((at[:-1], at[-1]), [None]), f"{physical} holds {back}"


@functools.cache
def numbers(layout):
    """Different numbers as far as the dtype has them, never 0."""
    count = np.arange(1, layout.size + 1) % 127 + 1
    if layout.dtype == np.bool_:
        count = count % 2
    if layout.dtype.name in ("int4", "int2"):
        count = count % 2
    return count.reshape(layout.shape).astype(layout.dtype)


def buffers(x, layout, holders, fill):
    """The physical array that the reading makes of a logical one."""
    shape = layout.physical_shape
    found = np.full((*layout.core_shape, int(np.prod(layout.local_shape))), fill, x.dtype)
    for (core, position), elements in holders.items():
        found[(*core, position)] = x[elements[-1]]
    return found.reshape(shape)


def assert_bits(found, wanted):
    """Two arrays hold the same bits: a NaN is one of many."""
    assert found.shape == wanted.shape
    found, wanted = (np.ascontiguousarray(a).reshape(-1).view(np.uint8) for a in (found, wanted))
    np.testing.assert_array_equal(found, wanted)


def assert_data_moves(layout, holders, is_view, compiled):
    """The array program and the gather move what the reading moves, and never the padding."""
    x = numbers(layout)
    dirty = buffers(x, layout, holders, poison(layout.dtype))
    seen = dirty[layout.index_map(*np.indices(layout.shape))] if x.size else x
    back = unpack_host(dirty, layout)
    assert_bits(back, seen)
    if is_view:
        _assert_refused(layout)
        return
    layout.check_invertible()
    assert_bits(back, x)
    fill = np.asarray(0 if layout.oob is None else layout.oob).astype(layout.dtype)
    packed = buffers(x, layout, holders, fill)
    assert_bits(pack_host(x, layout), packed)
    for path in ("program", "gather") if compiled else ():
        assert_bits(np.asarray(gl.pack(x, layout, path=path)), packed)
        assert_bits(np.asarray(gl.unpack(dirty, layout, path=path)), x)


def assert_image(layout, in_files):
    """The bits of each element are where the layout says, in memory and in files."""
    bits = 1 if layout.dtype == np.bool_ else dtypes.bits(layout.dtype)
    size, width = layout.dtype.itemsize, min(layout.stored_bits, 8 * layout.dtype.itemsize)
    words = np.arange(layout.size * size, dtype=np.uint64) * 2654435761 >> np.uint64(7)
    raw = (words & np.uint64((1 << min(bits, 8)) - 1)).astype(np.uint8)
    x = raw.view(layout.dtype).reshape(layout.shape)
    held = gl.to_bytes(x, layout)
    first = layout.byte_of(0)
    stream = np.unpackbits(held.reshape(-1, layout.bytes_per_core), axis=-1, bitorder="little")
    stream = stream.reshape(*layout.core_shape, -1)
    for index in indices(layout.shape):
        where = layout.locate(index)
        start = 8 * (where.byte - first) + where.bit
        own = np.packbits(stream[where.core][start : start + width], bitorder="little")
        assert own.tobytes() == x[index].tobytes()[: len(own)], f"the bits of {index}"
    assert_bits(gl.from_bytes(held, layout), x)
    if in_files:
        with tempfile.TemporaryDirectory() as folder:
            gl.save_bytes(x, layout, f"{folder}/image")
            opened = gl.open_bytes(f"{folder}/image")
            assert_bits(gl.load_bytes(f"{folder}/image"), x)
            for index in list(indices(layout.shape))[:LISTED:7]:
                assert_bits(np.asarray(opened[index]), np.asarray(x[index]))


def _assert_refused(layout):
    """Two elements in one place can be read, but not written."""
    with pytest.raises(gl.LayoutError, match="read-only view"):
        layout.check_invertible()


def assert_text(layout):
    """The text of a layout is read as that layout."""
    for text in (str(layout), repr(layout)):
        again = gl.parse(text)
        assert again == layout, text
        assert hash(again) == hash(layout), text
