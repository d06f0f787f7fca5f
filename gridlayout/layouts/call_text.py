"""The text of layouts whose system has none of its own: the constructor call that makes them.

`sophon.local((2, 3, 4, 5), 'float32', layout='compact')`; `gridlayout.constructor` reads it.
"""

from __future__ import annotations

import math
from typing import Any


def call_text(name: str, *args: Any, **kwargs: Any) -> str:
    """The text of a call; arguments print as their repr, infinities and NaN as `float('inf')`.

    >>> call_text("mli.tensor", (4, 5, 3), "HWC", "int8", mem_stride=None)
    "mli.tensor((4, 5, 3), 'HWC', 'int8', mem_stride=None)"
    """
    arguments = [_text(a) for a in args] + [f"{k}={_text(v)}" for k, v in kwargs.items()]
    return f"{name}({', '.join(arguments)})"


def _text(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    return repr(value)
