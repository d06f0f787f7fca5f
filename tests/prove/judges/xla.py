"""XLA, in jaxlib: its parser and printer of layouts, its sizes, and bytes of arrays in memory."""

import ctypes
from importlib import import_module

import numpy as np

from gridlayout import dtypes
from prove.judges import Judge

MODULE = "HloModule m\n\nENTRY e {{\n  ROOT p = {} parameter(0)\n}}\n"
PLACED = 5  # of so many layouts one is that of an array, for which XLA compiles a program


class LayoutJudge(Judge):
    """Texts, sizes and, where the CPU can hold it, the bytes of an array in that layout."""

    name = "XLA (jaxlib)"
    systems = ("xla",)

    def __init__(self):
        self.hlo = import_module("jaxlib._hlo")
        self.jax = import_module("jax")
        self.texts, self.asked = [], 0

    def ask(self, layout, holders):
        if type(layout).__name__ != "XlaLayout":
            return False
        self.texts.append(str(layout))
        self.asked += 1
        if self.asked % PLACED == 0:
            self._placed(layout)
        return False  # counted by `finish`

    def _placed(self, layout):
        from test_xla import in_their_layout

        small = dtypes.bits(layout.dtype) < 8
        if layout.element_bits or small or any(-1 in tile for tile in layout.tiles):
            return  # JAX has no text for such an element or tile
        order = tuple(reversed(layout.minor_to_major))
        tiles = tuple(layout.tiles)
        array = in_their_layout(layout.shape, layout.dtype, order, tiles)
        size = array.on_device_size_in_bytes()
        assert layout.first_tile_bytes == size, f"XLA: {size} bytes"
        assert not tiles or layout.to_jax() == array.format.layout
        if not tiles and layout.size:
            self._bytes(layout, array.format)

    def _bytes(self, layout, form):
        """What XLA writes into memory is the image of the layout."""
        import gridlayout as gl

        x = (np.arange(layout.size) % 8).astype(layout.dtype).reshape(layout.shape)
        flip = self.jax.numpy.flip
        made = self.jax.jit(lambda x: flip(flip(x)), out_shardings=form)(x)
        made.block_until_ready()
        raw = ctypes.string_at(made.unsafe_buffer_pointer(), layout.nbytes)
        assert raw == np.asarray(gl.to_bytes(x, layout)).tobytes(), "XLA wrote other bytes"

    def finish(self):
        for text in self.texts:
            module = self.hlo.hlo_module_from_text(MODULE.format(text)).to_string()
            line = next(each for each in module.splitlines() if "ROOT" in each)
            printed = line.split("= ")[1].split(" parameter")[0]
            assert printed == text, f"XLA prints {printed} for {text}"
        return len(self.texts)
