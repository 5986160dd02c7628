"""The base of every error that ncclscope raises on purpose."""

from __future__ import annotations


class NcclscopeError(Exception):
    """Something that the user can put right; the message says what and where."""
