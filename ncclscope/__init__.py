"""Reads the logs of a failed distributed training job and names the root cause."""

__version__ = "0.1.0"
