"""Sections of nvidia-smi -q, ibstat and systemctl: a value means something only under its heading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.model import Event
from ncclscope.parsers.kernel_pcie import pci_address
from ncclscope.parsers.pattern import Block, compiled

if TYPE_CHECKING:
    from ncclscope.model import Line, Value

__all__ = ["BLOCKS"]

_PAIR = r"^\s*(?P<key>[A-Za-z][^:]{0,60}?) *: (?P<value>.*?)\s*$"
_HEADING = r"^\s*(?P<key>[A-Za-z][A-Za-z0-9 ()/_-]{0,60})$"
_GPU = r"^\s*GPU ([0-9a-fA-F]{8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])\s*$"
_SLOWDOWNS = {
    "HW Slowdown": "hw",
    "HW Thermal Slowdown": "hw_thermal",
    "HW Power Brake Slowdown": "hw_power_brake",
    "SW Thermal Slowdown": "sw_thermal",
}

_YES_NO = {"Remapping Failure Occurred": "remap_failed", "SRAM Threshold Exceeded": "sram_threshold"}
_UNCORRECTABLE = ("DRAM Uncorrectable", "SRAM Uncorrectable", "SRAM Uncorrectable Parity")


class _SmiGpu:
    """One GPU of nvidia-smi -q: what of it is not as on a healthy GPU."""

    __slots__ = ("_errors", "_fields", "_first", "_heading", "_seen", "_slow")

    def __init__(self, line: Line, gpu: str | None, heading: str = "") -> None:
        self._first = line
        self._fields: dict[str, Value] = {"gpu": gpu} if gpu else {}
        self._heading = heading
        self._slow: list[str] = []
        self._errors = 0
        self._seen = 1

    def feed(self, line: Line) -> bool:
        text = line.text
        if compiled(_GPU).match(text):
            return False
        pair = compiled(_PAIR).match(text)
        if pair is None:
            heading = compiled(_HEADING).match(text)
            if heading:
                self._heading = heading["key"].strip()
            elif text.strip():
                return False
            self._seen += 1
            return True
        self._seen += 1
        self._take(pair["key"].strip(), pair["value"])
        return True

    def _take(self, key: str, value: str) -> None:
        fields = self._fields
        if key in _SLOWDOWNS and value == "Active":
            self._slow.append(_SLOWDOWNS[key])
        elif key == "Pending" and self._heading == "Remapped Rows":
            fields["remap_pending"] = value == "Yes"
        elif key in _YES_NO:
            fields[_YES_NO[key]] = value == "Yes"
        elif key in _UNCORRECTABLE and self._heading == "Volatile" and value.isdigit():
            self._errors += int(value)
        elif key in ("State", "Status") and self._heading == "Fabric":
            fields[f"fabric_{key.lower()}"] = value
        elif key == "GPU Recovery Action":
            fields["recovery_action"] = value

    def close(self) -> list[Event]:
        fields = self._fields
        if self._slow:
            fields["slowdowns"] = tuple(self._slow)
        if self._errors:
            fields["uncorrectable_volatile"] = self._errors
        fields |= _verdict(fields)
        line = self._first
        return [Event("tool.smi_gpu", fields, line.env, line.ref, line.text, lines=self._seen)]


def _verdict(fields: dict[str, Value]) -> dict[str, Value]:
    state = fields.get("fabric_state")
    status = fields.get("fabric_status")
    if fields.get("remap_failed") or fields.get("sram_threshold"):
        return {"nature": "cause", "cause": "gpu-hardware-ecc"}
    # A GPU that is not registered with the fabric answers CUDA with error 802.
    if state in ("In Progress", "Not Started"):
        return {"nature": "cause", "cause": "fabric-manager"}
    if state == "Completed" and status not in (None, "Success", "N/A"):
        return {"nature": "cause", "cause": "nvlink-fabric"}
    if "slowdowns" in fields:
        return {"nature": "cause", "cause": "gpu-thermal-power"}
    if fields.get("remap_pending") or "uncorrectable_volatile" in fields:
        return {"nature": "symptom", "suggests": "gpu-hardware-ecc"}
    return {"nature": "info"}


class _IbPort:
    """The ports of one adapter in ibstat or ibv_devinfo; an event for each port that is not active."""

    __slots__ = ("_events", "_fields", "_first", "_seen")

    def __init__(self, line: Line, device: str) -> None:
        self._first = line
        self._fields: dict[str, Value] = {"ib_device": device}
        self._events: list[Event] = []
        self._seen = 1

    def feed(self, line: Line) -> bool:
        text = line.text
        if compiled(_ADAPTER).search(text):
            return False
        port = compiled(_PORT).match(text)
        pair = compiled(_PAIR).match(text) or compiled(_TABBED).match(text)
        if port is None and pair is None:
            return not text.strip()
        self._seen += 1
        if port:
            self._flush()
            self._first = line
            self._fields["port"] = int(port[1])
            return True
        key, value = (pair["key"].strip().lower(), pair["value"].strip()) if pair else ("", "")
        if key == "state":
            self._fields["state"] = compiled(_STATE).sub("", value).lower()
        elif key in ("physical state", "phys state"):
            self._fields["physical_state"] = value
        elif key in ("link layer", "link_layer"):
            self._fields["link_layer"] = value
        elif key == "rate":
            self._fields["rate"] = value
        return True

    def _flush(self) -> None:
        if self._fields.get("state") in (None, "active"):
            pass
        else:
            line = self._first
            fields: dict[str, Value] = {"nature": "symptom", "suggests": "ib-link", **self._fields}
            self._events.append(
                Event("tool.ib_port", fields, line.env, line.ref, line.text, lines=self._seen)
            )
            self._seen = 0
        self._fields = {"ib_device": self._fields["ib_device"]}

    def close(self) -> list[Event]:
        self._flush()
        return self._events


_ADAPTER = r"\bCA '[^']+'|\bhca_id:\s|^Infiniband device '"
_PORT = r"^\s*[Pp]ort(?: |:\s*)(\d+):?\s*$"
_TABBED = r"^\s*(?P<key>\w[\w ]*):\s+(?P<value>.*)$"
_STATE = r"^\d+: |^PORT_| ?\(\d+\)$"


class _ServiceStatus:
    """systemctl status of fabric manager, down to its Active line."""

    __slots__ = ("_first", "_seen", "_state")

    def __init__(self, line: Line) -> None:
        self._first = line
        self._seen = 1
        self._state = ""

    def feed(self, line: Line) -> bool:
        m = compiled(_ACTIVE).match(line.text)
        if self._state or self._seen > 6 or not (m or compiled(_STATUS_LINE).match(line.text)):
            return False
        self._seen += 1
        if m:
            self._state = m[1]
        return True

    def close(self) -> list[Event]:
        if not self._state:
            return []
        fields: dict[str, Value] = {"nature": "info", "state": self._state}
        if self._state in ("inactive", "failed"):
            # Machines without NVSwitch have it so as well.
            fields |= {"nature": "symptom", "suggests": "fabric-manager"}
        line = self._first
        return [Event("tool.fabric_manager", fields, line.env, line.ref, line.text, lines=self._seen)]


_ACTIVE = r"^\s*Active: (\w+)"
_STATUS_LINE = r"^\s*(?:Loaded|Drop-In|Docs|/\S|└|.-/)|^\s*$"
_SMI_FIELDS = (
    "gpu",
    "slowdowns",
    "remap_pending",
    "remap_failed",
    "sram_threshold",
    "uncorrectable_volatile",
    "fabric_state",
    "fabric_status",
    "recovery_action",
    "suggests",
)
_PORT_FIELDS = ("ib_device", "port", "state", "physical_state", "link_layer", "rate", "suggests")

BLOCKS: tuple[Block, ...] = (
    # GPU 00000000:1B:00.0   (nvidia-smi -q, a section for each GPU)
    Block(
        {"tool.smi_gpu": _SMI_FIELDS},
        "GPU 0000",
        _GPU,
        lambda m, line: _SmiGpu(line, pci_address(m[1])),
    ),
    #     Fabric
    #         State                         : In Progress   (nvidia-smi -q | grep -A2 Fabric)
    Block(
        {"tool.smi_gpu": _SMI_FIELDS},
        "Fabric",
        r"^\s*Fabric\s*$",
        lambda m, line: _SmiGpu(line, None, "Fabric"),  # noqa: ARG005
    ),
    # CA 'mlx5_0'   (ibstat)
    Block({"tool.ib_port": _PORT_FIELDS}, "CA '", r"^\s*CA '([^']+)'", lambda m, line: _IbPort(line, m[1])),
    # hca_id: mlx5_0   (ibv_devinfo)
    Block(
        {"tool.ib_port": _PORT_FIELDS}, "hca_id:", r"^\s*hca_id:\s+(\S+)", lambda m, line: _IbPort(line, m[1])
    ),
    # Infiniband device 'mlx5_0' port 1 status:   (ibstatus)
    Block(
        {"tool.ib_port": _PORT_FIELDS},
        "Infiniband device '",
        r"^Infiniband device '([^']+)'",
        lambda m, line: _IbPort(line, m[1]),
    ),
    # * nvidia-fabricmanager.service - NVIDIA fabric manager service
    #      Active: failed (Result: exit-code) since ...
    Block(
        {"tool.fabric_manager": ("state", "suggests")},
        "nvidia-fabricmanager.service - ",
        r"^\W{0,4}nvidia-fabricmanager\.service - ",
        lambda m, line: _ServiceStatus(line),  # noqa: ARG005
    ),
)
