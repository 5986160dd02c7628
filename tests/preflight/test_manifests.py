"""The manifests are valid for the systems they are for, and their commands exist."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from importlib.resources import files
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import dockerfile_parse
import jsonschema
import kubernetes_validate
import pytest
import typer
import yaml
from kubeflow.training import ApiClient

from ncclscope.cli.arch import arch
from ncclscope.cli.preflight import preflight
from ncclscope.preflight.checks import CHECKS
from ncclscope.preflight.manifests import MANIFESTS, manifest

from .conftest import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Iterator

IMAGE = "registry.example.com:5000/team/train:1.2"


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(manifest(name, IMAGE)))


def pod_specs(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every pod spec in a document, however deep."""
    for value in document.values() if isinstance(document, dict) else document:
        if isinstance(value, dict) and "containers" in value:
            yield value
        elif isinstance(value, (dict, list)):
            yield from pod_specs(value)


def check_pod(spec: dict[str, Any], metadata: dict[str, Any] | None = None) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", **(metadata or {})}, "spec": spec}
    for version in ("1.29", kubernetes_validate.latest_version()):
        kubernetes_validate.validate(pod, version, strict=True)


def test_the_pod_is_valid_for_kubernetes() -> None:
    (pod,) = documents("init-container")
    for version in ("1.29", kubernetes_validate.latest_version()):
        kubernetes_validate.validate(pod, version, strict=True)


def test_the_schema_check_can_fail() -> None:
    (pod,) = documents("init-container")
    pod["spec"]["containers"][0]["resorces"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        check_pod(pod["spec"])


def test_the_raycluster_is_valid_for_kuberay_and_its_pods_for_kubernetes() -> None:
    cluster, config = documents("ray-worker")
    schema = json.loads((FIXTURES / "preflight" / "raycluster.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(cluster)
    kubernetes_validate.validate(config, kubernetes_validate.latest_version(), strict=True)
    specs = list(pod_specs(cluster))
    assert len(specs) == 2
    for spec in specs:
        check_pod(spec)
    worker = cluster["spec"]["workerGroupSpecs"][0]["template"]
    assert worker["metadata"]["annotations"] == {"ray.io/overwrite-container-cmd": "true"}


def test_the_pytorchjob_is_what_kubeflows_own_models_read_and_write() -> None:
    """A field that the models do not know is lost on the way, and a missing one is an error."""
    (job,) = documents("pytorchjob")
    client = ApiClient()
    model = client.deserialize(SimpleNamespace(data=json.dumps(job)), "KubeflowOrgV1PyTorchJob")
    assert client.sanitize_for_serialization(model) == job
    specs = list(pod_specs(job))
    assert len(specs) == 2
    for spec in specs:
        check_pod(spec)
        # The operator refuses a job without a container of this name.
        assert [container["name"] for container in spec["containers"]] == ["pytorch"]


@pytest.mark.parametrize("name", ["init-container", "ray-worker", "pytorchjob"])
def test_each_gpu_pod_is_gated_on_the_gpus_it_will_use(name: str) -> None:
    """The init container asks for as many GPUs, and both share the file and the shared memory."""
    gated = [spec for document in documents(name) for spec in pod_specs(document) if "initContainers" in spec]
    assert gated
    for spec in gated:
        (gate,), (main,) = spec["initContainers"], spec["containers"]
        assert gate["resources"] == main["resources"]
        assert gate["volumeMounts"] == main["volumeMounts"]
        assert {mount["name"] for mount in gate["volumeMounts"]} == {
            volume["name"] for volume in spec["volumes"]
        }
        assert "--write /gate/node.json" in gate["args"][0]
        assert "--verify /gate/node.json" in main["args"][0]
        assert gate["image"] == main["image"] == IMAGE


@pytest.mark.parametrize("name", ["init-container", "ray-worker", "pytorchjob"])
def test_the_shell_in_the_manifests_parses(name: str) -> None:
    scripts = [
        (container["command"][0], container["args"][0])
        for document in documents(name)
        for spec in pod_specs(document)
        for container in (*spec.get("initContainers", ()), *spec["containers"])
        if "args" in container
    ]
    assert scripts
    for shell, script in scripts:
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


def test_the_python_in_the_manifests_compiles_and_bounds_the_first_collective() -> None:
    program = documents("ray-worker")[1]["data"]["train.py"]
    compile(program, "train.py", "exec")
    body = program[program.index("def warm_up") :]
    assert body.index("dump_traceback_later") < body.index("all_reduce(one)") < body.index("cancel_dump")


def test_the_workflow_is_valid_for_github() -> None:
    text = manifest("github-action", IMAGE)
    workflow = yaml.safe_load(text)
    workflow["on"] = workflow.pop(True)  # YAML 1.1 reads the key `on` as true
    schema = json.loads(
        files("check_jsonschema.builtin_schemas.vendor").joinpath("github-workflows.json").read_text()
    )
    jsonschema.validators.validator_for(schema)(schema).validate(workflow)
    (job,) = workflow["jobs"].values()
    assert job["container"]["image"] == IMAGE


def test_the_dockerfile_parses_and_its_last_stage_needs_the_gate(tmp_path: Any) -> None:
    parsed = dockerfile_parse.DockerfileParser(str(tmp_path / "Dockerfile"))
    parsed.content = manifest("dockerfile-gate", IMAGE)
    instructions = [item["instruction"] for item in parsed.structure if item["instruction"] != "COMMENT"]
    assert instructions == ["FROM", "ARG", "RUN", "RUN", "FROM", "COPY", "ENV"]
    assert parsed.parent_images == [IMAGE, IMAGE]
    copy = next(item["value"] for item in parsed.structure if item["instruction"] == "COPY")
    assert copy.startswith("--from=nccl-gate ")
    assert parsed.envs["NCCL_DEBUG_SUBSYS"] == "INIT,BOOTSTRAP,NET,ENV"


def options_of(function: Any) -> set[str]:
    app = typer.Typer()
    app.command()(function)
    return {option for param in typer.main.get_command(app).params for option in param.opts}


@pytest.mark.parametrize("name", MANIFESTS)
def test_every_ncclscope_command_in_a_manifest_exists_with_its_options(name: str) -> None:
    known = {"arch": options_of(arch), "preflight": options_of(preflight)}
    calls = re.findall(r"python3 -m ncclscope (\w+)(.*)", manifest(name, IMAGE))
    assert calls
    for command, rest in calls:
        words = shlex.split(rest)
        assert {word for word in words if word.startswith("-")} <= known[command]
        for option, value in pairwise(words):
            assert option not in {"--skip", "--only"} or value in CHECKS


@pytest.mark.parametrize("name", MANIFESTS)
def test_settings_are_given_with_what_they_cost(name: str) -> None:
    text = manifest(name, IMAGE)
    for setting in (
        "NCCL_DEBUG=INFO",
        "TORCH_NCCL_USE_COMM_NONBLOCKING=0",
        "device_id=",
        "timeout=timedelta(",
    ):
        line = next(line for line in text.splitlines() if line.startswith("#") and setting in line)
        following = text.splitlines()[text.splitlines().index(line) + 1]
        assert following.startswith("#       ")


@pytest.mark.parametrize("name", MANIFESTS)
def test_nothing_is_left_of_the_template(name: str) -> None:
    assert not re.search(r"@\w+@", manifest(name, IMAGE))


@pytest.mark.parametrize("image", ["", "a b", 'x"\n- evil: y', "-rf", "x;y", "$(id)"])
def test_what_is_no_image_reference_is_refused(image: str) -> None:
    with pytest.raises(ValueError, match="no image reference"):
        manifest("init-container", image)


def test_an_image_by_digest_is_taken() -> None:
    digest = "ghcr.io/team/train@sha256:" + "a" * 64
    assert digest in manifest("dockerfile-gate", digest)


def test_an_unknown_manifest_is_named_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="github-action"):
        manifest("helm", IMAGE)
