"""Takes the prefixes that launchers, collectors and loggers put in front of a log line off, and keeps what they say."""

from ncclscope.envelopes.unwrapper import Unwrapper

__all__ = ["Unwrapper"]
