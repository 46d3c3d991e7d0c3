// `Gate`: a native breaker with what JavaScript knows of it: who judges its errors, and who listens. Hot path: a guarded call
// makes no object here.

"use strict";

const { CircuitOpenError } = require("./errors.js");
const { known } = require("./judge.js");
const calls = require("./native.js");
const { Repeats } = require("./repeats.js");

// Who leaves after so long without an answer has waited in vain.
const CANCEL_COUNTS_AFTER = 20_000;

// What a permit whose holder was forgotten goes back by.
const forgotten = new FinalizationRegistry(({ gate, place }) => gate.cancel(place));

class Gate {
  #repeats;

  constructor(native, parts = {}) {
    this.native = native;
    this.id = native.id();
    this.take(parts);
    this.listeners = undefined;
    this.told = 0;
    this.isTelling = false;
  }

  /** Of what a user has set what is JavaScript's own. */
  take({ limits = {}, judge, check, fetch }) {
    Object.assign(this, { limits, judge, check, fetch });
  }

  /** Attempts of SDKs that may be repeated. */
  get repeats() {
    this.#repeats ??= new Repeats(this);
    return this.#repeats;
  }

  /** The place of a permit. */
  enter(within) {
    const place = within === undefined ? calls.acquire(this.id) : calls.acquireWithin(this.id, within);
    if (this.listeners !== undefined) this.tell();
    if (typeof place === "number") return place;
    throw new CircuitOpenError(place);
  }

  success(place) {
    calls.success(place);
    if (this.listeners !== undefined) this.tell();
  }

  failure(place, kind, notes) {
    calls.failure(place, kind, notes);
    if (this.listeners !== undefined) this.tell();
  }

  settle(place, verdict) {
    const kind = calls.settle(place, verdict);
    if (this.listeners !== undefined) this.tell();
    return kind ?? undefined;
  }

  cancel(place) {
    calls.cancel(place);
    if (this.listeners !== undefined) this.tell();
  }

  /** Nobody waits for an answer any more: after so long, that is a failure. Whether it was. */
  left(place, waited, isLate = false) {
    const inVain = isLate || waited >= (this.limits.cancelCountsAfter ?? CANCEL_COUNTS_AFTER);
    if (inVain) this.failure(place, "timeout");
    else this.cancel(place);
    return inVain;
  }

  /** An item of a stream has come: whether that settled the permit, as a probe's proof. */
  item(place) {
    const isSettled = calls.item(place);
    if (this.listeners !== undefined) this.tell();
    return isSettled;
  }

  /** Settles by an error; the kind that is recorded, if one is. */
  failed(place, error, signal) {
    const said = this.judged(error, signal);
    if (said === undefined) {
      this.cancel(place);
      return undefined;
    }
    if (typeof said !== "string") return this.settle(place, said);
    return this.record(place, said);
  }

  /** As `failure`, for a kind that the user named: if there is none such, that is nobody's failure. */
  record(place, kind) {
    const isDone = guarded(() => {
      this.failure(place, kind);
      return true;
    });
    if (isDone) return kind;
    this.cancel(place);
    return undefined;
  }

  judged(error, signal) {
    if (this.judge !== undefined) {
      const said = guarded(() => this.judge(error));
      if (said === false) return undefined;
      if (typeof said === "string") return said;
    }
    if (signal?.aborted && error !== undefined) {
      // A signal that is a timeout says that it took too long; any other, that nobody wants it any more.
      return signal.reason?.name === "TimeoutError" ? "timeout" : undefined;
    }
    return known(error);
  }

  /** Settles by a result; the kind that is recorded, if it is a failure. */
  succeeded(place, value) {
    const kind = this.check === undefined ? undefined : guarded(() => this.check(value));
    if (typeof kind === "string") return this.record(place, kind);
    this.success(place);
    return undefined;
  }

  /** Gives the permit back once `holder` is forgotten. */
  watchOver(holder, place) {
    forgotten.register(holder, { gate: this, place }, holder);
  }

  on(event, listener) {
    if (this.listeners === undefined) {
      this.listeners = new Map();
      this.told = this.native.history(this.told).at(-1)?.number ?? this.told;
    }
    const all = this.listeners.get(event) ?? new Set();
    this.listeners.set(event, all.add(listener));
  }

  off(event, listener) {
    const all = this.listeners?.get(event);
    all?.delete(listener);
    if (all?.size === 0) this.listeners.delete(event);
    if (this.listeners?.size === 0) this.listeners = undefined;
  }

  /** Soon, outside of any call, whoever listens hears what has happened. */
  tell() {
    if (this.isTelling) return;
    this.isTelling = true;
    queueMicrotask(() => {
      this.isTelling = false;
      for (const transition of this.native.history(this.told)) {
        this.told = transition.number;
        for (const event of ["transition", transition.to]) {
          for (const listener of this.listeners?.get(event) ?? []) guarded(() => listener(transition));
        }
      }
    });
  }
}

/** What a function of the user's gives; if it throws, that is nobody's failure. */
function guarded(call) {
  try {
    return call();
  } catch (error) {
    process.emitWarning(error instanceof Error ? error : new Error(String(error)));
    return undefined;
  }
}

module.exports = { Gate, forgotten, guarded };
