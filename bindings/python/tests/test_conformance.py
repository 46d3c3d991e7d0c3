"""The vectors that every implementation must match, and the recorded answers, through the public surface."""

import json
from collections import Counter

import pytest
from conftest import ROOT

import fuseline

VECTORS = [json.loads(line) for line in (ROOT / "conformance" / "vectors.jsonl").read_text().splitlines()]
SHAPES = [json.loads(line) for line in (ROOT / "conformance" / "errors.jsonl").read_text().splitlines()]
NOON = 1_796_040_000.0  # Mon, 30 Nov 2026 12:00:00 GMT, the clock of all recorded answers
TRANSPORTS = {
    "dns_failure": "dns",
    "connect_refused": "refused",
    "connect_timeout": "connect_timeout",
    "tls_handshake": "tls",
    "reset": "reset",
    "reset_before_headers": "reset",
    "read_timeout_before_headers": "deadline",
    "http2_goaway": "not_processed",
    "idle_timeout": "stall",
}


class Case:
    """One breaker on a clock that is moved by hand, and the calls that are out."""

    def __init__(self, name, settings):
        self.clock = fuseline.Clock.manual()
        self.breaker = fuseline.Breaker(name, clock=self.clock, **settings)
        self.permits = {}
        self.now_ms = 0

    def take(self, event):
        """What an event comes to, in the words of the vectors."""
        at_ms = max(self.now_ms, event["at_ms"])
        self.clock.advance((at_ms - self.now_ms) / 1000)
        self.now_ms = at_ms
        answer = getattr(self, event["do"])(event) or {}
        return answer | {"state": self.breaker.state}

    def acquire(self, event):
        try:
            permit = self.breaker.acquire()
        except fuseline.CircuitOpenError as refused:
            answer = {"decision": "reject", "reason": refused.reason}
            if refused.reason == "open":
                answer["retry_after_ms"] = round(refused.retry_after * 1000)
            return answer
        self.permits[event["as"]] = permit
        answer = {"decision": "probe" if permit.is_probe else "allow"}
        return answer | ({"would_reject": permit.would_reject} if permit.would_reject else {})

    def success(self, event):
        assert self.permits.pop(event["of"]).success_after(event.get("took_ms", 0) / 1000)

    def failure(self, event):
        hint = event.get("retry_after_ms")
        assert self.permits.pop(event["of"]).failure(
            event["kind"], retry_after=None if hint is None else hint / 1000, open_now=event.get("open", False)
        )

    def cancel(self, event):
        assert self.permits.pop(event["of"]).cancel()

    def progress(self, event):
        self.permits[event["of"]].progress()

    def state(self, event):
        pass

    def force(self, event):
        lasting = event["for_ms"] / 1000 if "for_ms" in event else None
        match event["to"]:
            case "open":
                self.breaker.force_open(lasting)
            case "closed":
                self.breaker.force_closed(lasting)
            case "auto":
                self.breaker.reset()


def run(presets=None):
    """Takes all lines; with presets, only cases of those, with their settings given by name."""
    counted, case, wrong = Counter(), None, []
    for line in VECTORS:
        if "case" in line:
            settings = line["breaker"]
            if presets is not None:
                preset = next((preset for preset in presets if line["case"].startswith(preset)), None)
                kinds = settings.get("kinds", {})
                settings = {"preset": preset, "jitter": 0, "kinds": kinds}
                case = Case(line["case"], settings) if preset else None
            else:
                case = Case(line["case"], settings)
            counted["cases"] += case is not None
        elif case is not None:
            counted["events"] += 1
            answer = case.take(line)
            if answer != line["expect"]:
                wrong.append((case.breaker.name, line, answer))
    return counted, wrong


def test_all_vectors_in_all_fields():
    counted, wrong = run()
    assert not wrong, f"{len(wrong)} wrong, the first: {wrong[0]}"
    assert counted == {"cases": 166, "events": 6453}


def test_presets_are_the_systems_that_they_are_named_after():
    presets = ["vernllm", "llmtest-rate", "llmtest", "omniroute", "agents", "n4n"]
    counted, wrong = run(presets)
    assert not wrong, f"{len(wrong)} wrong, the first: {wrong[0]}"
    assert counted["cases"] > 20


def sse_event(block):
    name, data = "", ""
    for line in block.split("\n"):
        field, _, value = line.partition(":")
        if field == "event":
            name = value.strip()
        elif field == "data":
            data = value.lstrip()
        elif field == "error":  # some llama.cpp builds
            name, data = "error", value.lstrip()
    return name, data


def events_of(shape):
    """The events of a recorded stream, by name and data."""
    whole = "".join(shape["stream"])
    match shape["stream_format"]:
        case "sse":
            return [sse_event(block) for block in whole.split("\n\n")]
        case "ndjson":
            return [("", line) for line in whole.splitlines()]
        case "json-array":
            for text in (whole, whole + "]"):
                try:
                    return [("", json.dumps(value)) for value in json.loads(text)]
                except ValueError:
                    pass
            return []
        case "aws-eventstream-decoded":
            frames = [json.loads(chunk) for chunk in shape["stream"]]
            name = [frame["headers"].get(":exception-type") or frame["headers"][":event-type"] for frame in frames]
            return [(name, frame["payload"]) for name, frame in zip(name, frames)]


def mistakes(shape):
    transport = shape.get("transport")
    is_stream = shape.get("stream") is not None
    verdict = fuseline.classify(
        shape["status"],
        shape.get("headers"),
        None if is_stream else shape.get("body", "").encode(),
        provider=shape["provider"],
        events=events_of(shape) if is_stream else None,
        fault=TRANSPORTS.get(transport),
        has_left=transport == "client_abort",
        at=NOON,
    )
    kind = verdict.kind or "success"
    got = {
        "kind": kind,
        "provider_fault": verdict.provider_fault,
        "retryable": verdict.retryable,
        "retry_after_ms": None if verdict.retry_after is None else verdict.retry_after * 1000,
        "scope": verdict.scope,
    }
    expect, others = shape["expect"], shape.get("alt", {})
    if kind in ("bad_request", "context_length", "content_policy", "success"):
        got["scope"] = expect["scope"]  # says nothing where the request is at fault
    near = shape.get("retry_after_tolerance_ms", 1)
    if None not in (got["retry_after_ms"], expect["retry_after_ms"]):
        if abs(got["retry_after_ms"] - expect["retry_after_ms"]) <= near:
            got["retry_after_ms"] = expect["retry_after_ms"]
    return [key for key in got if got[key] != expect[key] and got[key] not in others.get(key, [])]


def test_all_recorded_answers_are_judged_right():
    wrong = {shape["id"]: found for shape in SHAPES if (found := mistakes(shape))}
    assert len(SHAPES) == 333
    assert not wrong


def test_what_cannot_be_read_is_told():
    with pytest.raises(ValueError, match="`gone` is no fault; there are dns, refused"):
        fuseline.classify(fault="gone")
