"""`LayoutError` and `LayoutWarning`: the error and the warning that users of the library see."""

from __future__ import annotations


class LayoutError(ValueError):
    """Raised when a layout, map or index breaks a rule.

    The message names the value, the rule and the fix. An error about text also names the 1-based
    column at which parsing stopped, as "column N".

    >>> raise LayoutError("tile (32, 0) has an extent below 1; give extents of 1 or more")
    Traceback (most recent call last):
    gridlayout.errors.LayoutError: tile (32, 0) has an extent below 1; give extents of 1 or more
    """


class ArgumentsError(LayoutError, TypeError):
    """Raised where arguments are missing, are too many, or have names that a function lacks.

    As Python raises a `TypeError` for these, it is one as well.
    """


class PlacementError(LayoutError):
    """Raised where a device grid can't place a grid of cores, because of its `core_map`.

    A grid that a user states is refused by it. Where the library chooses a grid, it takes another.
    """


class LayoutWarning(UserWarning):
    """Warns of a legal choice that wastes most of its memory or is meant for another use.

    The message lists the alternatives.
    """
