// The vectors that every implementation must match, and the recorded answers, through the public surface.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Breaker, CircuitOpenError, Clock, classify } from "fuseline";

const folder = join(process.env.FUSELINE_ROOT, "conformance");
const lines = (name) => readFileSync(join(folder, name), "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
const VECTORS = lines("vectors.jsonl");
const SHAPES = lines("errors.jsonl");
const NOON = 1_796_040_000_000; // Mon, 30 Nov 2026 12:00:00 GMT, the clock of all recorded answers
const TRANSPORTS = {
  dns_failure: "dns",
  connect_refused: "refused",
  connect_timeout: "connect_timeout",
  tls_handshake: "tls",
  reset: "reset",
  reset_before_headers: "reset",
  read_timeout_before_headers: "deadline",
  http2_goaway: "not_processed",
  idle_timeout: "stall",
};

/** One breaker on a clock that is moved by hand, and the calls that are out. */
class Case {
  constructor(name, settings) {
    this.clock = Clock.manual();
    this.breaker = new Breaker(name, { clock: this.clock, ...settings });
    this.permits = new Map();
    this.now = 0;
  }

  take(event) {
    const at = Math.max(this.now, event.at_ms);
    this.clock.advance(at - this.now);
    this.now = at;
    return { ...this[event.do](event), state: this.breaker.state };
  }

  acquire(event) {
    try {
      const permit = this.breaker.acquire();
      this.permits.set(event.as, permit);
      const answer = { decision: permit.isProbe ? "probe" : "allow" };
      return permit.wouldReject === undefined ? answer : { ...answer, would_reject: permit.wouldReject };
    } catch (error) {
      assert.ok(error instanceof CircuitOpenError);
      const answer = { decision: "reject", reason: error.reason };
      return error.reason === "open" ? { ...answer, retry_after_ms: error.retryAfterMs } : answer;
    }
  }

  success(event) {
    assert.ok(this.#of(event).success(event.took_ms ?? 0));
  }

  failure(event) {
    const notes = { retryAfterMs: event.retry_after_ms, openNow: event.open };
    assert.ok(this.#of(event).failure(event.kind, notes));
  }

  cancel(event) {
    assert.ok(this.#of(event).cancel());
  }

  progress(event) {
    this.permits.get(event.of).progress();
  }

  state() {}

  force(event) {
    if (event.to === "open") this.breaker.forceOpen(event.for_ms);
    else if (event.to === "closed") this.breaker.forceClosed(event.for_ms);
    else this.breaker.reset();
  }

  #of(event) {
    const permit = this.permits.get(event.of);
    this.permits.delete(event.of);
    return permit;
  }
}

/** Takes all lines; `settingsOf` gives a case's settings, or leaves it out. */
function run(settingsOf) {
  const counted = { cases: 0, events: 0 };
  const wrong = [];
  let current;
  for (const line of VECTORS) {
    if (line.case !== undefined) {
      const settings = settingsOf(line.case, line.breaker);
      current = settings === undefined ? undefined : new Case(line.case, settings);
      counted.cases += current === undefined ? 0 : 1;
    } else if (current !== undefined) {
      counted.events += 1;
      const answer = current.take(line);
      try {
        assert.deepEqual(answer, line.expect);
      } catch {
        wrong.push({ case: current.breaker.name, line, answer });
      }
    }
  }
  return { counted, wrong };
}

test("all vectors in all fields", () => {
  const { counted, wrong } = run((_, settings) => settings);
  assert.deepEqual(wrong.slice(0, 1), []);
  assert.deepEqual(counted, { cases: 166, events: 6453 });
});

test("the vectors with their settings in camel case", () => {
  const camel = (value) => {
    if (Array.isArray(value)) return value.map(camel);
    if (typeof value !== "object" || value === null) return value;
    const rows = Object.entries(value).map(([key, inner]) => [
      key.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase()),
      key === "kinds" ? Object.fromEntries(Object.entries(inner).map(([kind, row]) => [kind, camel(row)])) : camel(inner),
    ]);
    return Object.fromEntries(rows);
  };
  const { counted, wrong } = run((_, settings) => camel(settings));
  assert.deepEqual(wrong.slice(0, 1), []);
  assert.equal(counted.cases, 166);
});

test("presets are the systems that they are named after", () => {
  const presets = ["vernllm", "llmtest-rate", "llmtest", "omniroute", "agents", "n4n"];
  const { counted, wrong } = run((name, settings) => {
    const preset = presets.find((preset) => name.startsWith(preset));
    return preset && { preset, jitter: 0, kinds: settings.kinds };
  });
  assert.deepEqual(wrong.slice(0, 1), []);
  assert.ok(counted.cases > 20);
});

function sseEvent(block) {
  let [name, data] = ["", ""];
  for (const line of block.split("\n")) {
    const at = line.indexOf(":");
    const [field, value] = at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + 1)];
    if (field === "event") name = value.trim();
    else if (field === "data") data = value.trimStart();
    else if (field === "error") [name, data] = ["error", value.trimStart()]; // some llama.cpp builds
  }
  return [name, data];
}

/** The events of a recorded stream, by name and data. */
function eventsOf(shape) {
  const whole = shape.stream.join("");
  switch (shape.stream_format) {
    case "sse":
      return whole.split("\n\n").map(sseEvent);
    case "ndjson":
      return whole.split("\n").filter(Boolean).map((line) => ["", line]);
    case "json-array":
      for (const text of [whole, `${whole}]`]) {
        try {
          return JSON.parse(text).map((value) => ["", JSON.stringify(value)]);
        } catch {}
      }
      return [];
    default:
      return shape.stream.map((text) => {
        const { headers, payload } = JSON.parse(text);
        return [headers[":exception-type"] ?? headers[":event-type"], payload];
      });
  }
}

function mistakes(shape) {
  const isStream = Array.isArray(shape.stream);
  const verdict = classify({
    provider: shape.provider,
    status: shape.status ?? undefined,
    headers: shape.headers,
    body: isStream ? undefined : (shape.body ?? ""),
    events: isStream ? eventsOf(shape) : undefined,
    fault: TRANSPORTS[shape.transport],
    hasLeft: shape.transport === "client_abort",
    atMs: NOON,
  });
  const { expect, alt = {} } = shape;
  const kind = verdict.kind ?? "success";
  const got = {
    kind,
    provider_fault: verdict.providerFault,
    retryable: verdict.retryable,
    retry_after_ms: verdict.retryAfterMs ?? null,
    scope: verdict.scope,
  };
  // It says nothing where the request is at fault.
  if (["bad_request", "context_length", "content_policy", "success"].includes(kind)) got.scope = expect.scope;
  const near = shape.retry_after_tolerance_ms ?? 1;
  if (got.retry_after_ms !== null && Math.abs(got.retry_after_ms - expect.retry_after_ms) <= near) {
    got.retry_after_ms = expect.retry_after_ms;
  }
  return Object.keys(got).filter((key) => got[key] !== expect[key] && !(alt[key] ?? []).includes(got[key]));
}

test("all recorded answers are judged right", () => {
  const wrong = SHAPES.map((shape) => [shape.id, mistakes(shape)]).filter(([, found]) => found.length > 0);
  assert.equal(SHAPES.length, 333);
  assert.deepEqual(wrong, []);
});

test("what cannot be read is told", () => {
  assert.throws(() => classify({ fault: "gone" }), /`gone` is no fault; there are dns, refused/);
});
