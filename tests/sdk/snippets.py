"""The fenced blocks of our pages, and what they need to run: two providers' keys, and a gateway in the place of the usual one."""

import re
import subprocess
import sys
from pathlib import Path

from conftest import FROM_PRIMARY
from dialects import ANTHROPIC, OPENAI
from gateway import Gateway
from provider import Provider, Reply

ROOT = Path(__file__).parents[2]
NODE = Path(sys.executable).with_name("node")
KEYS = dict.fromkeys(
    (
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GROQ_API_KEY",
        "LITELLM_KEY",
        "FUSELINE_TOKEN",
        "FUSELINE_ADMIN_TOKEN",
        "SLACK_WEBHOOK",
    ),
    "test-key",
)


def blocks(page: str, *kinds: str) -> list[str]:
    """The contents of a page's fenced blocks of these kinds."""
    text = (ROOT / page).read_text()
    found = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [content for kind, content in found if kind in kinds]


class Stage:
    """A gateway before one provider that speaks both dialects and always answers."""

    def __init__(self, folder: Path):
        self.provider = Provider(Reply(text=FROM_PRIMARY))
        routes = "".join(
            f"""
            [providers.{dialect.name}]
            protocol = "{dialect.name}"
            base_url = "{self.provider.url}{dialect.base}"
            api_key = "test-key"
            [[routes]]
            model = "{models}"
            targets = [{{ provider = "{dialect.name}" }}]
            """
            for dialect, models in ((OPENAI, "*"), (ANTHROPIC, "claude-*"))
        )
        self.gateway = Gateway(folder, routes)

    def close(self):
        self.gateway.stop()
        self.provider.close()

    def here(self, text: str) -> str:
        """A snippet with this gateway's address. Without a file each provider has its own prefix, and its real address
        behind it: here the file's doors stand in."""
        address = self.gateway.url.removeprefix("http://")
        for door, stand_in in (("/openai/v1", "/v1"), ("/anthropic", ""), ("", "")):
            text = text.replace(f"127.0.0.1:8080{door}", f"{address}{stand_in}")
        return text

    def python(self, text: str):
        exec(compile(self.here(text), "snippet", "exec"), {"__name__": "__main__"})

    def node(self, text: str) -> str:
        done = subprocess.run(
            [NODE, "--input-type=module", "-"],
            input=self.here(text),
            cwd=Path(__file__).parent / "node",
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def shell(self, text: str) -> str:
        done = subprocess.run(["bash", "-euc", self.here(text)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
