"""Text as people should see it: without colours and control characters."""

from __future__ import annotations

from ncclscope.envelopes.layer import compiled

__all__ = ["MAX_BODY", "clean"]

# Longer bodies are cut; no producer that we parse writes them.
MAX_BODY = 64 * 1024

_ANSI = r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-Z\\-_]|\x9b[0-9;?]*[ -/]*[@-~]"
# Control characters but tab and carriage return, what reorders or hides text, and lone surrogates.
_CONTROL = r"[\x00-\x08\x0a-\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"


def clean(text: str) -> str:
    """`text` without escape sequences and control characters; tabs stay, and carriage returns inside it."""
    if text.isprintable():
        return text
    text = text.strip("\r")
    if text.replace("\t", "").replace("\r", "").isprintable():
        return text
    if "\x1b" in text or "\x9b" in text:
        text = compiled(_ANSI).sub("", text)
    return compiled(_CONTROL).sub("", text).strip("\r")
