"""Build hook of the wheel: puts the rules into the package, with their prepared form beside them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class RulesHook(BuildHookInterface):  # type: ignore[misc]  # hatchling is there at build time only
    """The prepared form lets an installation start without reading YAML; it is made here so that it is never stale."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return  # a checkout reads rules/ itself
        root = Path(self.root)
        prepared = Path(self.directory) / "prepared.json"
        prepared.parent.mkdir(parents=True, exist_ok=True)
        # The package is imported from the tree that is being built, never from an installation.
        sys.path.insert(0, str(root))
        try:
            from ncclscope.engine.pack import prepare

            prepare(root / "rules", prepared)
        finally:
            sys.path.remove(str(root))
        build_data["force_include"] |= {
            str(root / "rules"): "ncclscope/_rules",
            str(prepared): "ncclscope/_rules/prepared.json",
        }

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        (Path(self.directory) / "prepared.json").unlink(missing_ok=True)
