// Async iterables, generators and web streams under a permit.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Breaker, Clock, StreamError } from "fuseline";

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
