"""Streamed calls by real SDKs, of Python and of Node, and what they hand to the application: told in the same words; and
calls of any kind at an even pace."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import anthropic
import openai
import wire
from dialects import ANTHROPIC, OPENAI, Dialect
from wire import MODEL, Wire

PATIENCE = 20.0
QUESTION = [{"role": "user", "content": "How are things?"}]


@dataclass
class Raised:
    """An exception: the names of its classes, the most special first, and what it says."""

    classes: list[str]
    message: str
    status: int | None = None


@dataclass
class Heard:
    """What one streamed call gave. `begun` counts the answers begun in it, `finish` is the reason it ended for."""

    text: str = ""
    tool: str = ""
    finish: str | None = None
    tokens: int | None = None
    begun: int = 0
    told: str | None = None  # an error that was handed on as an event like others
    raised: Raised | None = None

    @property
    def words(self) -> int:
        return len(self.text.split())


def _hear_chat(event, heard: Heard):
    for choice in event.choices or []:
        heard.begun += choice.delta.role is not None
        heard.text += choice.delta.content or ""
        for call in choice.delta.tool_calls or []:
            heard.tool += call.function.arguments or ""
        heard.finish = choice.finish_reason or heard.finish
    if event.usage:
        heard.tokens = event.usage.total_tokens


def _hear_responses(event, heard: Heard):
    match event.type:
        case "response.created":
            heard.begun += 1
        case "response.output_text.delta":
            heard.text += event.delta
        case "response.function_call_arguments.delta":
            heard.tool += event.delta
        case "response.completed":
            heard.finish = event.response.status
        case "error":
            heard.told = event.message


def _hear_messages(event, heard: Heard):
    match event.type:
        case "message_start":
            heard.begun += 1
        case "content_block_delta" if event.delta.type == "text_delta":
            heard.text += event.delta.text
        case "content_block_delta":
            heard.tool += event.delta.partial_json
        case "message_delta":
            heard.finish = event.delta.stop_reason
            heard.tokens = event.usage.output_tokens


@dataclass(frozen=True)
class Api:
    """One kind of streamed call. `finish` is the reason that a good answer of it ends for."""

    name: str
    dialect: Dialect
    wire: Wire
    finish: str
    open: Callable = field(repr=False)
    hear: Callable = field(repr=False)


CHAT = Api(
    name="chat",
    dialect=OPENAI,
    wire=wire.CHAT,
    finish="stop",
    open=lambda client: client.chat.completions.create(model=MODEL, messages=QUESTION, stream=True),
    hear=_hear_chat,
)
RESPONSES = Api(
    name="responses",
    dialect=OPENAI,
    wire=wire.RESPONSES,
    finish="completed",
    open=lambda client: client.responses.create(model=MODEL, input=QUESTION, stream=True),
    hear=_hear_responses,
)
MESSAGES = Api(
    name="messages",
    dialect=ANTHROPIC,
    wire=wire.MESSAGES,
    finish="end_turn",
    open=lambda client: client.messages.create(model=MODEL, messages=QUESTION, max_tokens=64, stream=True),
    hear=_hear_messages,
)


class Python:
    """The SDKs of this process."""

    name = "python"

    def call(self, api: Api, url: str, max_retries: int = 0, patience: float = PATIENCE) -> Heard:
        """One streamed call, read to its end; given up after so many seconds of silence."""
        heard = Heard()
        with api.dialect.client(url, max_retries=max_retries, timeout=patience) as client:
            try:
                for event in api.open(client):
                    api.hear(event, heard)
            except (openai.OpenAIError, anthropic.AnthropicError) as error:
                classes = [kind.__name__ for kind in type(error).__mro__]
                heard.raised = Raised(classes, str(error), getattr(error, "status_code", None))
        return heard


class Node:
    """The SDKs of one Node process, which is told each call in a line and answers each in a line."""

    name = "node"

    def __init__(self):
        self._process = subprocess.Popen(
            [Path(sys.executable).with_name("node"), "calls.mjs"],
            cwd=Path(__file__).parent / "node",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._turn = threading.Lock()

    def call(self, api: Api, url: str, max_retries: int = 0, patience: float = PATIENCE) -> Heard:
        """As `Python.call`, but given up after so many seconds in all."""
        call = {
            "api": api.name,
            "base_url": url + api.dialect.base,
            "model": MODEL,
            "messages": QUESTION,
            "max_retries": max_retries,
            "patience_ms": patience * 1000,
        }
        with self._turn:
            self._process.stdin.write(json.dumps(call) + "\n")
            self._process.stdin.flush()
            heard = json.loads(self._process.stdout.readline())
        raised = heard.pop("raised")
        return Heard(**heard, raised=raised and Raised(**raised))

    def close(self):
        self._process.stdin.close()
        assert self._process.wait(10) == 0


def paced(times: int, every: float, call: Callable):
    """Calls so many times, so many seconds apart, whether or not those before have ended; returns what came of each."""
    start = time.monotonic()
    with ThreadPoolExecutor(times) as pool:
        calls = []
        for number in range(times):
            time.sleep(max(0.0, start + number * every - time.monotonic()))
            calls.append(pool.submit(call))
    return [call.result() for call in calls]
