// What an SDK sends again, as its headers tell it: without an SDK, and in no real time.

import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { Breaker, CircuitOpenError, Clock } from "fuseline";

const NINE = { trip: [{ rule: "consecutive", failures: 9 }] };
const URL = "http://host/v1/chat/completions";

/** A breaker whose fetch gives these answers, and how to send a request for so manieth a time. */
function world(answers, options) {
  const breaker = new Breaker("openai", {
    ...NINE,
    ...options,
    fetch: async (_, init) => {
      const answer = answers.shift();
      if (answer instanceof Error) throw answer;
      return typeof answer === "function" ? answer(init) : answer;
    },
  });
  const send = (repeat, body = "{}", signal) =>
    breaker.fetch(URL, { method: "POST", body, signal, headers: { "x-stainless-lang": "js", "x-stainless-retry-count": String(repeat) } });
  return { breaker, send };
}

const broken = Object.assign(new TypeError("fetch failed"), { cause: Object.assign(new Error("reset"), { code: "ECONNRESET" }) });
const failed = (status = 503, headers = {}) => new Response("down", { status, headers });
const good = () => Response.json({ choices: [{ message: { content: "well" } }] });

test("an error that is left unread waits for its repeat, and is a failure where none comes", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const { breaker, send } = world([failed(), failed()]);
    await (await send(0)).body.cancel();
    await send(0, "another");
    mock.timers.tick(9_999);
    assert.equal(breaker.getStatus().run, 0);
    mock.timers.tick(1);
    assert.equal(breaker.getStatus().run, 2);
  } finally {
    mock.timers.reset();
  }
});

test("an error that is read is a failure at once, by whoever reads, and its repeat adds none", async () => {
  const { breaker, send } = world([failed(), failed(), good()]);
  const answer = await send(0);
  assert.equal(breaker.getStatus().run, 0);
  assert.equal(await answer.clone().text(), "down");
  assert.equal(breaker.getStatus().run, 1);
  await (await send(1)).text();
  assert.equal(breaker.getStatus().run, 1, "it is the same call");
  await (await send(2)).text();
  assert.equal(breaker.getStatus().run, 0, "which came through in the end");
});

test("what must be known at once does not wait: a spent quota, a long hint, a fault of the request", async () => {
  const spent = () => Response.json({ error: { type: "insufficient_quota", code: "insufficient_quota" } }, { status: 429 });
  for (const [answer, state] of [[spent(), "open"], [failed(429, { "retry-after": "90" }), "open"], [failed(429, { "retry-after": "20" }), "closed"]]) {
    const { breaker, send } = world([answer]);
    await send(0);
    assert.deepEqual([breaker.state, breaker.getStatus().entered.open + breaker.getStatus().run > 0], [state, true]);
  }
});

test("a repeat goes on under the permit of its call, whatever the state is by then", async () => {
  const { breaker, send } = world([failed(), good()], { maxInFlight: 1 });
  await send(0);
  assert.equal(breaker.isHealthy(), false, "the permit is out");
  breaker.forceOpen();
  await (await send(1)).text();
  breaker.release();
  assert.deepEqual([breaker.isHealthy(), breaker.getStatus().rejected.forced], [true, 0]);
});

test("connections that break count once, however often they are tried, and the answer that comes in the end is a success", async () => {
  const { breaker, send } = world([broken, broken, failed(), broken, good()]);
  for (const repeat of [0, 1]) await assert.rejects(send(repeat), broken);
  await (await send(2)).text();
  await assert.rejects(send(3), broken);
  assert.deepEqual(breaker.getStatus().kinds, { network: 1 });
  await (await send(4)).text();
  assert.equal(breaker.getStatus().run, 0);
});

test("a probe that fails anew has failed, counted or not", async () => {
  const clock = Clock.manual();
  const { breaker, send } = world([broken, broken], { clock, trip: [{ rule: "consecutive", failures: 1 }], cooldown: "1s", jitter: 0 });
  await assert.rejects(send(0), broken);
  clock.advance(1_000);
  await assert.rejects(send(1), broken);
  assert.deepEqual([breaker.state, breaker.getStatus().episodes], ["open", 1]);
});

test("a repeat of what is counted asks anew, and is refused while the circuit is open", async () => {
  const { breaker, send } = world([broken], { trip: [{ rule: "consecutive", failures: 1 }] });
  await assert.rejects(send(0), broken);
  assert.equal(breaker.state, "open");
  const refused = await send(1);
  assert.deepEqual([refused.status, refused.headers.get("x-should-retry")], [503, "false"]);
  assert.ok(CircuitOpenError.from(refused) instanceof CircuitOpenError);
});

test("only the next sending of the same request is its repeat", async () => {
  const { breaker, send } = world([failed(), failed(), failed(), failed()]);
  await send(0);
  for (const [repeat, body] of [[2, "{}"], [1, "another"], [1, "third"]]) await (await send(repeat, body)).text();
  assert.equal(breaker.getStatus().run, 3);
});

test("who leaves a repeat gives the permit of its call back", async () => {
  const hangs = ({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const { breaker, send } = world([failed(), hangs], { maxInFlight: 1 });
  await send(0);
  const stop = new AbortController();
  const call = send(1, "{}", stop.signal);
  await new Promise(setImmediate);
  stop.abort();
  await assert.rejects(call, { name: "AbortError" });
  assert.deepEqual([breaker.isHealthy(), breaker.getStatus().run], [true, 0]);
});

test("so many that wait are enough: the oldest has failed then", async () => {
  const { breaker, send } = world(Array.from({ length: 501 }, () => failed()), { trip: [{ rule: "consecutive", failures: 1e6 }] });
  for (let number = 0; number < 500; number += 1) await send(0, String(number));
  assert.equal(breaker.getStatus().run, 0);
  await send(0, "one more");
  assert.equal(breaker.getStatus().run, 1);
});
