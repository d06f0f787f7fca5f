"""`Board`: a few words of each process, which the others read, past the devices.

They go through the coordination service that `jax.distributed.initialize` starts, which answers
while the devices wait for each other. JAX has no public name for its client: this module is the
only one that asks for it, and where there is none nothing is posted.
"""

from __future__ import annotations

from typing import Any


class Board:
    """What the processes of a group have posted. A service that is gone raises a RuntimeError."""

    def __init__(self, client: Any, name: str) -> None:
        self._client, self._folder = client, f"gridlayout/{name}/"

    def post(self, process: int, words: str) -> None:
        """Put words of a process in the place of its earlier ones."""
        if self._client is not None:
            self._client.key_value_set(f"{self._folder}{process}", words, allow_overwrite=True)

    def read(self) -> dict[int, str]:
        """The words of each process that has posted any."""
        found = [] if self._client is None else self._client.key_value_dir_get(self._folder)
        return {int(key.rpartition("/")[2]): words for key, words in found}

    def leave(self) -> None:
        """Let go of the client, which JAX is to end: nothing is posted any more."""
        self._client = None


def find_board(name: str) -> Board | None:
    """The board of a group; None where JAX has no coordination service, or hides it elsewhere."""
    try:
        from jax._src.distributed import global_state
    except ImportError:
        return None
    client = getattr(global_state, "client", None)
    methods = ("key_value_set", "key_value_dir_get")
    return Board(client, name) if all(hasattr(client, each) for each in methods) else None
