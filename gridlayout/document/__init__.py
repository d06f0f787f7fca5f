"""The document model: `GridLayout` as tt-mlir's document describes it (Tenstorrent).

    logical dims --collapse--> fewer dims --grid--> cores --tile--> tiles

`grid_layout.py` has the class; read it first. `collapse.py` turns the intervals of dims that are
joined, or any affine map `linear`, into steps. A map that uses a dim twice, or whose strides do not
nest, becomes one `Scatter` step, and is moved by a gather. `shard.py` computes a core's part, and
`text.py` reads the text. Rules of `gridlayout.ops` compute on this model: `grid_form.py` gives any
layout as a `GridLayout`, if it is one.
"""
