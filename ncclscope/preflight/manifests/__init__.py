"""Ready-made places for the gate: Kubernetes, KubeRay, Kubeflow, a Dockerfile, a GitHub workflow."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ncclscope.preflight.manifests import ci, kubernetes, ray

if TYPE_CHECKING:
    from collections.abc import Callable

MANIFESTS: dict[str, Callable[[str], str]] = {
    "init-container": kubernetes.init_container,
    "ray-worker": ray.ray_worker,
    "pytorchjob": kubernetes.pytorchjob,
    "dockerfile-gate": ci.dockerfile_gate,
    "github-action": ci.github_action,
}
"""Functions that make a manifest for an image, by the manifest's name."""

# The grammar of the distribution project's reference package, loosely: host, path, tag, digest.
_IMAGE = re.compile(r"[A-Za-z0-9][\w.\-:/]*(@[A-Za-z0-9]+:[0-9a-fA-F]{32,})?")


def manifest(name: str, image: str) -> str:
    """The manifest `name` for `image`.

    Raises ValueError for an unknown name or what is no image reference.
    """
    if name not in MANIFESTS:
        raise ValueError(f"no manifest is called {name!r}; there are {', '.join(MANIFESTS)}")
    if _IMAGE.fullmatch(image) is None:
        raise ValueError(f"{image!r} is no image reference such as registry.example.com/team/train:1.2")
    return MANIFESTS[name](image)
