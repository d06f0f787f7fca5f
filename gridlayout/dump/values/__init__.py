"""Memory of values: sizes of their types, the largest of them, live ranges and peaks.

A dump can hold a million types, of which fifty are shown. So `type_texts.py` computes bytes from
the texts that compilers print most, and layouts are built only of rows that are kept. Tests compare
its numbers with those of layouts. A text that states buffers but no map is an `Allocation`
(`tenstorrent/allocation.py`), which answers the same questions about memory.

`peaks.py` measures live ranges of MLIR; `hlo_buffers.py` and `hlo_memory.py` those of compiled HLO,
in buffers that are shared as by XLA.
"""
