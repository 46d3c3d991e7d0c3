// `Chain`: several targets, each behind its breaker, tried in order.

"use strict";

const { Breaker, gateOf } = require("./breaker.js");
const { CircuitOpenError, SettingsError } = require("./errors.js");
const registry = require("./registry.js");
const { milliseconds } = require("./settings.js");
const { guardStream, isStream } = require("./streams.js");

// With these the request is at fault, or nobody: another target would do no better.
const FINAL = new Set([
  ...[undefined, "bad_request", "not_found", "content_policy", "validation", "parse", "cancelled", "local"],
]);
const SHORTEST = 1; // a refusal may end within the millisecond

class Chain {
  #links;
  #maxWait;

  constructor(targets, options = {}) {
    const links = [...targets].map(([of, target]) => {
      const breaker = typeof of === "string" ? registry.process.getBreaker(of) : of;
      if (!(breaker instanceof Breaker)) throw new SettingsError(["targets must be pairs of a breaker, or its name, and a target"]);
      return { gate: gateOf(breaker), target };
    });
    if (links.length === 0) throw new SettingsError(["targets is empty, must be one or more of [breaker, target]"]);
    this.#links = links;
    this.#maxWait = milliseconds("maxWait", options.maxWait ?? 0);
  }

  isHealthy() {
    return this.#links.some(({ gate }) => gate.native.isAvailable());
  }

  async execute(call, options) {
    const signal = options?.signal;
    let left = this.#maxWait;
    for (;;) {
      const round = await this.#round(call, signal);
      if ("value" in round) return round.value;
      if ("error" in round) throw round.error;
      const wait = Math.max(round.refused.retryAfterMs, SHORTEST);
      if (wait > left) throw round.refused;
      left -= wait;
      await sleep(wait, signal);
    }
  }

  /** Each target once: a value, the last error, or the refusal with the shortest wait. */
  async #round(call, signal) {
    let refused;
    let failed;
    for (const { gate, target } of this.#links) {
      signal?.throwIfAborted();
      let place;
      try {
        place = gate.enter();
      } catch (error) {
        if (!(error instanceof CircuitOpenError)) throw error;
        if (refused === undefined || error.retryAfterMs < refused.retryAfterMs) refused = error;
        continue;
      }
      try {
        const value = await call(target, signal);
        if (isStream(value)) return { value: guardStream(gate, place, value, signal) };
        const kind = gate.succeeded(place, value);
        failed = { value };
        if (FINAL.has(kind)) return failed;
      } catch (error) {
        failed = { error };
        if (FINAL.has(gate.failed(place, error, signal))) return failed;
      }
    }
    return failed ?? { refused };
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

module.exports = { Chain };
