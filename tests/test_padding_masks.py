"""Which positions of a device's part are padding, against asking for every element by itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from laid_out import layouts, positions
from tiers import together

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


def placed(name):
    """A layout, where its cores are, and the shape of a device's part."""
    layout = LAYOUTS[name]
    place = DEVICE.placement(layout.core_shape)
    return layout, place, (*place.per_device, *layout.local_shape)


def on_parts(fn, specs, *given):
    """What a function gives on every device, in one program."""
    spread = jax.shard_map(
        fn, mesh=DEVICE.fine, check_vma=False, in_specs=(specs,) * len(given), out_specs=specs
    )
    return jax.device_get(jax.jit(spread)(*given))


@pytest.mark.parametrize("names", together(LAYOUTS, 9), ids="; ".join)
def test_the_mask_is_where_elements_live(names):
    random = np.random.default_rng(0)
    expected = {name: held(LAYOUTS[name]) for name in names}
    given = {name: random.random(held.shape).astype(np.float32) for name, held in expected.items()}

    def both(name, part):
        layout, place, local = placed(name)
        mask = jnp.broadcast_to(valid_mask(layout, place), local)
        return [mask, fill_padding(part, layout, place, 7)]

    specs = {name: placed(name)[1].spec for name in names}
    made = on_parts(lambda parts: {name: both(name, parts[name]) for name in names}, specs, given)
    for name, (found, filled) in made.items():
        layout, place, _ = placed(name)
        assert has_padding(layout, place) == (not expected[name].all()), name
        np.testing.assert_array_equal(found, expected[name], err_msg=name)
        np.testing.assert_array_equal(filled, np.where(expected[name], given[name], 7), name)


# A scatter has no parts of its own: its mask is the whole one.
APART = [name for name, layout in LAYOUTS.items() if not layout.is_scatter]


@pytest.mark.few(9)
@pytest.mark.parametrize("name", APART)
def test_the_mask_along_some_dims_covers_the_groups_that_have_them(name):
    layout, place, local = placed(name)
    for along in ([0], [len(local) - 1]):
        groups = padded_groups(layout, place, along)
        assert set(groups) <= set(padded_groups(layout, place))
        assert all(set(group.physical) & set(along) for group in groups)
        touched = {k for group in groups for k in group.physical}
        # An element anywhere at the same place along the dims of those groups: it is no padding.
        others = tuple(k for k in range(len(local)) if k not in touched)
        expected = held(layout).any(axis=others, keepdims=True)
        found = on_parts(
            lambda along=along: jnp.broadcast_to(valid_mask(layout, place, along), local),
            place.spec,
        )
        # It may say more, of padding that it meets on the way; never that an element is padding.
        assert (held(layout) <= found).all()
        assert (found <= expected).all()
