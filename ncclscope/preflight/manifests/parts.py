"""Blocks that several manifests share."""

from __future__ import annotations

from textwrap import indent

_MARK = "@"


def fill(template: str, **blocks: str) -> str:
    """Puts each block in place of its line `@NAME@`, indented as that line, and values in place of `@name@`.

    Dollar signs and braces stay, which shell, GitHub and Python use for themselves.
    """
    lines: list[str] = []
    for line in template.splitlines():
        stripped = line.strip()
        name = stripped.strip(_MARK)
        if stripped == f"{_MARK}{name}{_MARK}" and name.isupper():
            lines.append(indent(blocks[name].rstrip("\n"), line[: len(line) - len(line.lstrip())]))
        else:
            for key, value in blocks.items():
                if key.islower():
                    line = line.replace(f"{_MARK}{key}{_MARK}", value)
            lines.append(line)
    return "\n".join(lines) + "\n"


# How the command gets into a container that has no ncclscope: pip puts it beside the image's own packages,
# into a directory that only this one command looks into, so nothing that the job imports changes.
INSTALL = """\
# Needs a route to a Python package index. Without one, build ncclscope into the image and drop this line.
python3 -m pip install --quiet --target /gate/ncclscope ncclscope
"""

VERIFY = """\
# The device plug-in may hand this container other GPUs than the init container had.
PYTHONPATH=/gate/ncclscope python3 -m ncclscope preflight --verify /gate/node.json
"""

RUN_TIME_SETTINGS = """\
# Settings that make a failure early and readable, also where no gate can run, and what each costs:
#   NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,NET,ENV
#       some hundred lines a rank at start, nothing while training
#   PYTHONUNBUFFERED=1
#       keeps the last lines of a killed rank; slows only programs that print a lot
#   TORCH_NCCL_USE_COMM_NONBLOCKING=0
#       init fails where it is called; its overlap with the model's set-up is lost
#   TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1
#       every rank writes its last collectives on a timeout; a few MB of host memory a rank
# And in the program:
#   init_process_group(..., device_id=torch.device("cuda", local_rank))
#       makes the communicator at once, so it fails before the first batch; a few seconds at start
#   init_process_group(..., timeout=timedelta(minutes=5))
#       a hang ends after 5 minutes instead of 10; so does a job whose checkpoint takes one rank longer
"""

ENVIRONMENT = """\
- {name: NCCL_DEBUG, value: INFO}
- {name: NCCL_DEBUG_SUBSYS, value: "INIT,BOOTSTRAP,NET,ENV"}
- {name: PYTHONUNBUFFERED, value: "1"}
- {name: TORCH_NCCL_USE_COMM_NONBLOCKING, value: "0"}
- {name: TORCH_NCCL_TRACE_BUFFER_SIZE, value: "2000"}
- {name: TORCH_NCCL_DUMP_ON_TIMEOUT, value: "1"}
"""

VOLUMES = """\
- name: gate
  emptyDir: {}
- name: shm
  # Counts against the pod's memory limit. The default of 64 MiB ends data loaders with 'Bus error'.
  emptyDir: {medium: Memory, sizeLimit: 16Gi}
"""

MOUNTS = """\
- {name: gate, mountPath: /gate}
- {name: shm, mountPath: /dev/shm}
"""

INIT_CONTAINER = """\
- name: ncclscope-preflight
  image: "@image@"
  command: [sh, -c]
  args:
  - |
    set -eu
    @INSTALL@
    # Exit status 1 (a check fails) and 3 (no GPU or no NCCL to be seen) both keep the job from starting.
    PYTHONPATH=/gate/ncclscope python3 -m ncclscope preflight --write /gate/node.json
  env:
  @ENVIRONMENT@
  # An init container sees GPUs only if it asks for them itself. No more are set aside for that: Kubernetes
  # counts the larger of the init containers' and the containers' requests, and hands devices on.
  resources:
    limits: {nvidia.com/gpu: "@gpus@"}
  volumeMounts:
  @MOUNTS@
"""


def init_container(image: str, gpus: int) -> str:
    """The gate as an init container that asks for `gpus` GPUs."""
    return fill(
        INIT_CONTAINER,
        image=image,
        gpus=str(gpus),
        INSTALL=INSTALL,
        ENVIRONMENT=ENVIRONMENT,
        MOUNTS=MOUNTS,
    )
