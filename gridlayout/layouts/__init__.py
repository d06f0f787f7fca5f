"""What every layout has: steps, array programs, padding, routes to other layouts, memory.

A `Layout` is a logical shape, a dtype and a list of steps. All else follows from the steps. Read
`steps.py`, then `mapped.py` (index map and inverse) and `layout.py`.

* `program.py`: the steps as moves of an array, run by NumPy here and by JAX in `gridlayout.ops`
* `padding.py`: where no element is. `blocks.py`, `intervals.py`, `parts.py`: a layout without its
  tiles, as linear axes that cores divide into intervals, and so the boxes that a device holds
* `route.py`, `traffic.py`: from one layout to another
* `buffers.py`, `bits.py`, `memory.py`, `location.py`: buffers of cores in bytes, and chips
* `reader.py`, `call_text.py`, `summary.py`: texts. `folding.py`: cores on a mesh of devices

Each system of layouts is a subclass that makes steps. It overrides the properties of `buffers.py`
that it defines differently, such as `blocks`, `stored_bits`, `memory` and `tile_counts`; and where
the elements of a core are not contiguous, `byte_of`, `bytes_per_core` and `page_elements`. Code
that draws, counts or lists layouts asks for these properties, not for the class. What differs by
system is in tables: `dump/plan.py`, `explorer/parameters.py`, `conversion/candidates.py`.

A layout fits a chip if its memory has room for what the layout holds (`held`), and the chip has
cores for its grid (`is_placed`). A program can use it there if it also folds onto the cores, with
one shard per core (`can_be_on`).
"""
