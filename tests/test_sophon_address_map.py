"""Tensors that share local memory, by address (Sophon, "Address of Tensor in Local Memory")."""

import re
import time
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sophon_reading import TOY, locals_, matrices, occupied
from tiers import examples

import gridlayout as gl
from gridlayout.sophon import BM1684, BM1688, Reuse, local, matrix, memory_map, overlap, reuse

ADDRESSES = {"A": 340, "B": 1472, "C": 2300, "D": 3088}


def block(address):
    return local((1, 1, 1, 1), "float32", "compact", start=address, chip=TOY)


BLOCKS = memory_map({name: block(address) for name, address in ADDRESSES.items()})


def test_the_documents_four_addresses():
    """ "The following figure shows where the four addresses A = 340, B = 1472, C = 2300 and
    D = 3088 are (Note that each block has size of 4 bytes)." """
    places = {name: (x.start_npu, x.offset // 4) for name, x in BLOCKS.tensors.items()}
    assert places == {"A": (0, 85), "B": (1, 112), "C": (2, 63), "D": (3, 4)}
    for name, address in ADDRESSES.items():
        for byte in range(4):
            assert BLOCKS.at(address + byte) == {name: (0, 0, 0, 0)}
        assert BLOCKS.at(address - 1) == BLOCKS.at(address + 4) == {}
    assert BLOCKS.overlaps == BLOCKS.reuses == {}
    assert BLOCKS.end == 452
    assert str(BLOCKS).splitlines() == [
        "4 NPUs of 1,024 B, 572 B free after all tensors",
        "tensor  address  NPUs  bytes of each  total  empty  holds",
        "A           340  0:1   340:344           16     12  float32 (1, 1, 1, 1), compact",
        "B         1,472  1:2   448:452           16     12  float32 (1, 1, 1, 1), compact",
        "C         2,300  2:3   252:256           16     12  float32 (1, 1, 1, 1), compact",
        "D         3,088  3:4   16:20             16     12  float32 (1, 1, 1, 1), compact",
    ]


def cells(drawing):
    """What hovers over each cell, with its fill."""
    root = ElementTree.fromstring(drawing.svg)
    space = {"svg": "http://www.w3.org/2000/svg"}
    found = root.findall(".//svg:g[@class='cells']/svg:rect", space)
    return [(rect.get("class"), rect.find("svg:title", space).text) for rect in found]


SPAN = re.compile(
    r"NPUs? (\d+)(?::(\d+))?, bytes ([\d,]+):([\d,]+), from address ([\d,]+) to ([\d,]+): (.*)"
)


def spans(drawing):
    """Each cell as (first NPU, end, first byte, end, fill, text); its addresses are checked."""
    found = []
    for fill, over in cells(drawing):
        *numbers, text = SPAN.fullmatch(over).groups()
        npu, end, low, high, first, last = (n and int(n.replace(",", "")) for n in numbers)
        chip = TOY if f"{TOY.npu_bytes:,} B" in drawing.title else BM1684
        assert (first, last) == (npu * chip.npu_bytes + low, npu * chip.npu_bytes + high - 1)
        found.append((npu, end or npu + 1, low, high, fill, text))
    return found


def test_the_documents_address_figure():
    drawn = spans(BLOCKS.draw())
    shown = {fill: (*place, text) for *place, fill, text in drawn if re.fullmatch(r"c\d", fill)}
    assert shown == {
        "c0": (0, 1, 340, 344, "A, (0, 0, 0, 0)"),
        "c1": (1, 2, 448, 452, "B, (0, 0, 0, 0)"),
        "c2": (2, 3, 252, 256, "C, (0, 0, 0, 0)"),
        "c3": (3, 4, 16, 20, "D, (0, 0, 0, 0)"),
    }
    svg = BLOCKS.draw().svg
    assert all(f">{name}</text>" in svg for name in "ABCD")
    assert all(f">{npu} at {npu * 1024:,}</text>" in svg for npu in range(4))
    assert BLOCKS._repr_html_() == svg


# --- what tensors do to one another ---

X = local((2, 3, 4, 5), "float32", chip=TOY)


def test_a_tensor_in_the_empty_blocks_of_another():
    """ "Try not to reuse the empty blocks"."""
    found = memory_map(
        {"x": X, "bias": local((1, 3, 1, 1), "float32", "compact", start=80, chip=TOY)}
    )
    assert found.overlaps == {}
    assert found.reuses == {("x", "bias"): Reuse(0, 80, (0, 0, 0, 0))}
    assert found.at(1024 + 82) == {"x": None, "bias": (0, 1, 0, 0)}
    assert str(found).splitlines()[-1] == (
        "bias reuses empty blocks of x: byte 80 of NPU 0 holds (0, 0, 0, 0) of bias; NPUs that "
        "work on x in parallel may destroy it"
    )


def test_a_tensor_over_another():
    y = local((6, 5, 4, 5), "int8", storage="4N", start=128, chip=TOY)
    found = memory_map({"x": X, "y": y})
    assert found.overlaps == {("x", "y"): overlap(X, y)}
    assert found.reuses == {("x", "y"): reuse(X, y)}
    line = "x and y overlap: byte 128 of NPU 0 holds (1, 0, 0, 0) of x and (0, 0, 0, 0) of y"
    assert line in str(found).splitlines()
    groups = local((1, 1, 1, 1), "int8", "compact", storage="4N", chip=TOY)
    one = local((1, 1, 1, 1), "int8", strides=(None,) * 4, start=3, chip=TOY)
    assert "holds a dummy of groups and (0, 0, 0, 0) of one" in str(
        memory_map({"groups": groups, "one": one})
    )


def test_the_npus_of_a_tensor():
    """ "the tensor starts at NPU Q with offset R", and its channels go round."""
    tensors = {
        "round": local((1, 3, 1, 1), "int8", start=3 * 1024, chip=TOY),
        "all": local((1, 5, 1, 1), "int8", start=1024 + 512, chip=TOY),
        "w": matrix(2, 40, 10, "float32", start=256 + 2048, chip=TOY),
    }
    lines = str(memory_map(tensors)).splitlines()
    assert [line.split("  ")[0].strip() for line in lines[2:5]] == ["round", "all", "w"]
    assert "3:4, 0:2" in lines[2]
    assert "  0:4  " in lines[3]
    assert lines[4].endswith("float32 (2, 40), W=10, aligned")


@st.composite
def several(draw):
    one = st.one_of(locals_(TOY), matrices(TOY))
    return {name: draw(one) for name in "abc"[: draw(st.integers(1, 3))]}


@settings(max_examples=examples(60))
@given(several())
def test_the_map_against_every_byte(tensors):
    tensors = {name: x for name, x in tensors.items() if x.allocation < 2**20 and x.fits()}
    if not tensors:
        return
    found = memory_map(tensors)
    held = {name: occupied(x) for name, x in tensors.items()}
    for name, x in tensors.items():
        assert found.empty_bytes(name) == 4 * x.bytes_per_core - len(held[name])
    for address in range(0, 4096, 3):
        npu, byte = divmod(address, 1024)
        here = found.at(address)
        for name, x in tensors.items():
            assert (name in here) == (0 <= byte - x.offset < x.bytes_per_core)
            if name in here:
                assert here[name] in held[name].get((npu, byte), [None])
    drawing = found.draw()
    for first, end, low, high, fill, text in spans(drawing):
        for npu in (first, end - 1):
            for byte in (low, (low + high) // 2, high - 1):
                inside = [name for name in tensors if (npu, byte) in held[name]]
                if "many gaps" in drawing.svg:
                    names = {n for b in range(low, high) for n in tensors if (npu, b) in held[n]}
                    assert fill == ("mix" if len(names) > 1 else fill)
                    assert not names or fill == "mix" or text.split(",")[0] in names
                elif fill == "mix":
                    assert len(inside) > 1
                elif fill in ("pad", "paper"):
                    assert not inside
                    assert any(found.at(npu * 1024 + byte)) == (fill == "pad")
                else:
                    assert text.split(",")[0] in inside
                    assert len(inside) == 1


def test_a_map_of_a_whole_chip():
    tensors = {
        "output": local((4, 96, 55, 55), "float32"),
        "input": local((2, 3, 227, 227), "float32", start=97280),
        "kernel": local((3, 96, 11, 11), "float32", "compact", start=509696, storage="2IC"),
    }
    found = memory_map(tensors)
    assert found.end == 509696 + tensors["kernel"].bytes_per_core
    drawn = spans(found.draw())
    assert {(first, end) for first, end, *_ in drawn} == {(0, 3), (3, 32), (32, 64)}
    assert (0, 3, 97280, 97280 + 227 * 227 * 4) in [span[:4] for span in drawn]
    # With more gaps than there is room for, allocations are drawn.
    strided = memory_map({"x": local((9, 3, 50, 5), "int8", strides=(9000, None, 99, 9))}).draw()
    assert "There are many gaps" in strided.svg
    assert [(*place, fill) for *place, fill, _ in spans(strided)] == [
        (0, 3, 0, 81000, "c0"),
        (0, 3, 81000, 2**19, "paper"),
        (3, 64, 0, 81000, "pad"),
        (3, 64, 81000, 2**19, "paper"),
    ]


def test_a_map_of_many_tensors_takes_no_time():
    tensors = {f"x{k}": local((4, 70, 8, 16), "float32", start=k * 128) for k in range(64)}
    start = time.process_time()
    found = memory_map(tensors)
    # Each allocation is 4096 B, so that tensors overlap if they start less than 32 * 128 B apart.
    assert set(found.overlaps) == {
        (f"x{j}", f"x{k}") for j in range(64) for k in range(j + 1, min(j + 32, 64))
    }
    assert "x1 reuses empty blocks of x0" in str(found)
    assert time.process_time() - start < 30


def test_names_are_text():
    name = "<script>alert('x')</script>"
    found = memory_map({name: X})
    assert name in str(found)
    assert "<script" not in found.draw().svg


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ({}, "a map has 1 to 64 tensors, not 0"),
        ({f"x{k}": X for k in range(65)}, "not 65"),
        ([X], "must be a dict of names to tensors"),
        ({1: X}, "must be a dict of names"),
        ({"x": None}, "None is not a tensor in Sophon local memory"),
        ({"x": X, "y": local((1, 1, 1, 1), "int8", chip=BM1688)}, "share no memory"),
        ({"x": local((9, 4, 9, 9), "float32", chip=TOY)}, "does not fit"),
    ],
)
def test_bad_maps_are_refused(tensors, words):
    with pytest.raises(gl.LayoutError, match=words):
        memory_map(tensors)


def test_bad_questions_are_refused():
    with pytest.raises(gl.LayoutError, match="tensor 'z' is not one of A, B, C, D"):
        BLOCKS.empty_bytes("z")
    with pytest.raises(gl.LayoutError, match="address 4096 is outside local memory"):
        BLOCKS.at(4096)
