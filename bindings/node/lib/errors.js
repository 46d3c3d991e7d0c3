// What can be thrown. All data is in properties; the text is for people.

"use strict";

// What SDKs make of a refusal they did not understand leads back to it by its headers.
const refusals = new WeakMap();

/** Of every error that this package throws of its own. */
class FuselineError extends Error {
  static {
    this.prototype.name = "FuselineError";
  }
}

/** The breaker refused: the call was not made. */
class CircuitOpenError extends FuselineError {
  static {
    this.prototype.name = "CircuitOpenError";
  }

  constructor(refusal) {
    super(refusal.message);
    this.code = "circuit_open";
    this.breaker = refusal.name;
    this.scope = refusal.scope;
    this.reason = refusal.reason;
    this.retryAfterMs = refusal.retryAfterMs;
  }

  /** The refusal behind what an SDK threw, if that is what it was. */
  static from(error) {
    for (let depth = 0; depth < 8 && typeof error === "object" && error !== null; depth += 1) {
      if (error instanceof CircuitOpenError) return error;
      const headers = error.headers;
      if (typeof headers === "object" && headers !== null && refusals.has(headers)) return refusals.get(headers);
      error = error.cause ?? error.lastError;
    }
    return undefined;
  }
}

/** A streamed answer ended before it was complete. */
class StreamError extends FuselineError {
  static {
    this.prototype.name = "StreamError";
  }

  constructor(failure, options) {
    super(failure.message, options);
    this.ending = failure.ending;
    this.kind = failure.kind;
  }
}

/** Settings that cannot work: every mistake at once. */
class SettingsError extends FuselineError {
  static {
    this.prototype.name = "SettingsError";
  }

  constructor(problems) {
    super(problems.join("; "));
    this.problems = problems;
  }
}

/** A breaker cannot be had: its name is taken by one with other settings, or there is no room. */
class RegistryError extends FuselineError {
  static {
    this.prototype.name = "RegistryError";
  }

  constructor(refusal) {
    super(refusal.message);
    this.isTaken = refusal.isTaken;
  }
}

module.exports = { CircuitOpenError, FuselineError, RegistryError, SettingsError, StreamError, refusals };
