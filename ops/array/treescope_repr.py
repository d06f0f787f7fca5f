"""How treescope shows objects of this library; treescope is imported only when it asks for it."""

from __future__ import annotations

from typing import Any


def folded_line(line: str, text: str, path: str | None) -> Any:
    """Return a line that unfolds to the lines of a text, for a `__treescope_repr__` method.

    path: from the tree's root to this object.
    """
    from treescope import rendering_parts as parts

    inside = parts.indented_children([parts.text(each) for each in text.splitlines()])
    return parts.build_custom_foldable_tree_node(
        label=parts.text(line),
        contents=parts.fold_condition(expanded=inside),
        path=path,
    )
