"""What a literal that the gate searches for may look like."""

from __future__ import annotations

__all__ = ["bad_literal"]

# Words of this length are names rather than words: `unresponsive` passes, `error` does not.
_SINGLE_WORD = 10
_ESCAPED_BY_JSON = frozenset('"\\<>&')


def bad_literal(literal: str) -> str | None:
    """Why `literal` cannot be searched for in wrapped text, or None when it can."""
    if len(literal) < 4:
        return "a literal needs at least 4 characters"
    if not literal.isascii() or not literal.isprintable():
        return "a literal must be printable ASCII"
    if _ESCAPED_BY_JSON & set(literal):
        return "a literal must not hold characters that JSON escapes (double quote, backslash, < > &)"
    if literal.isalpha() and literal.islower() and len(literal) < _SINGLE_WORD:
        return "a literal of one common word stands in every other line: take more of the text around it"
    return None
