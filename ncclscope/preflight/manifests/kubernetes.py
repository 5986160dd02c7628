"""A plain pod and Kubeflow's PyTorchJob."""

from __future__ import annotations

from ncclscope.preflight.manifests import parts

_GPUS = 8

_POD = """\
# A pod whose training starts only on a node where NCCL can run. Take into your own pod, job or template:
# the init container, the two volumes, and the first command of the training container.
@SETTINGS@
apiVersion: v1
kind: Pod
metadata:
  name: train
spec:
  restartPolicy: Never
  initContainers:
  @INIT@
  containers:
  - name: train
    image: "@image@"
    command: [sh, -c]
    args:
    - |
      set -eu
      @VERIFY@
      exec torchrun --standalone --nproc-per-node=@gpus@ train.py
    env:
    @ENVIRONMENT@
    resources:
      limits: {nvidia.com/gpu: "@gpus@"}
    volumeMounts:
    @MOUNTS@
  volumes:
  @VOLUMES@
"""

_PYTORCHJOB = """\
# A PyTorchJob (Kubeflow Training Operator, kubeflow.org/v1) of two hosts whose pods train only on nodes
# where NCCL can run. MASTER_ADDR is not checked: the master's name answers only once its pod runs.
@SETTINGS@
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: train
spec:
  nprocPerNode: "@gpus@"
  runPolicy:
    cleanPodPolicy: None
    backoffLimit: 0
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: Never
      template:
        @TEMPLATE@
    Worker:
      replicas: 1
      restartPolicy: Never
      template:
        @TEMPLATE@
"""

_TEMPLATE = """\
spec:
  initContainers:
  @INIT@
  containers:
  - name: pytorch  # the operator looks for this name
    image: "@image@"
    command: [sh, -c]
    args:
    - |
      set -eu
      @VERIFY@
      # The operator sets PET_NNODES, PET_NPROC_PER_NODE and the rendezvous, which torchrun reads.
      exec torchrun train.py
    env:
    @ENVIRONMENT@
    resources:
      limits: {nvidia.com/gpu: "@gpus@"}
    volumeMounts:
    @MOUNTS@
  volumes:
  @VOLUMES@
"""


def init_container(image: str) -> str:
    """A Pod with the gate as its init container and the comparison at the start of its container."""
    return _filled(_POD, image)


def pytorchjob(image: str) -> str:
    """A PyTorchJob of one master and one worker with the gate in both."""
    template = _filled(_TEMPLATE, image).replace("preflight --write", "preflight --skip master --write")
    return parts.fill(_PYTORCHJOB, gpus=str(_GPUS), SETTINGS=parts.RUN_TIME_SETTINGS, TEMPLATE=template)


def _filled(template: str, image: str) -> str:
    return parts.fill(
        template,
        image=image,
        gpus=str(_GPUS),
        SETTINGS=parts.RUN_TIME_SETTINGS,
        INIT=parts.init_container(image, _GPUS),
        VERIFY=parts.VERIFY,
        ENVIRONMENT=parts.ENVIRONMENT,
        MOUNTS=parts.MOUNTS,
        VOLUMES=parts.VOLUMES,
    )
