"""The files in deploy/ are what systemd, Docker and Kubernetes take, and what the program takes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from gateway import BINARY
from snippets import ROOT

DEPLOY = ROOT / "deploy"
TOOLS = Path(sys.executable).parent


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, **options)
    return done.returncode, done.stdout + done.stderr


def test_systemd_takes_the_unit_and_finds_it_well_locked_up(tmp_path):
    unit = tmp_path / "fuseline.service"
    unit.write_text((DEPLOY / "fuseline.service").read_text().replace("/usr/local/bin/fuseline", str(BINARY)))
    assert run("systemd-analyze", "verify", "--man=no", unit) == (0, "")
    code, said = run("systemd-analyze", "security", "--offline=true", "--threshold=20", unit)
    assert code == 0, said


def test_the_dockerfile_has_no_fault_and_builds_what_there_is():
    assert run(TOOLS / "hadolint", "--no-color", DEPLOY / "Dockerfile") == (0, "")
    text = (DEPLOY / "Dockerfile").read_text()
    package = re.search(r"cargo build .*--package (\S+)", text)[1]
    assert f'name = "{package}"' in (ROOT / "crates/gateway/Cargo.toml").read_text()
    rust = re.search(r'^rust-version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    assert f"FROM rust:{rust}-" in text, "the version that the workspace promises to build with"


@pytest.mark.parametrize("name", ["shared", "sidecar"])
def test_kubernetes_takes_the_manifests_and_fuseline_their_configuration(tmp_path, name):
    file = DEPLOY / "kubernetes" / f"{name}.yaml"
    code, said = run(TOOLS / "kubernetes-validate", "--strict", file)
    assert code == 0, said
    parts = list(yaml.safe_load_all(file.read_text()))
    (config,) = [part["data"]["fuseline.toml"] for part in parts if part["kind"] == "ConfigMap"]
    for path in re.findall(r'file = "(/run/secrets/[^"]+)"', config):
        secret = tmp_path / path.rsplit("/", 1)[1]
        secret.write_text("redis://127.0.0.1:6379/0" if secret.name == "fleet" else "a-secret")
        config = config.replace(path, str(secret))
    ours = tmp_path / "fuseline.toml"
    ours.write_text(config)
    code, said = run(BINARY, "check", "--config", ours)
    assert code == 0, said
    (pods,) = [part["spec"]["template"]["spec"] for part in parts if part["kind"] == "Deployment"]
    drain = int(re.search(r'drain = "(\d+)s"', config + 'drain = "30s"')[1])
    assert pods["terminationGracePeriodSeconds"] >= drain + 5, "streams finish before the pod is killed"


def test_the_variables_of_the_dockerfile_are_those_of_the_program():
    text = (DEPLOY / "Dockerfile").read_text()
    named = set(re.findall(r"(FUSELINE_[A-Z_]+)=", text))
    code, said = run(BINARY, "serve", "--help", env=os.environ)
    assert code == 0
    assert named and all(f"[env: {name}=" in said for name in named), named
