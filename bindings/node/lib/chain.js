// `Chain`: several targets, each behind its breaker, tried in order.

"use strict";

const { Breaker, gateOf } = require("./breaker.js");
const { Cache, textOf } = require("./cache.js");
const { CircuitOpenError, SettingsError } = require("./errors.js");
const native = require("./native.js");
const registry = require("./registry.js");
const { LONGEST, chosen, milliseconds } = require("./settings.js");
const { guardStream, isStream } = require("./streams.js");

// With these the request is at fault, or nobody: another target would do no better.
const FINAL = new Set([
  ...[undefined, "bad_request", "not_found", "content_policy", "validation", "parse", "cancelled", "local"],
]);
const SHORTEST = 1; // a refusal may end within the millisecond

class Chain {
  #links;
  #maxWait;
  #budget;
  #cache;

  constructor(targets, options = {}) {
    const links = [...targets].map(([of, target]) => {
      const breaker = typeof of === "string" ? registry.process.getBreaker(of) : of;
      if (!(breaker instanceof Breaker)) throw new SettingsError(["targets must be pairs of a breaker, or its name, and a target"]);
      return { gate: gateOf(breaker), name: breaker.name, target };
    });
    if (links.length === 0) throw new SettingsError(["targets is empty, must be one or more of [breaker, target]"]);
    const { maxWait = 0, budget, cache } = chosen(options, ["maxWait", "budget", "cache"]);
    if (cache !== undefined && !(cache instanceof Cache)) throw new SettingsError(["cache must be a Cache"]);
    this.#links = links;
    this.#maxWait = milliseconds("maxWait", maxWait);
    this.#budget = budget === undefined ? undefined : milliseconds("budget", budget);
    this.#cache = cache;
  }

  isHealthy() {
    return this.#links.some(({ gate }) => gate.native.isAvailable());
  }

  async execute(call, options) {
    return (await this.answer(call, options)).value;
  }

  async answer(call, { signal, key } = {}) {
    if (key !== undefined) textOf(key);
    const patience = new Patience(signal, this.#budget);
    try {
      const came = await this.#rounds(call, patience);
      if (came.isGood && key !== undefined) this.#cache?.keep(key, came.value);
      const kept = came.isFinal || key === undefined ? undefined : this.#cache?.recall(key);
      if (kept !== undefined) return { ...kept, breaker: undefined };
      if ("error" in came) throw came.error;
      return { value: came.value, breaker: came.name, ageMs: undefined };
    } finally {
      patience.stop();
    }
  }

  /** What came of it, after so many rounds as there is time to wait for. */
  async #rounds(call, patience) {
    let left = this.#maxWait;
    for (;;) {
      const came = await this.#round(call, patience);
      if (!came.isRefused) return came;
      const wait = Math.max(came.error.retryAfterMs, SHORTEST);
      if (wait > left || wait >= patience.left()) return came;
      left -= wait;
      await sleep(wait, patience.caller);
    }
  }

  /** Each target once: what settled the call, else the last failure, or the refusal with the shortest wait. */
  async #round(call, patience) {
    let refused;
    let failed;
    for (const { gate, name, target } of this.#links) {
      if (failed !== undefined && patience.isOver) break;
      patience.caller?.throwIfAborted();
      let place;
      try {
        place = gate.enter();
      } catch (error) {
        if (!(error instanceof CircuitOpenError)) throw error;
        if (refused === undefined || error.retryAfterMs < refused.retryAfterMs) refused = error;
        continue;
      }
      failed = await attempt(gate, place, () => call(target, patience.signal), patience);
      if (failed.isFinal) return { ...failed, name };
      failed.name = name;
    }
    return failed ?? { error: refused, isRefused: true };
  }
}

/** One target's turn: a value or an error, and whether that is the end of it. */
async function attempt(gate, place, call, patience) {
  try {
    const value = await patience.over(call);
    if (isStream(value)) return { value: guardStream(gate, place, value, patience.signal, patience.keep()), isFinal: true };
    const kind = gate.succeeded(place, value);
    return { value, isFinal: FINAL.has(kind), isGood: kind === undefined };
  } catch (error) {
    if (patience.isOver) {
      gate.left(place, native.elapsed(place) ?? 0);
      return { error };
    }
    return { error, isFinal: FINAL.has(gate.failed(place, error, patience.signal)) };
  }
}

/** How long a call may take: until its signal is aborted, or its budget is spent. */
class Patience {
  #timer;
  #end = Infinity;
  #spent;
  #isKept = false;
  #leave;

  constructor(caller, budget) {
    this.isOver = false;
    this.caller = caller;
    this.signal = caller;
    if (budget === undefined) return;
    this.#end = performance.now() + budget;
    const controller = new AbortController();
    this.signal = controller.signal;
    // `AbortSignal.any` leaves something behind at a signal that outlives the call.
    this.#leave = () => controller.abort(caller.reason);
    if (caller?.aborted) this.#leave();
    else caller?.addEventListener("abort", this.#leave, { once: true });
    this.#spent = new Promise((_, reject) => {
      const spend = () => {
        this.isOver = true;
        const error = new DOMException(`no answer within the budget of ${budget} ms`, "TimeoutError");
        reject(error);
        controller.abort(error);
      };
      this.#timer = setTimeout(spend, Math.min(budget, LONGEST));
    });
    this.#spent.catch(() => {}); // by whoever waits for it
  }

  /** What a call gives, unless the budget is spent before: then whatever still comes of it is lost. */
  over(call) {
    if (this.#spent === undefined) return call();
    return Promise.race([this.#spent, call()]);
  }

  /** How many milliseconds are left. */
  left() {
    return this.#end - performance.now();
  }

  /** A stream has begun, which has no budget but the caller's signal; what tells of its end. */
  keep() {
    this.#isKept = true;
    return () => this.#forget();
  }

  /** The call is over, or a stream has begun. */
  stop() {
    clearTimeout(this.#timer);
    if (!this.#isKept) this.#forget();
  }

  #forget() {
    this.caller?.removeEventListener("abort", this.#leave);
  }
}

function sleep(wait, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const leave = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", leave);
      resolve();
    }, wait);
    signal?.addEventListener("abort", leave, { once: true });
    return undefined;
  });
}

module.exports = { Cache, Chain };
