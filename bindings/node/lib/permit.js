// `Permit`: leave to make one call, for who settles it by hand.

"use strict";

const { forgotten } = require("./gate.js");
const calls = require("./native.js");

class Permit {
  #gate;
  #place;

  constructor(gate, place) {
    this.#gate = gate;
    this.#place = place;
    gate.watchOver(this, place);
  }

  success(tookMs) {
    return this.#settle((gate, place) => {
      if (tookMs === undefined) gate.success(place);
      else calls.successAfter(place, tookMs);
    });
  }

  failure(kind, notes) {
    return this.#settle((gate, place) => gate.failure(place, kind, notes));
  }

  /** Settles by what the rules say of an error. */
  error(error, signal) {
    let kind;
    this.#settle((gate, place) => {
      kind = gate.failed(place, error, signal);
    });
    return kind;
  }

  verdict(verdict) {
    let kind;
    this.#settle((gate, place) => {
      kind = gate.settle(place, verdict);
    });
    return kind;
  }

  cancel() {
    return this.#settle((gate, place) => gate.cancel(place));
  }

  progress() {
    if (!this.isSettled) calls.progress(this.#place);
  }

  get isSettled() {
    return this.#place === undefined;
  }

  get elapsedMs() {
    return this.isSettled ? undefined : (calls.elapsed(this.#place) ?? undefined);
  }

  get isProbe() {
    return !this.isSettled && calls.isProbe(this.#place);
  }

  get wouldReject() {
    return this.isSettled ? undefined : (calls.wouldReject(this.#place) ?? undefined);
  }

  #settle(how) {
    if (this.isSettled) return false;
    how(this.#gate, this.#place);
    this.#place = undefined;
    forgotten.unregister(this);
    return true;
  }
}

module.exports = { Permit };
