"""Gates at build time, where no GPU is: a Dockerfile stage and a GitHub workflow."""

from __future__ import annotations

from ncclscope.preflight.manifests import parts

_DOCKERFILE = """\
# A build that fails when the image's NCCL has no machine code for the GPUs that will run it. It needs no GPU.
#   docker build --build-arg NCCL_TARGETS=sm_90,sm_100 .
@SETTINGS@
FROM @image@ AS nccl-gate
# H100 and H200: sm_90; B200: sm_100; RTX 5090: sm_120; A100: sm_80; L40S: sm_89
ARG NCCL_TARGETS=sm_90
RUN python3 -m pip install --quiet --target /gate/ncclscope ncclscope
RUN PYTHONPATH=/gate/ncclscope python3 -m ncclscope arch --target "${NCCL_TARGETS}" -o /gate/arch.txt

FROM @image@
# The build skips a stage that nothing needs, so the report is taken over. ncclscope itself stays out.
COPY --from=nccl-gate /gate/arch.txt /usr/share/ncclscope/arch.txt
ENV NCCL_DEBUG=INFO \\
    NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,NET,ENV \\
    PYTHONUNBUFFERED=1 \\
    TORCH_NCCL_USE_COMM_NONBLOCKING=0
"""

_WORKFLOW = """\
# .github/workflows/nccl-gate.yml: fails when the image's NCCL has no machine code for the GPUs that will
# run it. No GPU is needed. A private image needs `credentials` under `container`; a large one may not fit
# a hosted runner's disk.
@SETTINGS@
name: NCCL gate
on:
  pull_request:
  workflow_dispatch:
permissions:
  contents: read
jobs:
  nccl-gate:
    runs-on: ubuntu-latest
    timeout-minutes: 30
    container:
      image: "@image@"
    env:
      # H100 and H200: sm_90; B200: sm_100; RTX 5090: sm_120; A100: sm_80; L40S: sm_89
      NCCL_TARGETS: sm_90
    steps:
    - name: Install ncclscope beside the image's packages
      run: python3 -m pip install --quiet --target /tmp/ncclscope ncclscope
    - name: Judge the image's NCCL
      run: python3 -m ncclscope arch --target "$NCCL_TARGETS" --format github
      env:
        PYTHONPATH: /tmp/ncclscope
"""


def dockerfile_gate(image: str) -> str:
    """A Dockerfile with a stage that judges the base image's NCCL."""
    return parts.fill(_DOCKERFILE, image=image, SETTINGS=parts.RUN_TIME_SETTINGS)


def github_action(image: str) -> str:
    """A workflow that judges the image's NCCL on a hosted runner."""
    return parts.fill(_WORKFLOW, image=image, SETTINGS=parts.RUN_TIME_SETTINGS)
