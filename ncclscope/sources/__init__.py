"""Where bytes come from: files, directories, globs, archives and standard input, as streams of bytes."""

from __future__ import annotations

from ncclscope.sources.hints import Hints
from ncclscope.sources.inputs import Input, SourceProblem, discover, missing

__all__ = ["Hints", "Input", "SourceProblem", "discover", "missing"]
