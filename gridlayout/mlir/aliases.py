"""`Aliases`: the aliases of MLIR text, and types with their aliases written out, in bounded memory.

MLIR prints an alias before its uses, so the text of each is stored with the aliases in it written
out. A type that would be too long remains as it is, and is counted or refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gridlayout.errors import LayoutError

MAX_TYPE = 1 << 16  # most characters of a type or an alias, written out
# Bounds on the stored aliases: a text may define more than it uses.
MAX_ALIASES, MAX_ALIAS_CHARACTERS = 1 << 18, 1 << 25
# Characters of the types that are cached with their aliases written out, and of all that are
# written out: a number, and so many per character of the text.
MAX_RESOLVED, MAX_WRITTEN, MAX_WRITTEN_PER_CHARACTER = 1 << 22, 1 << 15, 16
_DEPTH = 16  # most levels of aliases that follow
_ENTRY = 200  # bytes of an entry of a cache, besides its texts
_ALIAS = re.compile(r"[#!][A-Za-z_][\w$.-]*")


@dataclass
class Aliases:
    """The aliases of earlier lines, to which later lines refer.

    texts: what each stands for, of `characters` in all. dropped: number of aliases that exceeded
    the bounds. resolved: a cache of types with their aliases written out, of `resolved_characters`;
    it is cleared when an alias changes. room: how many more characters may be written out. left:
    number of types that were not, for lack of room.
    """

    texts: dict[str, str] = field(default_factory=dict)
    characters: int = 0
    dropped: int = 0
    resolved: dict[str, str] = field(default_factory=dict)
    resolved_characters: int = 0
    room: int = MAX_WRITTEN
    left: int = 0

    def define(self, name: str, text: str) -> None:
        """Store what an alias stands for; an empty text leaves the name undefined.

        >>> aliases = Aliases()
        >>> aliases.define("#m", "#ttnn.buffer_type<l1>")
        >>> aliases.define("#l", "#ttnn.ttnn_layout<#m>")
        >>> aliases.whole("tensor<4xf32, #l>")
        'tensor<4xf32, #ttnn.ttnn_layout<#ttnn.buffer_type<l1>>>'
        """
        text = text if text.startswith("loc(") else self._replaced(text)  # locations have trees
        if text == self.texts.get(name, ""):
            return
        self._forget_resolved()
        self.characters -= len(self.texts.pop(name, ""))
        room = min(MAX_TYPE, MAX_ALIAS_CHARACTERS - self.characters)
        if text and len(text) <= room and len(self.texts) < MAX_ALIASES:
            self.texts[name] = text
            self.characters += len(text)
        elif text:
            self.dropped += 1

    def resolve(self, text: str) -> str:
        """Return a type with its aliases written out; unchanged if it would be too long."""
        if not self.texts:
            return text
        found = self.resolved.get(text)
        if found is None:
            found = self._replaced(text)
            if self.resolved_characters > MAX_RESOLVED:
                self._forget_resolved()
            self.resolved[text] = found
            self.resolved_characters += len(text) + len(found) + _ENTRY
        return found

    def whole(self, text: str) -> str:
        """Return a type with its aliases written out; `LayoutError` if one can't be."""
        found = self.resolve(text)
        for _ in range(_DEPTH):  # a text of no compiler may use aliases that follow
            if not any(name in self.texts for name in _ALIAS.findall(found)):
                return found
            found = self._replaced(found)
        raise LayoutError(
            f"type {text[:80]!r}: its aliases refer to each other, or stand for over {MAX_TYPE} "
            "characters"
        )

    def _forget_resolved(self) -> None:
        self.resolved.clear()
        self.resolved_characters = 0

    def _replaced(self, text: str) -> str:
        """Return the text with aliases replaced; unchanged if that exceeds a bound or the room."""
        found = self._written_out(text)
        if len(found) > self.room:
            self.left += 1
            return text
        self.room -= len(found)
        return found

    def _written_out(self, text: str) -> str:
        aliases = self.texts
        if text.count("#") + text.count("!") == 1 and text.startswith("tensor<"):
            start = text.find("#")  # the usual form: one alias, at the end
            value = aliases.get(text[start:-1], "") if start >= 0 else ""
            if value and len(value) + start < MAX_TYPE:
                return f"{text[:start]}{value}>"
        names = [name for name in _ALIAS.findall(text) if name in aliases]
        more = sum(len(aliases[name]) - len(name) for name in names)
        if not names or len(text) + more > MAX_TYPE:
            return text
        return _ALIAS.sub(lambda found: aliases.get(found[0], found[0]), text)
