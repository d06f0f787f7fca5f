"""Which positions of a device's part are padding, against asking for every element by itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from laid_out import layouts, positions

import gridlayout as gl
from gridlayout.ops.moves.padding import fill_padding, has_padding, padded_groups, valid_mask

N = len(jax.devices())
DEVICE = gl.DeviceGrid((2, 4) if N >= 8 else (N,))
# Grids that the mesh does not divide, so that there are idle slots; and a dim that no dim feeds.
UNEVEN = {
    f"{shape} on {grid}": gl.GridLayout(shape, grid=grid)
    for shape, grid in [((6, 8), (3, 2)), ((6, 8), (3, 4)), ((5,), (2, 3)), ((6, 6), (3, 3))]
}
LAYOUTS = {**layouts((5, 7)), **layouts((7,)), **UNEVEN}


def held(layout):
    """True at the storage's positions that an element lives at."""
    found = np.zeros(DEVICE.storage_shape(layout), bool)
    found[tuple(map(slice, layout.physical_shape))][positions(layout)] = True
    return found


def on_parts(fn, layout, *storages):
    placed = DEVICE.placement(layout.core_shape)
    specs = {"in_specs": (placed.spec,) * len(storages), "out_specs": placed.spec}
    return jax.device_get(
        jax.jit(jax.shard_map(fn, mesh=DEVICE.fine, check_vma=False, **specs))(*storages)
    )


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_mask_is_where_elements_live(name):
    layout = LAYOUTS[name]
    placed, expected = DEVICE.placement(layout.core_shape), held(layout)
    local = (*placed.per_device, *layout.local_shape)
    assert has_padding(layout, placed) == (not expected.all())
    x = np.random.default_rng(0).random(expected.shape).astype(np.float32)

    def both(part):
        mask = jnp.broadcast_to(valid_mask(layout, placed), local)
        return mask, fill_padding(part, layout, placed, 7)

    found, filled = on_parts(both, layout, x)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(filled, np.where(expected, x, 7))


# A scatter has no parts of its own: its mask is the whole one.
APART = [name for name, layout in LAYOUTS.items() if not layout.is_scatter]


@pytest.mark.few(9)
@pytest.mark.parametrize("name", APART)
def test_the_mask_along_some_dims_covers_the_groups_that_have_them(name):
    layout = LAYOUTS[name]
    placed = DEVICE.placement(layout.core_shape)
    local = (*placed.per_device, *layout.local_shape)
    for along in ([0], [len(local) - 1]):
        groups = padded_groups(layout, placed, along)
        assert set(groups) <= set(padded_groups(layout, placed))
        assert all(set(group.physical) & set(along) for group in groups)
        touched = {k for group in groups for k in group.physical}
        # An element anywhere at the same place along the dims of those groups: it is no padding.
        others = tuple(k for k in range(len(local)) if k not in touched)
        expected = held(layout).any(axis=others, keepdims=True)
        found = on_parts(
            lambda along=along: jnp.broadcast_to(valid_mask(layout, placed, along), local), layout
        )
        # It may say more, of padding that it meets on the way; never that an element is padding.
        assert (held(layout) <= found).all()
        assert (found <= expected).all()
