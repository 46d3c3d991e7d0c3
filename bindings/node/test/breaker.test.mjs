// Calls, permits, judging, signals, settings, events: without a network.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { Worker } from "node:worker_threads";

import * as fuseline from "fuseline";

import { crowd } from "./crowd.mjs";

const { Breaker, CircuitOpenError, Clock, Registry, RegistryError, SettingsError, StreamError } = fuseline;
const require = createRequire(import.meta.url);

const SMALL = { trip: [{ rule: "consecutive", failures: 2 }], cooldown: "10s", jitter: 0 };

function closed(options) {
  const clock = Clock.manual();
  return { clock, breaker: new Breaker("openai", { clock, ...SMALL, ...options }) };
}

const fails = (error) => async () => {
  throw error;
};
const httpError = (status, headers = {}) => Object.assign(new Error(`status ${status}`), { status, headers });

async function failTimes(breaker, times, error = httpError(503)) {
  for (let time = 0; time < times; time += 1) await assert.rejects(breaker.execute(fails(error)), error);
}

test("an outage opens, the wait is told, a probe closes", async () => {
  const { breaker, clock } = closed();
  assert.equal(await breaker.execute(async () => 42), 42);
  await failTimes(breaker, 2);
  assert.equal(breaker.state, "open");
  assert.equal(breaker.isHealthy(), false);
  let calls = 0;
  await assert.rejects(
    breaker.execute(async () => (calls += 1)),
    (error) =>
      error instanceof CircuitOpenError &&
      error.name === "CircuitOpenError" &&
      error.code === "circuit_open" &&
      error.breaker === "openai" &&
      error.scope === "provider" &&
      error.reason === "open" &&
      error.retryAfterMs === 10_000 &&
      error.message === "circuit `openai` is open, retry in 10 s",
  );
  assert.equal(calls, 0, "nothing is called while open");
  clock.advance(10_000);
  for (const state of ["half_open", "closed"]) {
    await breaker.execute(async () => "good");
    assert.equal(breaker.state, state);
  }
});

test("one probe at a time", async () => {
  const { breaker, clock } = closed();
  await failTimes(breaker, 2);
  clock.advance(10_000);
  let finish;
  const probe = breaker.execute(() => new Promise((resolve) => (finish = resolve)));
  await assert.rejects(breaker.execute(async () => 1), { reason: "probing" });
  finish();
  await probe;
  assert.equal(breaker.getStatus().goodProbes, 1);
});

test("what errors say", async () => {
  const fetchFailed = (code) => new TypeError("fetch failed", { cause: Object.assign(new Error(code), { code }) });
  const named = (name, message = "") => Object.assign(new Error(message), { name });
  const cases = [
    [httpError(503), { server_error: 1 }],
    [httpError(529), { overloaded: 1 }],
    [httpError(429), { rate_limit: 1 }],
    [httpError(400), {}],
    [httpError(401), {}],
    [{ statusCode: 502, responseHeaders: {}, responseBody: "bad gateway" }, { server_error: 1 }],
    [{ response: { status: 500, headers: {}, data: { error: { message: "x" } } } }, { server_error: 1 }],
    [fetchFailed("ECONNREFUSED"), { network: 1 }],
    [fetchFailed("ENOTFOUND"), { network: 1 }],
    [fetchFailed("UND_ERR_HEADERS_TIMEOUT"), { timeout: 1 }],
    [fetchFailed("UND_ERR_CONNECT_TIMEOUT"), { timeout: 1 }],
    [new TypeError("terminated"), { network: 1 }],
    [named("TimeoutError"), { timeout: 1 }],
    [named("AbortError"), {}],
    [new SyntaxError("no JSON"), {}],
    [new TypeError("undefined is not a function"), {}],
    [new RangeError("mine"), {}],
    [new Error("what the client threw"), { server_error: 1 }],
    ["a text", { server_error: 1 }],
    [new Error("outer", { cause: httpError(503) }), { server_error: 1 }],
    [new StreamError({ message: "cut", ending: "stream_truncated", kind: "stream_truncated" }), { stream_truncated: 1 }],
    [new AggregateError([fetchFailed("ECONNREFUSED")]), { network: 1 }],
  ];
  for (const [error, kinds] of cases) {
    const { breaker } = closed();
    await assert.rejects(breaker.execute(fails(error)), (thrown) => thrown === error);
    assert.deepEqual(breaker.getStatus().kinds, kinds, String(error));
  }
});

test("a circle of causes comes to an end", async () => {
  const error = new Error("round");
  error.cause = error;
  const { breaker } = closed();
  await assert.rejects(breaker.execute(fails(error)), error);
  assert.equal(breaker.getStatus().run, 1);
});

test("report 36: a hint beyond patience opens at once for as long", async () => {
  const { breaker } = closed();
  await failTimes(breaker, 1, httpError(429, { "retry-after": "90" }));
  assert.equal(breaker.state, "open");
  assert.equal(breaker.getStatus().retryAfterMs, 90_000);
  assert.equal(breaker.history()[0].why.cause, "open_now");
});

test("report 8: failures in one moment open once, and the wait is not moved", async () => {
  for (const crowd of [6, 20, 100]) {
    const { breaker, clock } = closed();
    const all = Array.from({ length: crowd }, () => breaker.execute(fails(httpError(500))));
    await Promise.allSettled(all);
    assert.equal(breaker.history().filter(({ to }) => to === "open").length, 1);
    clock.advance(10_000);
    assert.equal(breaker.isHealthy(), true);
  }
});

test("report 33: who presses stop says nothing about the provider", async () => {
  const { breaker } = closed();
  for (let user = 0; user < 50; user += 1) {
    const stop = new AbortController();
    const call = breaker.execute((signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))), {
      signal: stop.signal,
    });
    stop.abort();
    await assert.rejects(call, { name: "AbortError" });
  }
  assert.deepEqual([breaker.state, breaker.getStatus().run], ["closed", 0]);
  assert.equal(await breaker.execute(async () => "served"), "served");
});

test("signals: aborted before is not called, a reason of one's own says nothing, a timeout counts", async () => {
  const { breaker } = closed();
  const why = new Error("changed my mind");
  await assert.rejects(
    breaker.execute(() => assert.fail("called"), { signal: AbortSignal.abort(why) }),
    why,
  );
  const stop = new AbortController();
  const call = breaker.execute(async (signal) => {
    stop.abort(why);
    signal.throwIfAborted();
  }, stop);
  await assert.rejects(call, why);
  assert.equal(breaker.getStatus().run, 0);
  const late = AbortSignal.abort(new DOMException("too long", "TimeoutError"));
  const permit = breaker.acquire();
  assert.equal(permit.error(late.reason, late), "timeout");
});

test("a cancelled probe frees its slot at once", async () => {
  const { breaker, clock } = closed();
  await failTimes(breaker, 2);
  clock.advance(10_000);
  await assert.rejects(breaker.execute(fails(Object.assign(new Error(), { name: "AbortError" }))));
  assert.equal(breaker.state, "half_open");
  await breaker.execute(async () => "another probe");
  assert.equal(breaker.getStatus().goodProbes, 1);
});

test("a judge and a check of one's own; what they do wrong is nobody's failure", async () => {
  const warned = [];
  const onWarning = (warning) => warned.push(warning.message);
  process.on("warning", onWarning);
  const { breaker } = closed({
    trip: [{ rule: "consecutive", failures: 5 }],
    judge: (error) => ({ mine: false, theirs: "overloaded", typo: "overlaoded", rules: undefined })[error.message] ?? (error.message === "bug" ? assert.fail("a bug") : undefined),
    check: (value) => (value === "" ? "empty_response" : undefined),
  });
  await failTimes(breaker, 1, new Error("mine"));
  await failTimes(breaker, 1, new Error("typo"));
  assert.deepEqual(breaker.getStatus().kinds, {});
  await failTimes(breaker, 1, new Error("theirs"));
  assert.deepEqual(breaker.getStatus().kinds, { overloaded: 1 });
  await failTimes(breaker, 1, new Error("bug"));
  assert.deepEqual(breaker.getStatus().kinds, { overloaded: 1, server_error: 1 });
  breaker.reset();
  assert.equal(await breaker.execute(async () => ""), "");
  assert.deepEqual(breaker.getStatus().kinds, { empty_response: 1 });
  await new Promise(setImmediate);
  process.off("warning", onWarning);
  assert.match(warned[0], /`overlaoded` is no kind of failure; there are server_error, overloaded/);
  assert.equal(warned[1], "a bug");
});

test("functions that throw, give a value, or are wrapped", async () => {
  const { breaker } = closed();
  assert.equal(await breaker.execute(() => 7), 7);
  await assert.rejects(breaker.execute(() => { throw httpError(500); }), { status: 500 });
  const ask = breaker.wrap(async function ask(question) {
    return `${this.name}: ${question}`;
  });
  assert.equal(await ask.call({ name: "me" }, "why?"), "me: why?");
});

test("permits settle once, and are given back when forgotten", async () => {
  const { breaker, clock } = closed({ maxInFlight: 1 });
  const permit = breaker.acquire();
  assert.throws(() => breaker.acquire(), { reason: "saturated" });
  clock.advance(5);
  assert.deepEqual([permit.isSettled, permit.isProbe, permit.elapsedMs], [false, false, 5]);
  assert.equal(permit.failure("timeout", { code: 504 }), true);
  assert.equal(permit.success(), false);
  assert.deepEqual([permit.isSettled, permit.elapsedMs], [true, undefined]);
  assert.deepEqual(breaker.getStatus().lastFailures.map(({ kind, code }) => [kind, code]), [["timeout", 504]]);
  assert.throws(() => breaker.acquire().failure("nothing"), /`nothing` is no kind of failure/);

  const { breaker: other } = closed({ maxInFlight: 1 });
  (() => void other.acquire())();
  for (let turn = 0; turn < 50 && !other.isHealthy(); turn += 1) {
    globalThis.gc();
    await new Promise(setImmediate);
  }
  assert.equal(other.isHealthy(), true, "a forgotten permit is given back");
});

test("settings that cannot work are refused, all at once", () => {
  assert.throws(
    () => new Breaker("x", { probes: 0, jitter: 2, trips: [], cooldown: "soon", trip: [{ rule: "consecutive", failure: 2 }] }),
    (error) => {
      assert.ok(error instanceof SettingsError);
      assert.match(error.message, /trips is no setting, must be one of .*cooldown.*trip/);
      assert.match(error.message, /trip\[0\].failure is no setting, must be one of failures, rule/);
      return true;
    },
  );
  assert.throws(() => new Breaker("x", { probes: 0, jitter: 2 }), { problems: ["jitter is 2, must be 0 to 1", "probes is 0, must be 1 to 64"] });
  assert.throws(() => new Breaker("x", { cooldown: "soon" }), /cooldown is "soon"/);
  assert.throws(() => new Breaker("x", { maxCooldown: 1, max_cooldown: 2 }), /max_cooldown is said twice/);
  assert.throws(() => new Breaker("x", { timeouts: { stall: "never" } }), /timeouts.stall is "never", must be a duration/);
  assert.throws(() => new Breaker("x", { kinds: { timeout: { counts: true } } }), /kinds.timeout.counts is no setting/);
  assert.throws(() => new Breaker("x", { preset: "hystrix" }), /preset is "hystrix"/);
  assert.throws(() => new Breaker("x", { judge: true }), /judge is boolean, must be a function/);
});

test("a cusum rule has defaults, and is refused where its shares are not in order", async () => {
  const { breaker } = closed({ trip: [{ rule: "cusum" }] });
  await failTimes(breaker, 9);
  const [seen] = breaker.getStatus().rules;
  assert.deepEqual([seen.rule, seen.observed, seen.threshold], ["cusum", 9, 9.142217048]);
  await failTimes(breaker, 1);
  assert.equal(breaker.state, "open");
  const strict = closed({ trip: [{ rule: "cusum", well: 0.1, ill: 0.9, callsPerFalseAlarm: 100 }] }).breaker;
  await failTimes(strict, 3);
  assert.equal(strict.state, "open");
  assert.throws(() => new Breaker("x", { trip: [{ rule: "cusum", well: 0.3 }] }), /trip\[0\].ill is 0.15, must be more than `well`/);
});

test("durations are texts or milliseconds", async () => {
  for (const cooldown of ["1m 30s", 90_000, "90s"]) {
    const { breaker } = closed({ cooldown, maxCooldown: "5m" });
    await failTimes(breaker, 2);
    assert.equal(breaker.getStatus().retryAfterMs, 90_000);
  }
});

test("events are heard after the call, in order, and harm nobody", async () => {
  const { breaker, clock } = closed();
  const heard = [];
  breaker.on("transition", ({ from, to, why }) => heard.push(`${from} > ${to}: ${why.cause}`));
  const once = () => {
    throw new Error("a listener's own");
  };
  breaker.on("open", once);
  await failTimes(breaker, 2);
  await null;
  clock.advance(10_000);
  await breaker.execute(async () => 1);
  await breaker.execute(async () => 1);
  await null;
  assert.deepEqual(heard, [
    "closed > open: consecutive",
    "open > half_open: cooldown",
    "half_open > closed: probe",
  ]);
  breaker.off("open", once);
  breaker.forceOpen("5s");
  await null;
  assert.equal(heard.at(-1), "closed > forced_open: operator");
});

test("an operator's hand", () => {
  const { breaker, clock } = closed();
  breaker.forceOpen("5s");
  assert.throws(() => breaker.acquire(), { reason: "forced", retryAfterMs: 5_000 });
  clock.advance(5_000);
  assert.equal(breaker.state, "closed");
  breaker.forceClosed();
  assert.equal(breaker.state, "forced_closed");
  breaker.release();
  assert.equal(breaker.state, "closed");
  breaker.reconfigure({ ...SMALL, trip: [{ rule: "consecutive", failures: 1 }] });
  breaker.acquire().failure("timeout");
  assert.equal(breaker.state, "open");
  breaker.reset();
  assert.equal(breaker.state, "closed");
});

test("breakers by name", () => {
  const registry = new Registry({ maxBreakers: 2, clock: Clock.manual() });
  const events = registry.events();
  assert.equal(registry.findBreaker("openai"), undefined, "none is not closed");
  assert.equal(registry.isHealthy("openai"), true);
  const breaker = registry.getBreaker("openai", { cooldown: "20s" });
  assert.equal(registry.getBreaker("openai", { cooldown: "20s" }), breaker);
  assert.equal(registry.getBreaker("openai"), breaker);
  assert.equal(registry.findBreaker("openai"), breaker);
  assert.throws(() => registry.getBreaker("openai", { cooldown: "40s" }), { name: "RegistryError", isTaken: true });
  assert.throws(() => registry.getBreaker("openai", { cooldown: "20s", judge: () => false }), RegistryError);
  breaker.forceOpen();
  assert.equal(registry.isHealthy("openai"), false);
  const model = registry.getBreaker("openai", { model: "gpt-5" });
  assert.deepEqual([model.name, model.scope], ["openai/gpt-5", "model"]);
  assert.throws(() => registry.getBreaker("third"), (error) => error instanceof RegistryError && !error.isTaken);
  assert.deepEqual(registry.getStatus().map(({ name, state }) => [name, state]), [["openai", "forced_open"], ["openai/gpt-5", "closed"]]);
  assert.deepEqual(events.drain().map(({ name, transition }) => [name, transition.to]), [["openai", "forced_open"]]);
  assert.deepEqual(events.drain(), []);
  registry.remove("openai");
  assert.equal(registry.findBreaker("openai"), undefined);
});

test("require and import give the same, and threads share the process's breakers", async () => {
  const required = require("fuseline");
  assert.deepEqual(Object.keys(required).sort(), Object.keys(fuseline).sort());
  assert.equal(required.Breaker, Breaker);
  const breaker = fuseline.getBreaker("shared between threads", SMALL);
  const code = `
    const { getBreaker } = require(${JSON.stringify(require.resolve("fuseline"))});
    getBreaker("shared between threads", ${JSON.stringify(SMALL)}).forceOpen();
  `;
  const worker = new Worker(code, { eval: true });
  await new Promise((resolve, reject) => worker.on("exit", resolve).on("error", reject));
  assert.equal(breaker.state, "forced_open");
  assert.ok(fuseline.getStatus().some(({ name }) => name === "shared between threads"));
  assert.equal(fuseline.findBreaker("shared between threads"), breaker);
  assert.equal(fuseline.isHealthy("shared between threads"), false);
});

test("eight threads lose no count", async () => {
  const { counted, wanted } = await crowd("a crowd", 2_000);
  assert.deepEqual(counted, wanted);
});
