"""What providers send, in each dialect: whole answers, errors, and the events of streams."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto

MODEL = "test-model"
BEGUN = '{"path":"a'  # the arguments of a tool call, not whole


class End(Enum):
    """An end that HTTP does not ask for: the last step of a stream's script, or what comes instead of an answer."""

    CUT = auto()  # closed, and in TLS without a goodbye
    RESET = auto()
    SILENCE = auto()  # open and silent until the caller leaves


@dataclass(frozen=True)
class Wire:
    """One dialect. Each piece of a stream is one event or a few that belong together."""

    whole: Callable[[str], dict]
    error: Callable[[int], dict]
    begin: bytes  # what comes before any content
    word: Callable[[str], bytes]
    finish: bytes  # why the answer ends
    marker: bytes  # that it has ended: what comes after the finish
    ping: bytes
    failure: Callable[[str, str], bytes]  # an error event of this type and message
    overloaded: str  # the type of one that says so
    tool: bytes  # a tool call begins, with the arguments `BEGUN`
    garbage: bytes  # an event that is no JSON

    def stream(self, words: Iterable[str]) -> Iterator[bytes]:
        """A good answer."""
        yield self.begin
        yield from map(self.word, words)
        yield self.finish
        yield self.marker


def _data(value) -> bytes:
    return b"data: %b\n\n" % json.dumps(value).encode()


def _event(name: str, **fields) -> bytes:
    return b"event: %b\n%b" % (name.encode(), _data({"type": name, **fields}))


def _openai_error(status: int) -> dict:
    return {"error": {"message": f"scripted {status}", "type": "scripted_error", "param": None, "code": None}}


def chat_chunk(**fields) -> bytes:
    return _data({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL, **fields})


def _chat_delta(finish: str | None = None, **delta) -> bytes:
    return chat_chunk(choices=[{"index": 0, "delta": delta, "finish_reason": finish}])


def _completion(text: str) -> dict:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": MODEL,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6},
    }


_CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "run", "arguments": ""}}

CHAT = Wire(
    whole=_completion,
    error=_openai_error,
    begin=_chat_delta(role="assistant", content=""),
    word=lambda text: _chat_delta(content=text),
    finish=_chat_delta("stop"),
    marker=b"data: [DONE]\n\n",
    ping=b": PROCESSING\n\n",
    failure=lambda kind, message: _data({"error": {"message": message, "type": kind, "param": None, "code": kind}}),
    overloaded="server_is_overloaded",
    tool=_chat_delta(tool_calls=[_CALL]) + _chat_delta(tool_calls=[{"index": 0, "function": {"arguments": BEGUN}}]),
    garbage=b'data: {"id":"chatcmpl-1","choices":[{"delta":{"tool_ca\n\n',
)


def _response(status: str, *output: dict) -> dict:
    answer = {"id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": MODEL}
    fixed = {"error": None, "incomplete_details": None, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return answer | fixed | {"output": list(output)}


def _response_text(text: str) -> dict:
    content = {"type": "output_text", "text": text, "annotations": []}
    return {"id": "item_1", "type": "message", "role": "assistant", "status": "completed", "content": [content]}


_PLACE = {"item_id": "item_1", "output_index": 0, "sequence_number": 1}
_TOOL = {"id": "item_1", "type": "function_call", "call_id": "call_1", "name": "run", "arguments": ""}

RESPONSES = Wire(
    whole=lambda text: _response("completed", _response_text(text)),
    error=_openai_error,
    begin=_event("response.created", response=_response("in_progress"), sequence_number=0),
    word=lambda text: _event("response.output_text.delta", delta=text, content_index=0, logprobs=[], **_PLACE),
    finish=b"",
    marker=_event("response.completed", response=_response("completed", _response_text("Done.")), sequence_number=2),
    ping=b": PROCESSING\n\n",
    failure=lambda kind, message: _event("error", code=kind, message=message, param=None, sequence_number=2),
    overloaded="server_is_overloaded",
    tool=_event("response.output_item.added", item=_TOOL, output_index=0, sequence_number=1)
    + _event("response.function_call_arguments.delta", delta=BEGUN, **_PLACE),
    garbage=b'event: response.output_text.delta\ndata: {"type":"response.outp\n\n',
)


def _message(content: list, stop: str | None) -> dict:
    fields = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "content": content}
    return fields | {"stop_reason": stop, "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 3}}


def _block_delta(**delta) -> bytes:
    return _event("content_block_delta", index=0, delta=delta)


MESSAGES = Wire(
    whole=lambda text: _message([{"type": "text", "text": text}], "end_turn"),
    error=lambda status: {"type": "error", "error": {"type": "scripted_error", "message": f"scripted {status}"}},
    begin=_event("message_start", message=_message([], None))
    + _event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
    word=lambda text: _block_delta(type="text_delta", text=text),
    finish=_event("content_block_stop", index=0)
    + _event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": 3}),
    marker=_event("message_stop"),
    ping=_event("ping"),
    failure=lambda kind, message: _event("error", error={"type": kind, "message": message}),
    overloaded="overloaded_error",
    tool=_event("content_block_stop", index=0)
    + _event(
        "content_block_start",
        index=1,
        content_block={"type": "tool_use", "id": "toolu_1", "name": "run", "input": {}},
    )
    + _event("content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": BEGUN}),
    garbage=b'event: content_block_delta\ndata: {"type":"content_block_delta","del\n\n',
)


def of(path: str) -> Wire:
    """The dialect of a request's path."""
    by_end = {"messages": MESSAGES, "responses": RESPONSES}
    return by_end.get(path.rpartition("/")[2], CHAT)
