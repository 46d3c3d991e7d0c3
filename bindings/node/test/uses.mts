// What users write, for the compiler: that it passes, and that mistakes do not. Never run.

import OpenAI from "openai";
import Anthropic from "@anthropic-ai/sdk";
import { createOpenAI } from "@ai-sdk/openai";
import * as fuseline from "fuseline";
import { Breaker, Chain, CircuitOpenError, Clock, Registry, type State, type Status, type Transition } from "fuseline";

const breaker: Breaker = new Breaker("openai", {
  preset: "vernllm",
  model: "gpt-5",
  clock: Clock.manual(),
  trip: [{ rule: "slow", slowerThan: "20s", threshold: 0.5, window: 60_000, minCalls: 10 }],
  kinds: { timeout: { count: true, threshold: 3 } },
  timeouts: { firstToken: "20s" },
  judge: (error) => (error instanceof TypeError ? false : undefined),
  check: (answer: string) => (answer === "" ? "empty_response" : undefined),
});
new OpenAI({ fetch: breaker.fetch });
new Anthropic({ fetch: breaker.fetch });
createOpenAI({ fetch: breaker.fetch });

const text: string = await breaker.execute(async () => "text");
const stream: AsyncGenerator<number> = await breaker.execute(async function* () {
  yield 1;
});
const given: AbortSignal | undefined = await breaker.execute((signal) => signal, { signal: AbortSignal.timeout(5), within: 5 });
const wrapped: (question: string) => Promise<number> = breaker.wrap(async (question: string) => question.length);
const state: State = breaker.state;
const status: Status = breaker.getStatus();
breaker.on("open", (transition: Transition) => transition.why.text);
const permit = breaker.acquire();
permit.failure("rate_limit", { retryAfterMs: 5_000, openNow: true });
const refused: number | undefined = CircuitOpenError.from(new Error())?.retryAfterMs;
const answer: string = await new Chain([[breaker, 1], ["groq", 2]]).execute(async (target) => target.toFixed());
const cache = new fuseline.Cache({ ttl: "5m", maxBytes: 1 << 20, sizeOf: (key, value) => key.length + value.length });
const degrading = new Chain([[breaker, "large"]], { budget: "30s", cache });
const came: fuseline.Answer<string> = await degrading.answer(async (model, signal) => model + signal?.aborted, { key: "user: why?" });
const age: number | undefined = came.ageMs;
const keeper: fuseline.Keeper = fuseline.keep({ state: "fuseline.db", fleet: "redis://127.0.0.1", caFile: "ca.pem" });
const replicas: number | undefined = keeper.health()?.replicas;
const registry = new Registry({ maxBreakers: 5 });
registry.getBreaker("x", { cooldown: "5s" }).name.toUpperCase();
fuseline.findBreaker("x")?.isHealthy();
fuseline.classify({ status: 429, headers: { "retry-after": "5" } }).kind?.length;
for (const { name, transition, missed } of fuseline.events().drain()) console.log(name, transition.to, missed);

// @ts-expect-error no such setting
new Breaker("x", { coolDown: "5s" });
// @ts-expect-error no such kind
permit.failure("rate limit");
// @ts-expect-error no such event
breaker.on("opened", () => {});
// @ts-expect-error a rule lacks its key
new Breaker("x", { trip: [{ rule: "window", failures: 2 }] });
// @ts-expect-error a number is no text
const wrong: string = await breaker.execute(async () => 1);
// @ts-expect-error a clock is the registry's
registry.getBreaker("x", { clock: Clock.manual() });

// @ts-expect-error a key is a text
await degrading.execute(async () => 1, { key: ["user", "why?"] });
// @ts-expect-error a keeper is made by keep
new fuseline.Keeper();

export { age, answer, given, refused, replicas, state, status, stream, text, wrapped, wrong };
