"""The one error of the library, and its one warning."""

from __future__ import annotations


class LayoutError(ValueError):
    """A layout, map or index breaks a rule; the message names the value, the rule and the fix.

    Errors about text also carry the 1-based column at which reading stopped, as "column N".

    >>> raise LayoutError("tile (32, 0) has an extent below 1; give extents of 1 or more")
    Traceback (most recent call last):
    gridlayout.errors.LayoutError: tile (32, 0) has an extent below 1; give extents of 1 or more
    """


class LayoutWarning(UserWarning):
    """A legal choice that wastes most of its memory, or is made for something else.

    The message gives the ways out.
    """
