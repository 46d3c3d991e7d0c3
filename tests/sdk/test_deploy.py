"""The files in deploy/ are what systemd, Docker and Kubernetes take, and what the program takes."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from dialects import OPENAI
from gateway import BINARY, Gateway, until
from provider import Reply
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
    code, said = run("systemd-analyze", "security", "--offline=true", "--threshold=12", unit)
    assert code == 0, said


def allowed(group: str) -> set[str]:
    """The system calls of one of systemd's groups."""
    code, listed = run("systemd-analyze", "syscall-filter", group)
    assert code == 0, listed
    names = [line.strip() for line in listed.splitlines()[1:]]
    names = [name for name in names if name and not name.startswith("#")]
    return set().union(*(allowed(name) if name.startswith("@") else {name} for name in names))


@pytest.mark.long
def test_the_unit_forbids_no_system_call_that_the_program_makes(tmp_path, primary):
    """With state, a plain call and a stream, failures, an unreachable provider, a reload and a drain."""
    trace = tmp_path / "trace"
    config = f"""
        [providers.primary]
        protocol = "openai"
        base_url = "{primary.url.replace("127.0.0.1", "localhost")}/v1"
        api_key = "key"
        [providers.spare]
        protocol = "openai"
        base_url = "https://localhost:9/v1"
        api_key = "key"
        [[routes]]
        model = "*"
        targets = [{{ provider = "primary" }}, {{ provider = "spare" }}]
        on_exhausted = ["queue"]
        """
    tracing = ["strace", "-D", "-f", "-qq", "-o", trace]
    gateway = Gateway(tmp_path, config, {"FUSELINE_STATE": f"{tmp_path}/fuseline.db"}, tracing)
    for stream in (False, True):
        OPENAI.ask(OPENAI.client(gateway.url), stream=stream)
    primary.answer(Reply(status=503))
    for _ in range(6):
        OPENAI.start(OPENAI.client(gateway.url), stream=False)
    gateway.process.send_signal(signal.SIGHUP)
    until(lambda: "is reloaded" in (tmp_path / "gateway.log").read_text(), "it is reloaded")
    assert gateway.stop() == 0
    made = set(re.findall(r"^\d+ +(\w+)\(", trace.read_text(), re.MULTILINE))
    unit = (DEPLOY / "fuseline.service").read_text()
    groups = re.findall(r"^SystemCallFilter=(~?)(.*)$", unit, re.MULTILINE)
    groups = {sign: set().union(*map(allowed, names.split())) for sign, names in groups}
    # SQLite gives a new file to the owner of the one beside it, where it runs as root; the unit's user is none.
    forbidden = made - (groups[""] - groups["~"]) - {"fchown"}
    assert len(made) > 40 and not forbidden, forbidden


def test_the_dockerfile_has_no_fault_and_builds_what_there_is():
    assert run(TOOLS / "hadolint", "--no-color", DEPLOY / "Dockerfile") == (0, "")
    text = (DEPLOY / "Dockerfile").read_text()
    script = re.search(r"^RUN (scripts/\S+) && strip target/shipped/fuseline$", text, re.MULTILINE)[1]
    package = re.search(r"cargo build .*--package (\S+)", (ROOT / script).read_text())[1]
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
