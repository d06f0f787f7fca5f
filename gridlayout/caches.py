"""The library's caches on the host, of plans and compiled programs: their bytes and a limit."""

from __future__ import annotations

from gridlayout.caching import clear, limit, nbytes

__all__ = ["clear", "limit", "nbytes"]


def __dir__() -> list[str]:
    return [*(name for name in globals() if name.startswith("__")), *__all__]
