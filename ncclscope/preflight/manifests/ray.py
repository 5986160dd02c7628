"""KubeRay: a worker group behind the gate, and a first collective under a time limit."""

from __future__ import annotations

from ncclscope.preflight.manifests import parts

_GPUS = 8

_CLUSTER = """\
# A RayCluster (KubeRay, ray.io/v1) whose GPU workers join only from nodes where NCCL can run, and a
# train function that makes NCCL's communicator first. The image must hold Ray and PyTorch.
#
# Why both: Ray Train's TorchConfig passes no device_id, so PyTorch makes the communicator at the first
# collective, in the middle of the first step. The gate sees one node; the warm-up sees the rest.
@SETTINGS@
apiVersion: ray.io/v1
kind: RayCluster
metadata:
  name: train
spec:
  headGroupSpec:
    rayStartParams:
      num-gpus: "0"
    template:
      spec:
        containers:
        - name: ray-head
          image: "@image@"
          volumeMounts:
          - {name: train, mountPath: /train}
        volumes:
        - name: train
          configMap: {name: train-with-warm-up}
  workerGroupSpecs:
  - groupName: gpu
    replicas: 2
    minReplicas: 2
    maxReplicas: 2
    rayStartParams:
      num-gpus: "@gpus@"
    template:
      metadata:
        annotations:
          # KubeRay then runs the command below as it stands and passes its own in KUBERAY_GEN_RAY_START_CMD.
          ray.io/overwrite-container-cmd: "true"
      spec:
        initContainers:
        @INIT@
        containers:
        - name: ray-worker
          image: "@image@"
          command: [bash, -c]
          args:
          - |
            set -eu
            @VERIFY@
            ulimit -n 65536 || true
            exec bash -c "$KUBERAY_GEN_RAY_START_CMD"
          env:
          @ENVIRONMENT@
          resources:
            limits: {nvidia.com/gpu: "@gpus@"}
          volumeMounts:
          @MOUNTS@
        volumes:
        @VOLUMES@
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: train-with-warm-up
data:
  # Run it on the head: python /train/train.py
  train.py: |
    @PROGRAM@
"""

_PROGRAM = '''\
import faulthandler
import sys

import ray.train
import torch
import torch.distributed as dist
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer, get_device

WARM_UP_SECONDS = 180


def warm_up():
    """Makes the communicator and runs one all_reduce, before any data is read.

    A communicator that cannot be made hangs inside NCCL, where PyTorch's time limit does not reach. So the
    process prints where it stands and ends after WARM_UP_SECONDS. Costs a few seconds at start.
    """
    faulthandler.dump_traceback_later(WARM_UP_SECONDS, file=sys.__stderr__, exit=True)
    device = get_device()
    torch.cuda.set_device(device)
    one = torch.ones(1, device=device)
    dist.all_reduce(one)
    torch.cuda.synchronize(device)
    faulthandler.cancel_dump_traceback_later()
    if int(one.item()) != dist.get_world_size():
        raise RuntimeError(f"all_reduce gave {one.item()} for {dist.get_world_size()} ranks")


def train_loop_per_worker():
    warm_up()
    # Your training goes here.
    ray.train.report({"ready": 1})


if __name__ == "__main__":
    TorchTrainer(
        train_loop_per_worker,
        # A hang ends after 5 minutes instead of Ray's 30. Give more where a checkpoint keeps a rank away.
        torch_config=TorchConfig(backend="nccl", timeout_s=300),
        scaling_config=ScalingConfig(num_workers=@workers@, use_gpu=True),
        run_config=RunConfig(name="train"),
    ).fit()
'''


def ray_worker(image: str) -> str:
    """A RayCluster with the gate in its worker group, and a ConfigMap with the train function."""
    return parts.fill(
        _CLUSTER,
        image=image,
        gpus=str(_GPUS),
        SETTINGS=parts.RUN_TIME_SETTINGS,
        INIT=parts.init_container(image, _GPUS),
        VERIFY=parts.VERIFY,
        ENVIRONMENT=parts.ENVIRONMENT,
        MOUNTS=parts.MOUNTS,
        VOLUMES=parts.VOLUMES,
        PROGRAM=parts.fill(_PROGRAM, workers=str(2 * _GPUS)),
    )
