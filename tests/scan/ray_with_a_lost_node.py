"""Scans a corpus on a Ray cluster of two nodes of this machine, one of which is killed in the middle.

A process of its own: Ray leaves threads behind in the one that it ran in.

    python ray_with_a_lost_node.py CORPUS STORE
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ray.cluster_utils import Cluster

from ncclscope.scan.options import ScanOptions
from ncclscope.scan.ray_engine import RayEngine
from ncclscope.scan.run import scan


def main(corpus: str, store: str) -> None:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 100 << 20})
    try:
        node = cluster.add_node(num_cpus=1, object_store_memory=100 << 20)
        cluster.wait_for_nodes()

        class Killing(RayEngine):
            def run(self, jobs: Iterator[Any]) -> Iterator[Any]:
                killed = False
                for answer in super().run(jobs):
                    if not killed:
                        killed = True
                        cluster.remove_node(node, allow_graceful=False)
                    yield answer

        scan([corpus], Path(store), lambda o: Killing(o, cluster.address), ScanOptions())
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
