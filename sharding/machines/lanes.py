"""`Lanes`: which resources of a device work at the same time.

A device has three resources: its links, its memory, and the units that compute. Resources of one
lane work one after another, those of different lanes at the same time.
"""

from __future__ import annotations

from typing import Any

from gridlayout.arguments import as_items, one_of, shown
from gridlayout.errors import LayoutError

LINKS, MEMORY, COMPUTE = "links", "memory", "compute"
RESOURCES = (LINKS, MEMORY, COMPUTE)


class Lanes:
    """The lanes of a machine. overlap: the resources that have a lane of their own."""

    overlap: tuple[str, ...]

    @property
    def lanes(self) -> dict[str, str]:
        """The lane of each resource; the resources that share one name the last of them.

        >>> import gridlayout as gl
        >>> gl.Machine("v5e 4x4").lanes
        {'links': 'links', 'memory': 'compute', 'compute': 'compute'}
        >>> set(gl.Machine("v5e 4x4", overlap=()).lanes.values())
        {'compute'}
        """
        shared = [each for each in RESOURCES if each not in self.overlap]
        return {each: shared[-1] if each in shared else each for each in RESOURCES}


def stated_overlap(overlap: Any) -> tuple[str, ...]:
    """Return the resources that run beside all others, in the order of `RESOURCES`.

    >>> stated_overlap(["memory", "links"])
    ('links', 'memory')
    """
    if isinstance(overlap, str):
        raise LayoutError(
            f"overlap {shown(overlap)} is a text: give a sequence of resources, such as "
            f"({overlap!r},), or () for none"
        )
    given = [one_of(each, RESOURCES, "overlap") for each in as_items(overlap, "overlap", "names")]
    return tuple(each for each in RESOURCES if each in given)
