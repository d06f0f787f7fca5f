"""`Board`: a short text per process, which the others can read without the devices.

The texts are stored in the coordination service of `jax.distributed.initialize`, which is available
while devices wait for each other. JAX has no public name for its client: only this module uses it.
If there is none, nothing is posted.
"""

from __future__ import annotations

from typing import Any


class Board:
    """The texts of the processes of a group. Raises RuntimeError if the service has ended."""

    def __init__(self, client: Any, name: str) -> None:
        self._client, self._folder = client, f"gridlayout/{name}/"

    def post(self, process: int, words: str) -> None:
        """Replace the text of a process."""
        if self._client is not None:
            self._client.key_value_set(f"{self._folder}{process}", words, allow_overwrite=True)

    def read(self) -> dict[int, str]:
        """Return the text of each process that has posted one."""
        found = [] if self._client is None else self._client.key_value_dir_get(self._folder)
        return {int(key.rpartition("/")[2]): words for key, words in found}

    def leave(self) -> None:
        """Release the client, so that JAX can end it: nothing is posted afterwards."""
        self._client = None


def find_board(name: str) -> Board | None:
    """Return the board of a group; None if this JAX has no such client."""
    try:
        from jax._src.distributed import global_state
    except ImportError:
        return None
    client = getattr(global_state, "client", None)
    methods = ("key_value_set", "key_value_dir_get")
    return Board(client, name) if all(hasattr(client, each) for each in methods) else None
