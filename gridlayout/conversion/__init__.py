"""Conversions: a layout of one system said in the words of another.

layout --candidates--> layouts of the other system --losses--> the one that keeps most
"""

from __future__ import annotations

from gridlayout.conversion.convert import Conversion, convert
from gridlayout.conversion.losses import Loss

__all__ = ["Conversion", "Loss", "convert"]
