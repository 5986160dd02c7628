"""journalctl -o export: one field of a record a line, an empty line between records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ncclscope.envelopes.draft import Draft
from ncclscope.envelopes.records import open_record
from ncclscope.gate import make_text_test

if TYPE_CHECKING:
    from ncclscope.model import SourceRef

__all__ = ["ExportRecords"]

_MOST_FIELDS = 200
# A binary field is its name alone on a line, then eight bytes of length, the value and a newline.
_LENGTH_BYTES = 8
_is_export = make_text_test([b"\n__REALTIME_TIMESTAMP=", b"\n__CURSOR="])


class ExportRecords(msgspec.Struct):
    """The record that is being read."""

    fields: dict[str, str] = msgspec.field(default_factory=dict)
    ref: SourceRef | None = None
    binary: str | None = None

    @staticmethod
    def begin(lines: bytes) -> bool:
        """Whether one of the lines, each behind a line end, can stand in such an export only: the cursor and the time
        begin every record."""
        return _is_export(lines)

    def feed(self, raw: bytes, ref: SourceRef) -> tuple[list[tuple[str, Draft]], SourceRef] | None:
        """The texts of the record that ends with this line and the place of its message, or None."""
        if not raw.strip(b"\r"):
            return self.close()
        if self.binary is not None:
            name, value = self.binary, raw[_LENGTH_BYTES:]
            self.binary = None
        else:
            key, equals, value = raw.partition(b"=")
            name = key.decode("ascii", "replace")
            if not equals:
                self.binary = name
                return None
        if len(self.fields) < _MOST_FIELDS:
            self.fields[name] = value.decode("utf-8", "replace")
        if name == "MESSAGE":
            self.ref = ref
        return None

    def close(self) -> tuple[list[tuple[str, Draft]], SourceRef] | None:
        """The texts of the record read so far."""
        fields, ref = self.fields, self.ref
        self.fields, self.ref, self.binary = {}, None, None
        if ref is None:
            return None
        return open_record(fields, Draft()), ref
