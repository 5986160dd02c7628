"""Makes text from logs harmless to print."""

from __future__ import annotations

import unicodedata

__all__ = ["harmless", "shorten", "shown"]

# Marks that reorder what a reader sees; they are no control characters and pass isprintable() in some versions.
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def harmless(text: str) -> str:
    """`text` on one line with everything that could steer a terminal shown as an escape: ESC as \\x1b."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(c) for c in text)


def _shown(c: str) -> str:
    if c == "\t":
        return " "
    if c in _BIDI or unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        code = ord(c)
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    return c


def shorten(text: str, width: int) -> str:
    """`text` cut to `width` characters, the middle left out when it is long: log lines carry meaning at both ends."""
    if len(text) <= width:
        return text
    tail = max(0, width // 3)
    return text[: max(1, width - tail - 1)] + "…" + (text[-tail:] if tail else "")


def shown(text: str, width: int) -> str:
    """`text` harmless and cut to `width` characters; the cost does not grow with the text."""
    return shorten(harmless(shorten(text, width)), width)
