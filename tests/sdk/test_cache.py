"""A plain answer that was kept, and is told as a stream: the SDKs' own collectors put the same together again."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import anthropic
import openai
import pytest
from gateway import Gateway

CALL = {"id": "call-1", "type": "function", "function": {"name": "look", "arguments": '{"up": "sky"}'}}
CHAT = {
    "id": "chat-1",
    "object": "chat.completion",
    "created": 1_700_000_000,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "It is blue.", "tool_calls": [CALL]},
            "logprobs": None,
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8},
}
MESSAGE = {
    "id": "msg-1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [
        {"type": "thinking", "thinking": "Look up.", "signature": "signed"},
        {"type": "text", "text": "It is blue."},
        {"type": "tool_use", "id": "tool-1", "name": "look", "input": {"up": "sky"}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 5},
}
RESPONSE = {
    "id": "resp-1",
    "object": "response",
    "created_at": 1_700_000_000,
    "status": "completed",
    "model": "m",
    "output": [
        {
            "id": "item-1",
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "It is blue.", "annotations": []}],
        },
        {
            "id": "item-2",
            "type": "function_call",
            "status": "completed",
            "call_id": "call-1",
            "name": "look",
            "arguments": '{"up": "sky"}',
        },
    ],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": {
        "input_tokens": 3,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 8,
    },
}
ANSWERS = {"/v1/chat/completions": CHAT, "/v1/messages": MESSAGE, "/v1/responses": RESPONSE}
ASKED = [{"role": "user", "content": "Why?"}]


class Once(BaseHTTPRequestHandler):
    """Answers the first call, and no other."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        is_first = not self.server.has_answered
        self.server.has_answered = True
        body = json.dumps(ANSWERS[self.path] if is_first else {"error": {"message": "out"}}).encode()
        self.send_response(200 if is_first else 503)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def provider():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Once)
    server.has_answered = False
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


@pytest.fixture
def serve(tmp_path, provider):
    started = []

    def start(protocol: str, base: str) -> str:
        gateway = Gateway(
            tmp_path,
            f"""
            [providers.a]
            protocol = "{protocol}"
            base_url = "{provider}{base}"
            api_key = "key"
            [[routes]]
            model = "*"
            targets = [{{ provider = "a" }}]
            retries = 0
            on_exhausted = ["cache"]
            """,
        )
        started.append(gateway)
        return gateway.url + base

    yield start
    for gateway in started:
        assert gateway.stop() == 0, "the gateway ends well"


def test_a_chat_completion(serve):
    client = openai.OpenAI(base_url=serve("openai", "/v1"), api_key="k", max_retries=0)
    plain = client.chat.completions.create(model="m", messages=ASKED)
    options = {"include_usage": True}
    with client.chat.completions.stream(model="m", messages=ASKED, stream_options=options) as stream:
        whole = stream.get_final_completion()
    assert (whole.id, whole.usage) == (plain.id, plain.usage)
    choice, expected = whole.choices[0], plain.choices[0]
    assert choice.finish_reason == expected.finish_reason
    assert choice.message.content == expected.message.content
    told = [(call.id, call.function.name, call.function.arguments) for call in choice.message.tool_calls]
    assert told == [("call-1", "look", '{"up": "sky"}')]


def test_a_message(serve):
    client = anthropic.Anthropic(base_url=serve("anthropic", ""), api_key="k", max_retries=0)
    plain = client.messages.create(model="m", messages=ASKED, max_tokens=9)
    with client.messages.stream(model="m", messages=ASKED, max_tokens=9) as stream:
        whole = stream.get_final_message()
    # The SDK takes it from the last delta, where there is none.
    told = {key: value for key, value in whole.to_dict().items() if key != "stop_details"}
    assert told == plain.to_dict()


def test_a_response(serve):
    client = openai.OpenAI(base_url=serve("openai", "/v1"), api_key="k", max_retries=0)
    plain = client.responses.create(model="m", input="Why?")
    with client.responses.stream(model="m", input="Why?") as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
        whole = stream.get_final_response()
    assert deltas == ["It is blue."]
    assert whole.output_text == plain.output_text
    assert whole.output[1].arguments == plain.output[1].arguments
    assert whole.usage == plain.usage
