"""Conversion of layouts between systems.

layout --candidates--> layouts of the other system --losses--> the one that loses least
"""

from __future__ import annotations

from gridlayout.conversion.convert import Conversion, convert
from gridlayout.conversion.losses import Loss

__all__ = ["Conversion", "Loss", "convert"]
