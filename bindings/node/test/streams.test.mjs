// Async iterables, generators and web streams under a permit, and chains.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Breaker, Chain, CircuitOpenError, Clock, StreamError } from "fuseline";

const SMALL = { trip: [{ rule: "consecutive", failures: 2 }], cooldown: "10s", jitter: 0 };
const fresh = (options) => new Breaker("openai", { ...SMALL, ...options });

async function* words(count, ending) {
  for (let word = 0; word < count; word += 1) yield `word ${word}`;
  if (ending instanceof Error) throw ending;
  if (ending !== undefined) await ending;
}

/** What an SDK gives: an object that makes an iterator when it is read. */
class SdkStream {
  #make;
  constructor(make) {
    this.#make = make;
  }
  [Symbol.asyncIterator]() {
    return this.#make();
  }
}

const forms = {
  generator: (make) => make(),
  object: (make) => new SdkStream(make),
  "web stream": (make) => ReadableStream.from(make()),
};

async function read(stream, most = Infinity) {
  const items = [];
  if (most === 0) return items;
  for await (const item of stream) {
    items.push(item);
    if (items.length >= most) break;
  }
  return items;
}

for (const [form, of] of Object.entries(forms)) {
  test(`${form}: an end is a success`, async () => {
    const breaker = fresh();
    breaker.acquire().failure("timeout");
    const stream = await breaker.execute(async () => of(() => words(3)));
    assert.equal(breaker.getStatus().run, 1, "nothing is settled before the end");
    assert.deepEqual(await read(stream), ["word 0", "word 1", "word 2"]);
    assert.equal(breaker.getStatus().run, 0);
  });

  test(`${form}: an error in the middle is its kind`, async () => {
    const breaker = fresh();
    const failure = Object.assign(new Error("busy"), { status: 529 });
    const stream = await breaker.execute(async () => of(() => words(2, failure)));
    await assert.rejects(read(stream), failure);
    assert.deepEqual(breaker.getStatus().kinds, { overloaded: 1 });
  });

  test(`${form}: silence is a stall`, async () => {
    const breaker = fresh({ timeouts: { stall: 40 } });
    const stream = await breaker.execute(async () => of(() => words(2, new Promise(() => {}))));
    await assert.rejects(read(stream), (error) => error instanceof StreamError && error.kind === "stream_stall");
    assert.deepEqual(breaker.getStatus().kinds, { stream_stall: 1 });
  });

  test(`${form}: who leaves says nothing`, async () => {
    const breaker = fresh({ maxInFlight: 1 });
    const stream = await breaker.execute(async () => of(() => words(5)));
    assert.equal(breaker.isHealthy(), false, "the permit is out");
    assert.deepEqual(await read(stream, 2), ["word 0", "word 1"]);
    assert.deepEqual([breaker.isHealthy(), breaker.getStatus().run], [true, 0]);
  });

  test(`${form}: one that nobody reads is given back when it is forgotten`, async () => {
    const breaker = fresh({ maxInFlight: 1 });
    await breaker.execute(async () => of(() => words(5)));
    for (let turn = 0; turn < 50 && !breaker.isHealthy(); turn += 1) {
      globalThis.gc();
      await new Promise(setImmediate);
    }
    assert.equal(breaker.isHealthy(), true);
  });
}

test("an SDK's stream stays the object that it is", async () => {
  const stream = new SdkStream(() => words(1));
  assert.equal(await fresh().execute(async () => stream), stream);
});

test("a probe's stream is a success once it has delivered for long enough, and settles nothing twice", async () => {
  const clock = Clock.manual();
  const breaker = fresh({ clock, probeProof: "5s", successesToClose: 1 });
  breaker.acquire().failure("timeout");
  breaker.acquire().failure("timeout");
  clock.advance(10_000);
  const stream = await breaker.execute(async () => words(10));
  await stream.next();
  clock.advance(5_000);
  await stream.next();
  assert.equal(breaker.state, "closed");
  const other = breaker.acquire();
  await read(stream);
  assert.equal(other.isSettled, false);
  other.failure("timeout");
  assert.equal(breaker.getStatus().run, 1, "the stream's end took nobody else's place");
});

test("a chain goes on to the next, skips the open, and tells the shortest wait", async () => {
  const [first, second] = [fresh(), new Breaker("groq", { ...SMALL, cooldown: "5s" })];
  const chain = new Chain([[first, "large"], [second, "small"]]);
  let down = new Set(["large"]);
  const asked = [];
  const ask = async (model) => {
    asked.push(model);
    if (down.has(model)) throw Object.assign(new Error(`${model} is down`), { status: 503 });
    return `an answer of ${model}`;
  };
  for (let call = 0; call < 3; call += 1) assert.equal(await chain.execute(ask), "an answer of small");
  assert.deepEqual(asked, ["large", "small", "large", "small", "small"]);
  down = new Set(["large", "small"]);
  await assert.rejects(chain.execute(ask), { message: "small is down" });
  await assert.rejects(chain.execute(ask), { message: "small is down" });
  assert.equal(chain.isHealthy(), false);
  await assert.rejects(chain.execute(ask), (error) => error instanceof CircuitOpenError && error.breaker === "groq");
});

test("a chain hands on what says that the request is at fault, and goes on from an answer that is a failure", async () => {
  const chain = new Chain([["chain's first", 1], [fresh({ check: () => "empty_response" }), 2], [fresh(), 3]]);
  const wrong = Object.assign(new Error("no such model"), { status: 404 });
  let asked = 0;
  await assert.rejects(chain.execute(async () => { asked += 1; throw wrong; }), wrong);
  assert.equal(asked, 1);
  const busy = Object.assign(new Error("busy"), { status: 529 });
  assert.equal(await chain.execute(async (target) => { if (target === 1) throw busy; return target; }), 3);
});

test("a chain waits for the first that may be back, and no longer than it is told", async () => {
  const breaker = fresh({ cooldown: 30 });
  breaker.acquire().failure("timeout");
  breaker.acquire().failure("timeout");
  const chain = new Chain([[breaker, 1]], { maxWait: "2s" });
  assert.equal(await chain.execute(async (target) => target), 1);
  breaker.forceOpen("10s");
  await assert.rejects(chain.execute(async () => 1), { reason: "forced" });
  assert.throws(() => new Chain([]), /targets is empty/);
});

test("a chain's wait ends with its signal", async () => {
  const breaker = fresh();
  breaker.forceOpen("1s");
  const stop = new AbortController();
  const call = new Chain([[breaker, 1]], { maxWait: "2s" }).execute(async () => 1, stop);
  const began = performance.now();
  stop.abort();
  await assert.rejects(call, { name: "AbortError" });
  assert.ok(performance.now() - began < 500, "at once");
});
