"""What our pages tell people to type works, and the figures in them are right."""

import os
import re
import shlex
import subprocess

import pytest
from conftest import FROM_PRIMARY
from dialects import OPENAI
from gateway import BINARY, Gateway, until
from snippets import KEYS, ROOT, blocks

SDKS = "docs/guide/sdks.md"
HANDBOOK = "docs/guide/incidents.md"
SEEING = "docs/guide/seeing-it.md"
START = "docs/start.md"
PAGES = (START, SDKS, "docs/guide/thresholds.md", "docs/guide/security.md")
PROVIDERS = """
[providers.primary]
protocol = "openai"
base_url = "https://api.openai.com/v1"
api_key = "test-key"
"""
ROUTE = """
[[routes]]
model = "*"
targets = [{ provider = "primary" }]
"""


def is_of(client, text):
    return re.search(rf"^(import|from) {client}\b", text, re.MULTILINE) is not None


@pytest.mark.parametrize("text", [text for text in blocks(SDKS, "python") if not is_of("litellm", text)])
def test_every_python_client_gets_an_answer(stage, capsys, text):
    stage.python(text)
    assert FROM_PRIMARY in capsys.readouterr().out


@pytest.mark.parametrize("text", blocks(SDKS, "js"))
def test_every_node_client_gets_an_answer(stage, text):
    assert FROM_PRIMARY in stage.node(text)


@pytest.mark.parametrize("text", blocks(SDKS, "bash"))
def test_curl_gets_an_answer(stage, text):
    assert FROM_PRIMARY in stage.shell(text)


@pytest.mark.parametrize(("page", "text"), [(page, text) for page in PAGES for text in blocks(page, "toml")])
def test_every_configuration_is_right(tmp_path, page, text):
    """Parts of a file stand on what the rest of it would say."""
    rest = "" if "[providers." in text else PROVIDERS
    route = "" if "[[routes]]" in text else ROUTE.replace("primary", re.findall(r"providers\.(\w+)", rest + text)[0])
    for name in re.findall(r'file = "(/run/secrets/[^"]+)"', text):
        secret = tmp_path / name.rsplit("/", 1)[1]
        secret.write_text("a-secret")
        text = text.replace(name, str(secret))
    file = tmp_path / "fuseline.toml"
    file.write_text('state = "off"\n' + text + rest + route)
    done = subprocess.run([BINARY, "check", "--config", file], env=os.environ | KEYS, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def commands(page):
    lines = (line for text in blocks(page, "sh") for line in text.splitlines())
    return [line for line in lines if line.startswith("fuseline ")]


@pytest.mark.parametrize(
    ("page", "count", "note"), [(START, 5, "rehearsal"), (HANDBOOK, 8, "ticket 4711"), (SEEING, 6, "they announced")]
)
def test_the_commands_of_a_page_work_in_the_order_in_which_they_stand(tmp_path, primary, page, count, note):
    state = {"FUSELINE_STATE": f"{tmp_path}/fuseline.db"}
    gateway = Gateway(tmp_path, PROVIDERS.replace("https://api.openai.com", primary.url) + ROUTE, state)
    try:
        OPENAI.client(gateway.url).chat.completions.create(model="gpt-5", messages=[])
        where = state | {"FUSELINE_ADMIN_LISTEN": gateway.admin.removeprefix("http://")}
        # The gateway runs already.
        told = [command for command in commands(page) if command != "fuseline serve"]
        assert len(told) >= count
        for command in told:
            arguments = [BINARY, *shlex.split(command, comments=True)[1:]]
            done = subprocess.run(arguments, cwd=tmp_path, env=os.environ | where, capture_output=True, text=True)
            assert done.returncode == 0, command + done.stdout + done.stderr
        until(lambda: note in (tmp_path / "gateway.log").read_text(), "the operator's note is logged")
    finally:
        assert gateway.stop() == 0


UNITS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400, "years": 31_557_600}
SCALES = {"thousand": 1e3, "million": 1e6}


def test_how_often_it_trips_for_nothing_is_what_the_formula_says():
    page = (ROOT / "docs/guide/thresholds.md").read_text()
    rows = re.findall(r"^\| (\d+) % \| (\d+) \| (.*) \|$", page, re.MULTILINE)
    assert len(rows) >= 7
    for share, run, cells in rows:
        p, n = int(share) / 100, int(run)
        calls = (1 - p**n) / ((1 - p) * p**n)
        for rate, cell in zip((0.2, 2, 200), cells.split(" | "), strict=True):
            number, *words = cell.split()
            scale = SCALES.get(words[0], 1) * UNITS[words[-1]]
            assert float(number) * scale == pytest.approx(calls / rate, rel=0.03), (share, run, rate)
