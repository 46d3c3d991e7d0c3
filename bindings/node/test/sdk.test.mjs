// The real OpenAI, Anthropic and Vercel SDKs with `breaker.fetch`, streamed and not, against a provider on loopback.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";

import { createOpenAI } from "@ai-sdk/openai";
import Anthropic from "@anthropic-ai/sdk";
import { generateText, streamText } from "ai";
import OpenAI from "openai";

import { Breaker, CircuitOpenError, Clock, StreamError } from "fuseline";

import { CUT, Provider, RESET, SILENCE, wireOf } from "./provider.mjs";

const QUESTION = [{ role: "user", content: "How are things?" }];
const SMALL = { trip: [{ rule: "consecutive", failures: 2 }], cooldown: "10s", jitter: 0 };
const NINE = { trip: [{ rule: "consecutive", failures: 9 }] };

const provider = new Provider();
before(() => provider.start());
after(() => provider.stop());
beforeEach(() => {
  provider.hits = 0;
  provider.left = 0;
  provider.answer({});
});

const SDKS = {
  openai: {
    module: OpenAI,
    path: "/v1",
    spent: wireOf("").spent,
    start: (client, stream, options) => client.chat.completions.create({ model: "large", messages: QUESTION, stream }, options),
    text: (event) => event.choices[0]?.delta.content ?? "",
    whole: (answer) => answer.choices[0].message.content,
    empty: wireOf("").whole(""),
  },
  anthropic: {
    module: Anthropic,
    path: "",
    spent: wireOf("/messages").spent,
    start: (client, stream, options) => client.messages.create({ model: "large", messages: QUESTION, max_tokens: 64, stream }, options),
    text: (event) => event.delta?.text ?? "",
    whole: (answer) => answer.content[0].text,
    empty: wireOf("/messages").whole(""),
  },
};

/** Calls one SDK one way. */
function callerOf(sdk, breaker, options) {
  const client = new sdk.module({
    baseURL: provider.url + sdk.path,
    apiKey: "key",
    maxRetries: 0,
    logLevel: "off",
    fetch: breaker.fetch,
    ...options,
  });
  return async (stream, { onEvent, ...given } = {}) => {
    const answer = await sdk.start(client, stream, given);
    if (!stream) return sdk.whole(answer);
    let text = "";
    for await (const event of answer) {
      text += sdk.text(event);
      if (text !== "" && onEvent?.(answer, text) === "leave") break;
    }
    return text;
  };
}

for (const [name, sdk] of Object.entries(SDKS)) {
  for (const stream of [false, true]) {
    const how = `${name}, ${stream ? "streamed" : "plain"}`;

    test(`${how}: a good answer is a success`, async () => {
      const breaker = new Breaker(name, SMALL);
      breaker.acquire().failure("timeout");
      assert.equal(await callerOf(sdk, breaker)(stream), "All is well.");
      assert.deepEqual([breaker.getStatus().run, provider.hits], [0, 1]);
    });

    test(`${how}: an outage opens, nothing is sent, a probe closes`, async () => {
      const clock = Clock.manual();
      const breaker = new Breaker(name, { clock, ...SMALL });
      const call = callerOf(sdk, breaker);
      provider.answer({ status: 503 });
      for (let time = 0; time < 2; time += 1) await assert.rejects(call(stream), sdk.module.InternalServerError);
      assert.equal(breaker.state, "open");
      await assert.rejects(call(stream), (error) => {
        const refused = CircuitOpenError.from(error);
        assert.ok(error instanceof sdk.module.InternalServerError, "an SDK's own error");
        assert.deepEqual([refused.breaker, refused.reason, refused.retryAfterMs], [name, "open", 10_000]);
        return true;
      });
      assert.equal(provider.hits, 2);
      clock.advance(10_000);
      provider.answer({});
      await call(stream);
      assert.equal(breaker.state, "half_open");
      await call(stream);
      assert.deepEqual([breaker.state, provider.hits], ["closed", 4]);
    });

    test(`${how}: the SDK does not repeat a refusal`, async () => {
      const breaker = new Breaker(name, SMALL);
      breaker.forceOpen();
      const began = performance.now();
      await assert.rejects(callerOf(sdk, breaker, { maxRetries: 3 })(stream), sdk.module.InternalServerError);
      assert.ok(performance.now() - began < 400);
      assert.equal(breaker.getStatus().rejected.forced, 1);
      assert.equal(provider.hits, 0);
    });

    test(`${how}: the SDK's own repeats are one call, which ends as the last of them does`, async () => {
      const breaker = new Breaker(name, { ...NINE, maxInFlight: 1 });
      const call = callerOf(sdk, breaker, { maxRetries: 2 });
      const soon = { status: 500, headers: { "retry-after-ms": "1" } };
      provider.answer(soon);
      await assert.rejects(call(stream), sdk.module.InternalServerError);
      assert.deepEqual([provider.hits, breaker.getStatus().run, breaker.isHealthy()], [3, 1, true], "known at once");
      provider.answer(soon, soon, {});
      assert.equal(await call(stream), "All is well.");
      assert.deepEqual([provider.hits, breaker.getStatus().run, breaker.isHealthy()], [6, 0, true]);
    });

    test(`${how}: a crowd of the same calls is as many, each once`, async () => {
      const breaker = new Breaker(name, NINE);
      const call = callerOf(sdk, breaker, { maxRetries: 1 });
      provider.answer({ status: 503, headers: { "retry-after-ms": "1" } });
      await Promise.allSettled(Array.from({ length: 5 }, () => call(stream)));
      assert.deepEqual([provider.hits, breaker.getStatus().run], [10, 5]);
    });

    test(`${how}: connections that break are counted at once, and once a call`, async () => {
      const breaker = new Breaker(name, NINE);
      provider.answer({ instead: RESET });
      const arrived = provider.arrival();
      const call = callerOf(sdk, breaker, { maxRetries: 1 })(stream);
      await arrived;
      for (let turn = 0; turn < 100 && breaker.getStatus().run === 0; turn += 1) await new Promise(setImmediate);
      assert.deepEqual([provider.hits, breaker.getStatus().kinds], [1, { network: 1 }]);
      await assert.rejects(call, sdk.module.APIConnectionError);
      assert.deepEqual([provider.hits, breaker.getStatus().kinds], [2, { network: 1 }]);
    });

    test(`${how}: a probe that the SDK repeats is one probe`, async () => {
      const clock = Clock.manual();
      const breaker = new Breaker(name, { clock, ...SMALL, successesToClose: 1 });
      breaker.acquire().failure("timeout");
      breaker.acquire().failure("timeout");
      clock.advance(10_000);
      provider.answer({ status: 500, headers: { "retry-after-ms": "1" } }, {});
      assert.equal(await callerOf(sdk, breaker, { maxRetries: 1 })(stream), "All is well.");
      const { state, entered } = breaker.getStatus();
      assert.deepEqual([state, entered.open], ["closed", 1]);
    });

    test(`${how}: report 36, a hint beyond patience opens at once for as long`, async () => {
      const breaker = new Breaker(name, { clock: Clock.manual(), ...SMALL });
      provider.answer({ status: 429, headers: { "retry-after": "90" } });
      await assert.rejects(callerOf(sdk, breaker)(stream), sdk.module.RateLimitError);
      assert.deepEqual([breaker.state, breaker.getStatus().retryAfterMs], ["open", 90_000]);
    });

    test(`${how}: a short hint counts and opens nothing`, async () => {
      const breaker = new Breaker(name, SMALL);
      provider.answer({ status: 429, headers: { "retry-after": "5" } });
      await assert.rejects(callerOf(sdk, breaker)(stream), sdk.module.RateLimitError);
      assert.deepEqual([breaker.state, breaker.getStatus().kinds], ["closed", { rate_limit: 1 }]);
    });

    test(`${how}: a spent quota opens at once for ten minutes`, async () => {
      const breaker = new Breaker(name, { clock: Clock.manual(), ...SMALL });
      provider.answer(sdk.spent);
      await assert.rejects(callerOf(sdk, breaker)(stream), (error) => error.status === sdk.spent.status && error.message.length > 4);
      const { state, retryAfterMs, why } = breaker.getStatus();
      assert.deepEqual([state, retryAfterMs, why.why.kind], ["open", 600_000, "quota_exhausted"]);
    });

    test(`${how}: a caller's own mistake says nothing`, async () => {
      const breaker = new Breaker(name, SMALL);
      breaker.acquire().failure("timeout");
      provider.answer({ status: 400 }, { status: 401 }, { status: 404 });
      for (let time = 0; time < 3; time += 1) await assert.rejects(callerOf(sdk, breaker)(stream), sdk.module.APIError);
      assert.equal(breaker.getStatus().run, 1);
    });

    test(`${how}: a refused or reset connection is a failure`, async () => {
      const breaker = new Breaker(name, { trip: [{ rule: "consecutive", failures: 5 }] });
      await assert.rejects(callerOf(sdk, breaker, { baseURL: "http://127.0.0.1:9" })(stream), sdk.module.APIConnectionError);
      provider.answer({ instead: RESET });
      await assert.rejects(callerOf(sdk, breaker)(stream), sdk.module.APIConnectionError);
      assert.deepEqual(breaker.getStatus().kinds, { network: 2 });
    });

    test(`${how}: silence before the answer is a timeout`, async () => {
      const breaker = new Breaker(name, { ...SMALL, timeouts: { firstToken: 80, answer: 80 } });
      provider.answer({ instead: SILENCE });
      await assert.rejects(callerOf(sdk, breaker)(stream), sdk.module.APIConnectionTimeoutError);
      assert.deepEqual(breaker.getStatus().kinds, { timeout: 1 });
    });

    test(`${how}: who leaves before the answer says nothing; who has waited in vain has met a timeout`, async () => {
      const clock = Clock.manual();
      const breaker = new Breaker(name, { clock, ...SMALL, maxInFlight: 1 });
      provider.answer({ instead: SILENCE });
      const call = callerOf(sdk, breaker);
      for (const [waited, kinds] of [[19_000, {}], [20_000, { timeout: 1 }]]) {
        const stop = new AbortController();
        const arrived = provider.arrival();
        const left = call(stream, { signal: stop.signal });
        await arrived;
        clock.advance(waited);
        stop.abort();
        await assert.rejects(left, sdk.module.APIUserAbortError);
        assert.deepEqual([breaker.getStatus().kinds, breaker.isHealthy()], [kinds, true]);
      }
    });
  }

  test(`${name}: a timeout that the SDK was given for a call counts`, async () => {
    const breaker = new Breaker(name, SMALL);
    provider.answer({ instead: SILENCE });
    await assert.rejects(callerOf(sdk, breaker)(false, { timeout: 1_000 }), sdk.module.APIConnectionTimeoutError);
    assert.deepEqual(breaker.getStatus().kinds, { timeout: 1 });
  });

  test(`${name}: an answer without content is a failure`, async () => {
    const breaker = new Breaker(name, SMALL);
    provider.answer({ body: sdk.empty });
    await callerOf(sdk, breaker)(false).catch(() => {});
    assert.deepEqual(breaker.getStatus().kinds, { empty_response: 1 });
  });

  const broken = {
    "stalls in mid-stream": [["begin", "so ", "far ", SILENCE], "stream_stall", StreamError],
    "says nothing but its begin": [["begin", SILENCE], "stream_stall", StreamError],
    "ends without its end marker": [["begin", "so ", "far ", CUT], "stream_truncated", StreamError],
    "is reset": [["begin", "so ", "far ", () => new Promise((resolve) => setTimeout(resolve, 20)), RESET], "stream_truncated", Error],
  };
  for (const [what, [script, kind, thrown]] of Object.entries(broken)) {
    test(`${name}: a stream that ${what} is a failure`, async () => {
      const breaker = new Breaker(name, { ...SMALL, timeouts: { firstToken: 150, stall: 60 } });
      provider.answer({ script });
      let heard = "";
      const call = callerOf(sdk, breaker)(true, { onEvent: (_, text) => void (heard = text) });
      await assert.rejects(call, thrown);
      assert.equal(heard, script.includes("so ") ? "so far " : "");
      assert.deepEqual(breaker.getStatus().kinds, { [kind]: 1 });
    });
  }

  test(`${name}: report 51, an error after content is a failure`, async () => {
    const breaker = new Breaker(name, SMALL);
    provider.answer({ script: ["begin", "so ", "far ", "failure"] });
    await assert.rejects(callerOf(sdk, breaker)(true));
    assert.deepEqual(breaker.getStatus().kinds, { [name === "openai" ? "server_error" : "overloaded"]: 1 });
  });

  test(`${name}: who leaves a stream says nothing, and the provider is told`, async () => {
    const breaker = new Breaker(name, { ...SMALL, maxInFlight: 1 });
    provider.answer({ script: ["begin", "so ", "far ", SILENCE] });
    await callerOf(sdk, breaker)(true, { onEvent: () => "leave" });
    const stop = new AbortController();
    await callerOf(sdk, breaker)(true, { signal: stop.signal, onEvent: () => void stop.abort() }).catch(() => {});
    assert.deepEqual([breaker.isHealthy(), breaker.getStatus().run], [true, 0]);
    for (let turn = 0; turn < 100 && provider.left < 2; turn += 1) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.equal(provider.left, 2);
  });

  test(`${name}: a stream that nobody reads is given back when it is forgotten`, async () => {
    const breaker = new Breaker(name, { ...SMALL, maxInFlight: 1 });
    const client = new sdk.module({ baseURL: provider.url + sdk.path, apiKey: "key", fetch: breaker.fetch });
    await (async () => void (await sdk.start(client, true)))();
    assert.equal(breaker.isHealthy(), false);
    for (let turn = 0; turn < 100 && !breaker.isHealthy(); turn += 1) {
      globalThis.gc();
      await new Promise(setImmediate);
    }
    assert.equal(breaker.isHealthy(), true);
  });
}

test("vercel: text and streams pass, an outage opens, a refusal is told as it is", async () => {
  const breaker = new Breaker("vercel", { clock: Clock.manual(), ...SMALL });
  const model = createOpenAI({ baseURL: `${provider.url}/v1`, apiKey: "key", fetch: breaker.fetch }).chat("large");
  assert.equal((await generateText({ model, prompt: "Well?" })).text, "All is well.");
  const { textStream } = streamText({ model, prompt: "Well?" });
  let text = "";
  for await (const part of textStream) text += part;
  assert.equal(text, "All is well.");
  provider.answer({ status: 503 });
  for (let time = 0; time < 2; time += 1) await assert.rejects(generateText({ model, prompt: "Well?", maxRetries: 0 }), { statusCode: 503 });
  assert.equal(breaker.state, "open");
  const hits = provider.hits;
  await assert.rejects(generateText({ model, prompt: "Well?" }), (error) => CircuitOpenError.from(error)?.reason === "open");
  assert.equal(provider.hits, hits);
});

test("vercel: each attempt is a call, unless the whole is one", async () => {
  const breaker = new Breaker("vercel", NINE);
  const modelOf = (fetch) => createOpenAI({ baseURL: `${provider.url}/v1`, apiKey: "key", fetch }).chat("large");
  provider.answer({ status: 503, headers: { "retry-after-ms": "1" } });
  await assert.rejects(generateText({ model: modelOf(breaker.fetch), prompt: "Well?", maxRetries: 1 }));
  assert.deepEqual([provider.hits, breaker.getStatus().run], [2, 2]);
  const whole = new Breaker("vercel", NINE);
  await assert.rejects(whole.execute(() => generateText({ model: modelOf(), prompt: "Well?", maxRetries: 1 })));
  assert.deepEqual([provider.hits, whole.getStatus().run], [4, 1]);
});

test("report 158: vercel's stream of a cut answer is a failure for the breaker", async () => {
  const breaker = new Breaker("vercel", SMALL);
  const model = createOpenAI({ baseURL: `${provider.url}/v1`, apiKey: "key", fetch: breaker.fetch }).chat("large");
  provider.answer({ script: ["begin", "so ", "far ", CUT] });
  const errors = [];
  const { textStream } = streamText({ model, prompt: "Well?", onError: ({ error }) => void errors.push(error) });
  const read = async () => {
    for await (const part of textStream) assert.match(part, /so |far /);
  };
  await read().catch((error) => errors.push(error));
  assert.ok(errors.some((error) => (error.cause ?? error) instanceof StreamError));
  assert.deepEqual(breaker.getStatus().kinds, { stream_truncated: 1 });
});

test("plain fetch: requests of any form, answers as they came", async () => {
  const breaker = new Breaker("plain", SMALL);
  const url = `${provider.url}/v1/models`;
  const headers = { "content-type": "application/json", "x-mine": "kept" };
  provider.answer({ body: { data: ["large"] }, headers });
  for (const input of [url, new URL(url), new Request(url)]) {
    const response = await breaker.fetch(input);
    assert.deepEqual([response.url, response.status, response.headers.get("x-mine")], [url, 200, "kept"]);
    assert.deepEqual(await response.json(), { data: ["large"] });
  }
  const asked = { method: "POST", body: JSON.stringify({ model: "large", messages: QUESTION }), headers };
  provider.answer({});
  const answer = await breaker.fetch(new Request(`${provider.url}/v1/chat/completions`, asked));
  assert.equal((await answer.json()).choices[0].message.content, "All is well.");
  provider.answer({ status: 503, body: "down" });
  const failed = await breaker.fetch(`${provider.url}/v1/chat/completions`, asked);
  assert.deepEqual([failed.ok, failed.status, await failed.text()], [false, 503, "down"]);
  assert.equal(breaker.getStatus().run, 1);
  breaker.forceOpen();
  await assert.rejects(breaker.fetch(url), CircuitOpenError);
  await assert.rejects(breaker.fetch(url, { signal: AbortSignal.abort() }), { name: "AbortError" });
});

test("a fetch of one's own is what is guarded, and 304 has no body", async () => {
  const replies = [new Response(null, { status: 304 }), new Response(null, { status: 204 }), Response.json({ a: 1 })];
  const breaker = new Breaker("own", { fetch: async () => replies.shift(), maxInFlight: 1 });
  assert.equal((await breaker.fetch("http://h/x")).status, 304);
  assert.equal((await breaker.fetch("http://h/x")).status, 204);
  const left = await breaker.fetch("http://h/x");
  await left.body.cancel();
  assert.equal(breaker.isHealthy(), true, "a body that is left gives its permit back");
});

test("an answer longer than what is judged passes whole, and can be left", async () => {
  const megabytes = "x".repeat(12 << 20);
  provider.answer({ body: { choices: [{ message: { content: megabytes } }] } });
  const breaker = new Breaker("long", { ...SMALL, maxInFlight: 1 });
  const asked = { method: "POST", body: JSON.stringify({ model: "large", messages: QUESTION }) };
  const whole = await breaker.fetch(`${provider.url}/v1/chat/completions`, asked);
  assert.equal((await whole.json()).choices[0].message.content.length, megabytes.length);
  const stop = new AbortController();
  const left = await breaker.fetch(`${provider.url}/v1/chat/completions`, { ...asked, signal: stop.signal });
  stop.abort();
  await assert.rejects(left.text(), { name: "AbortError" });
  assert.deepEqual([breaker.isHealthy(), breaker.getStatus().run], [true, 0]);
});

test("limits of a fetch pass while an error's body hangs", async () => {
  const breaker = new Breaker("hangs", {
    ...SMALL,
    timeouts: { idle: 40 },
    fetch: async (_, { signal }) => {
      const body = new ReadableStream({
        start: (controller) => signal.addEventListener("abort", () => controller.error(signal.reason)),
      });
      return new Response(body, { status: 503 });
    },
  });
  const response = await breaker.fetch("http://host/v1/chat/completions", { method: "POST", body: "{}" });
  assert.deepEqual([response.status, await response.text()], [503, ""]);
  assert.deepEqual(breaker.getStatus().kinds, { server_error: 1 });
});
