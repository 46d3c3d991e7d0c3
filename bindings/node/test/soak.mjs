// Ten million calls, and every other way that a call can go by the hundred thousand: nothing may grow. Eight threads with a
// million calls each: none may be lost.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

import { Breaker, Cache, Chain, CircuitOpenError } from "fuseline";

import { crowd } from "./crowd.mjs";

const CALLS = Number(process.env.CALLS ?? 10_000_000);
const require = createRequire(import.meta.url);
const { underWay } = require(join(dirname(require.resolve("fuseline")), "fuseline.node"));

const never = { trip: [{ rule: "consecutive", failures: 1e9 }] };
const breaker = new Breaker("soak", never);
const refusing = new Breaker("refusing");
refusing.forceOpen();
const chain = new Chain([[refusing, "a"], [breaker, "b"]]);
const degrading = new Chain([[breaker, "a"]], { budget: "1m", cache: new Cache({ maxBytes: 1 << 16 }) });
const stop = new AbortController();
let asked = 0;
const failure = Object.assign(new Error("down"), { status: 503, headers: { "retry-after": "1" } });

async function* words() {
  yield "a";
  yield "b";
}

const event = { choices: [{ index: 0, delta: { content: "word " }, finish_reason: null }] };
const end = { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
const body = `${`data: ${JSON.stringify(event)}\n\n`.repeat(5)}data: ${JSON.stringify(end)}\n\ndata: [DONE]\n\n`;
const fetching = new Breaker("fetching", {
  ...never,
  fetch: async () => new Response(body, { headers: { "content-type": "text/event-stream" } }),
});
const request = { method: "POST", body: JSON.stringify({ model: "large", stream: true, messages: [] }) };

// Each second request is the repeat of the one before it.
const repeating = new Breaker("repeating", { ...never, fetch: async () => new Response("down", { status: 503 }) });
const repeat = async (number) => {
  const headers = { "x-stainless-lang": "js", "x-stainless-retry-count": String(number) };
  return repeating.fetch("http://host/v1/chat/completions", { ...request, headers });
};

const good = async () => 1;
const bad = async () => {
  throw failure;
};
const ways = {
  good: [() => breaker.execute(good), 1],
  failing: [() => breaker.execute(bad).catch((error) => assert.equal(error, failure)), 100],
  refused: [() => refusing.execute(good).catch((error) => assert.ok(error instanceof CircuitOpenError)), 100],
  chained: [() => chain.execute(good), 100],
  budgeted: [() => degrading.execute(good, { key: String((asked += 1)), signal: stop.signal }), 100],
  streamed: [async () => { for await (const _ of await breaker.execute(words)); }, 100],
  left: [async () => { for await (const _ of await breaker.execute(words)) break; }, 100],
  forgotten: [() => breaker.execute(words), 1_000],
  permits: [() => void breaker.acquire(), 1_000],
  fetched: [async () => (await fetching.fetch("http://host/v1/chat/completions", request)).text(), 1_000],
  repeated: [async () => { await repeat(0); await (await repeat(1)).text(); }, 1_000],
  breakers: [async () => new Breaker("another").execute(good), 1_000],
};

async function settled() {
  for (let turn = 0; turn < 20; turn += 1) {
    globalThis.gc();
    await new Promise(setImmediate);
  }
  // What the engine sets aside to work in grows with the garbage that it meets; what is in use there is told by itself.
  const { rss, heapTotal, heapUsed, external } = process.memoryUsage();
  return { rss: rss - heapTotal, heapUsed: heapUsed + external };
}

const megabytes = (bytes) => (bytes / 2 ** 20).toFixed(1);
let failed = 0;
for (const [name, [call, share]] of Object.entries(ways)) {
  const turn = async (count) => {
    for (let at = 0; at < count; at += 1) {
      await call();
      // Whatever is forgotten can only be collected between tasks.
      if (share > 1 && at % 1_000 === 0) await new Promise(setImmediate);
    }
  };
  const count = CALLS / share;
  // The process's memory has its full size only after a while; from then on it may not grow.
  await turn(share > 1 ? 3 * count : count / 5);
  const before = await settled();
  await turn(count);
  const after = await settled();
  const grown = after.heapUsed - before.heapUsed;
  const isSteady = grown < 2 ** 20 && after.rss - before.rss < 16 * 2 ** 20 && underWay() === 0;
  failed += isSteady ? 0 : 1;
  const told = `heap ${megabytes(grown)} MB, beside the heap ${megabytes(after.rss - before.rss)} MB, ${underWay()} under way`;
  console.log(`${isSteady ? "steady" : "GROWS"}: ${count} ${name}: ${told}`);
}
const { counted, wanted } = await crowd("a crowd", CALLS / 10);
const isWhole = counted.join() === wanted.join();
failed += isWhole ? 0 : 1;
console.log(`${isWhole ? "whole" : "LOST"}: ${counted.join(" calls, ")} failures of ${wanted.join(" and ")}`);
console.log(`${Object.keys(ways).length + 1 - failed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
