"""What the README tells a newcomer to type works."""

import os
import re
import shlex
import subprocess

import pytest
from gateway import BINARY, Gateway
from snippets import KEYS, ROOT, blocks

LINES = [line for text in blocks("README.md", "sh", "bash", "console") for line in text.splitlines()]
COMMANDS = [line.removeprefix("$ ").split(" #")[0].strip() for line in LINES]
PROGRAM = "cargo run --release -- "
RUNS = [command.removeprefix(PROGRAM) for command in COMMANDS if command.startswith(PROGRAM)]


def test_the_commands_a_newcomer_needs_are_there():
    assert "serve" in RUNS
    assert "demo" in RUNS
    assert "./scripts/test" in COMMANDS


def test_serve_starts_without_a_file_and_ends_well(tmp_path):
    gateway = Gateway(tmp_path)
    try:
        assert gateway.get("/readyz")
    finally:
        assert gateway.stop() == 0


def test_the_demo_ends_by_itself():
    done = subprocess.run([BINARY, "demo", "--fast"], capture_output=True, timeout=100)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()


@pytest.mark.parametrize("command", RUNS)
def test_every_subcommand_exists(command):
    subcommand = shlex.split(command)[0]
    subprocess.run([BINARY, subcommand, "--help"], check=True, capture_output=True)


@pytest.mark.parametrize("command", [command for command in COMMANDS if re.match(r"(\./)?(scripts|bench)/", command)])
def test_every_script_exists(command):
    assert os.access(ROOT / shlex.split(command)[0], os.X_OK)


@pytest.mark.parametrize("text", blocks("README.md", "toml"))
def test_every_configuration_is_right(tmp_path, text):
    file = tmp_path / "fuseline.toml"
    file.write_text(text)
    done = subprocess.run([BINARY, "check", "--config", file], env=os.environ | KEYS, capture_output=True)
    assert done.returncode == 0, done.stdout.decode()


@pytest.mark.parametrize("text", blocks("README.md", "python"))
def test_every_call_gets_an_answer(stage, text):
    stage.python(text)
    assert stage.provider.hits > 0
