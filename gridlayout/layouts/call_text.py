"""The text form of layouts whose system has none: the constructor call that creates them.

An example is `sophon.local((2, 3, 4, 5), 'float32', layout='compact')`. `gridlayout.constructor`
parses this form.
"""

from __future__ import annotations

from typing import Any

from gridlayout.dtypes import OOB_NAMES, Scalar, number_code, oob_text


def call_text(name: str, *args: Any, **kwargs: Any) -> str:
    """The text of a call. Arguments print as their repr; infinities print as `float('inf')`.

    >>> call_text("mli.tensor", (4, 5, 3), "HWC", "int8", mem_stride=None)
    "mli.tensor((4, 5, 3), 'HWC', 'int8', mem_stride=None)"
    """
    arguments = [_text(a) for a in args] + [f"{k}={_text(v)}" for k, v in kwargs.items()]
    return f"{name}({', '.join(arguments)})"


def _text(value: Any) -> str:
    return number_code(value) if isinstance(value, (float, complex)) else repr(value)


def oob_argument(oob: Scalar | None) -> dict[str, Any]:
    """The `oob` argument of a layout's constructor call, as a dict; empty for undef padding."""
    if oob is None:
        return {}
    word = oob_text(oob)
    return {"oob": word if word in OOB_NAMES else oob}
