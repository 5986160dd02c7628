"""Takes prefixes of launchers, collectors and loggers off log lines, and keeps what they say."""

from ncclscope.envelopes.unwrapper import Unwrapper

__all__ = ["Unwrapper"]
