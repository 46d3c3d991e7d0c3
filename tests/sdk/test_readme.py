"""What the README tells a newcomer to type works."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from conftest import FROM_PRIMARY
from dialects import ANTHROPIC, OPENAI
from gateway import BINARY, Gateway
from provider import Provider, Reply

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
LINES = [line for kind, text in BLOCKS if kind in ("sh", "bash", "console") for line in text.splitlines()]
COMMANDS = [line.removeprefix("$ ").split(" #")[0].strip() for line in LINES]
PROGRAM = "cargo run --release -- "
RUNS = [command.removeprefix(PROGRAM) for command in COMMANDS if command.startswith(PROGRAM)]
KEYS = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GROQ_API_KEY"), "test-key")


def texts(kind):
    return [text for found, text in BLOCKS if found == kind]


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


@pytest.mark.parametrize("text", texts("toml"))
def test_every_configuration_is_right(tmp_path, text):
    file = tmp_path / "fuseline.toml"
    file.write_text(text)
    done = subprocess.run([BINARY, "check", "--config", file], env=os.environ | KEYS, capture_output=True)
    assert done.returncode == 0, done.stdout.decode()


@pytest.mark.parametrize("text", texts("python"))
def test_every_call_gets_an_answer(tmp_path, monkeypatch, text):
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    provider = Provider(Reply(text=FROM_PRIMARY))
    routes = "".join(
        f"""
        [providers.{dialect.name}]
        protocol = "{dialect.name}"
        base_url = "{provider.url}{dialect.base}"
        api_key = "test-key"
        [[routes]]
        model = "{models}"
        targets = [{{ provider = "{dialect.name}" }}]
        """
        for dialect, models in ((OPENAI, "*"), (ANTHROPIC, "claude-*"))
    )
    gateway = Gateway(tmp_path, routes)
    address = gateway.url.removeprefix("http://")
    # Without a file each provider has its own prefix, and its real address behind it: here the file's doors stand in.
    for door, stand_in in (("/openai/v1", "/v1"), ("/anthropic", ""), ("", "")):
        text = text.replace(f"127.0.0.1:8080{door}", f"{address}{stand_in}")
    try:
        exec(compile(text, "README.md", "exec"), {"__name__": "__main__"})
        assert provider.hits > 0
    finally:
        gateway.stop()
        provider.close()
