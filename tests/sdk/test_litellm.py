"""LiteLLM itself, as its library and as its proxy, before the gateway and behind it, as our page sets them up.

In an environment of its own, for it brings much along.
"""

import os
import subprocess
import sys
from pathlib import Path

import openai
import pytest
from conftest import FROM_PRIMARY
from dialects import OPENAI
from gateway import free_port, until
from provider import Reply
from snippets import blocks
from wire import MODEL

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
SDKS = "docs/guide/sdks.md"
MASTER_KEY = "sk-of-the-proxy"
# It reads much before it listens.
TO_START = 300.0


@pytest.fixture(scope="module")
def bin(tmp_path_factory):
    """Where its programs are."""
    folder = tmp_path_factory.mktemp("litellm")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--requirement", HERE / "requirements-long.txt"], check=True)
    return folder / "bin"


@pytest.fixture
def proxy(bin, tmp_path):
    """Starts the proxy with this configuration; gives its address."""
    started = []
    # It would fetch prices, and tell of itself.
    environment = os.environ | {
        "LITELLM_MASTER_KEY": MASTER_KEY,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "FUSELINE_TOKEN": "test-key",
    }

    def start(config: str) -> str:
        file = tmp_path / "litellm.yaml"
        file.write_text(config)
        port = free_port()
        command = [bin / "litellm", "--config", file, "--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"]
        log = (tmp_path / "litellm.log").open("wb")
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
        started.append(process)
        until(lambda: is_up(process, port), f"LiteLLM serves; see {log.name}", TO_START)
        return f"http://127.0.0.1:{port}"

    yield start
    for process in started:
        process.kill()
        process.wait()


def is_up(process: subprocess.Popen, port: int) -> bool:
    assert process.poll() is None, "LiteLLM has ended"
    try:
        openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=MASTER_KEY, max_retries=0, timeout=2).models.list()
    except openai.APIError:
        return False
    return True


@pytest.mark.parametrize("text", [text for text in blocks(SDKS, "python") if "import litellm" in text])
def test_its_library_gets_an_answer_through_the_gateway(stage, bin, text):
    environment = os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    command = [bin / "python", "-c", stage.here(text)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TO_START)
    assert done.returncode == 0 and FROM_PRIMARY in done.stdout, done.stdout + done.stderr


def test_its_proxy_before_the_gateway_gets_an_answer(stage, proxy, stream):
    (config,) = blocks(SDKS, "yaml")
    client = OPENAI.client(proxy(stage.here(config)), api_key=MASTER_KEY)
    answer = client.chat.completions.create(
        model="gpt-5-mini", messages=[{"role": "user", "content": "How are things?"}], stream=stream
    )
    text = "".join(event.choices[0].delta.content or "" for event in answer) if stream else answer.choices[0].message.content
    assert text.endswith(FROM_PRIMARY)
    (seen,) = stage.provider.heads
    assert seen.headers["authorization"] == "Bearer test-key", "the gateway's own key"


def test_its_proxy_behind_the_gateway_answers_and_one_failure_is_one_call(launch, proxy, primary, stream):
    address = proxy(
        f"""
        model_list:
          - model_name: {MODEL}
            litellm_params:
              model: openai/{MODEL}
              api_base: {primary.url}/v1
              api_key: primary-key
        router_settings:
          num_retries: 0
        """
    )
    (config,) = [text for text in blocks(SDKS, "toml") if "providers.litellm" in text]
    config = config.replace("http://127.0.0.1:4000", address).replace("[[routes]]", "[[routes]]\nretries = 0")
    gateway = launch(config, {"LITELLM_KEY": MASTER_KEY})
    client = OPENAI.client(gateway.url)
    assert OPENAI.ask(client, stream=stream).endswith(FROM_PRIMARY)
    primary.answer(Reply(status=500))
    hits = primary.hits
    for failures in range(1, 6):
        with pytest.raises(openai.APIStatusError):
            OPENAI.ask(client, stream=stream)
        assert primary.hits == hits + failures, "it repeats nothing by itself"
    assert gateway.the_broken("litellm")["state"] == "open"
