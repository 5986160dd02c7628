"""Markup that is safe by construction: text is escaped unless it was made here."""

from __future__ import annotations

from html import escape

from ncclscope.reporters.safe import harmless

__all__ = ["Html", "join", "tag", "text"]

_VOID = frozenset(("meta", "link", "br", "hr"))


class Html(str):
    """A piece of finished markup. Only `tag`, `text` and `join` make it; formatting it gives plain text again."""

    __slots__ = ()


def text(value: object) -> Html:
    """Any text as a text node: control characters shown as escapes, markup inert."""
    return value if isinstance(value, Html) else Html(escape(harmless(str(value))))


def join(*parts: object) -> Html:
    """Pieces one after the other."""
    return Html("".join(text(part) for part in parts))


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element. `class_` is class, `data_at` data-at; None and False leave an attribute out, True names it only."""
    written = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        plain = key.rstrip("_").replace("_", "-")
        written.append(f" {plain}" if value is True else f' {plain}="{escape(harmless(str(value)))}"')
    start = f"<{name}{''.join(written)}>"
    return Html(start if name in _VOID else f"{start}{join(*children)}</{name}>")
