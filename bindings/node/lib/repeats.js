// `Repeats`: attempts that have failed, and that an SDK may repeat: one call of the user's, and one outcome.
//
// The OpenAI and Anthropic SDKs tell with each request how often it was sent before. Who repeats an error leaves its body unread;
// who gives it on to the user reads it first. So an answer that failed waits, unsettled, for its repeat or its reader.

"use strict";

const { createHash } = require("node:crypto");

const { LONGEST } = require("./settings.js");

// The SDKs come back within 8 s, or after as long as the provider says.
const PATIENCE = 10_000;
const MOST = 500;

class Repeats {
  #gate;
  // Oldest first.
  #failed = new Set();

  constructor(gate) {
    this.#gate = gate;
  }

  /** Whether the failure can wait: what must be known at once, such as a spent quota or a long wait, does not. */
  static canWait({ retryable, retryAfterMs }) {
    return retryable && (retryAfterMs ?? 0) < PATIENCE;
  }

  /** Keeps an attempt that has failed; with a place, its permit is not settled yet. */
  keep(failed) {
    if (this.#failed.size >= MOST) this.#forget(this.#failed.values().next().value);
    const patience = PATIENCE + (failed.verdict?.retryAfterMs ?? 0);
    failed.timer = setTimeout(() => this.#forget(failed), Math.min(patience, LONGEST)).unref();
    this.#failed.add(failed);
    return failed;
  }

  /** Settles by the verdict, unless that is done, or the repeat has taken the permit over. What repeats it adds no failure. */
  tell(failed) {
    const { place, verdict } = failed;
    failed.place = undefined;
    if (place !== undefined) this.#gate.settle(place, verdict);
  }

  /** The attempt that a request repeats. Of those that are alike it is no matter which. */
  take(key) {
    for (const failed of this.#failed) {
      if (failed.key !== key) continue;
      clearTimeout(failed.timer);
      this.#failed.delete(failed);
      const { place } = failed;
      failed.place = undefined;
      return { place };
    }
    return undefined;
  }

  #forget(failed) {
    clearTimeout(failed.timer);
    this.#failed.delete(failed);
    this.tell(failed);
  }
}

/** What says which request is the repeat of which: its number and all that it asks. */
function keyOf(number, method, url, content) {
  return createHash("sha256").update(`${number} ${method} ${url}\n`).update(content).digest("base64");
}

module.exports = { Repeats, keyOf };
