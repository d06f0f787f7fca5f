"""`StorageSharding`: the sharding of a `GridArray`'s storage, valid for its shape only."""

from __future__ import annotations

from jax.sharding import NamedSharding

from gridlayout.errors import LayoutError


class StorageSharding(NamedSharding):
    """The sharding of a storage; it raises for arrays of other shapes.

    JAX would otherwise give it to new arrays of the logical shape, as in `jnp.zeros_like`.
    """

    _shape: tuple[int, ...]
    _owner: str

    @classmethod
    def of(cls, sharding: NamedSharding, shape: tuple[int, ...], owner: str) -> StorageSharding:
        """Return the sharding of a storage of this shape; owner: its `GridArray`, for errors."""
        made = cls(sharding.mesh, sharding.spec, memory_kind=sharding.memory_kind)
        made._shape, made._owner = shape, owner
        return made

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a shard; `LayoutError` for another shape than the storage's."""
        if tuple(global_shape) != self._shape:
            raise LayoutError(
                f"the sharding of the storage of {self._owner} is for shape {self._shape}, not for "
                f"an array of shape {tuple(global_shape)}: gl.zeros_like(x) makes a GridArray like "
                "another, gl.on_grid(fn) runs a function that makes arrays like its arguments, as "
                "gl.on_grid(optimizer.init)(params), and x.draw() shows where its elements are"
            )
        return super().shard_shape(global_shape)
