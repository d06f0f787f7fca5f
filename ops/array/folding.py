"""How treescope shows what is ours in a tree; it is there when it asks, and not imported before."""

from __future__ import annotations

from typing import Any


def folded_line(line: str, text: str, path: str | None) -> Any:
    """A line that unfolds to the lines of a text: what a `__treescope_repr__` method returns.

    path: how the tree's own root leads here.
    """
    from treescope import rendering_parts as parts

    inside = parts.indented_children([parts.text(each) for each in text.splitlines()])
    return parts.build_custom_foldable_tree_node(
        label=parts.text(line),
        contents=parts.fold_condition(expanded=inside),
        path=path,
    )
