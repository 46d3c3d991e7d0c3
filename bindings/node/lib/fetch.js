// `fetch` under a breaker: an answer is judged by our rules, and its body is read under our eyes.

"use strict";

const { FailedBody, PlainBody, WatchedBody, streamOf } = require("./bodies.js");
const { CircuitOpenError, refusals } = require("./errors.js");
const { pairs } = require("./judge.js");
const native = require("./native.js");
const { Repeats, keyOf } = require("./repeats.js");
const { LONGEST } = require("./settings.js");

const USUAL = { answer: 600_000, idle: 30_000 };
const MOST_OF_A_BODY = 8 << 20; // what is judged; what is longer has content
const CLOCK_STEP = 20; // by how much two clocks may differ
const BODILESS = new Set([101, 204, 205, 304]);

async function fetchUnder(gate, input, init = {}) {
  const asked = await requestOf(input, init);
  let call;
  try {
    call = new Call(gate, asked);
  } catch (error) {
    if (error instanceof CircuitOpenError && asked.isOfAnSdk) return refusal(error);
    throw error;
  }
  const send = gate.fetch ?? globalThis.fetch;
  let response;
  try {
    response = await send(input, { ...init, signal: call.signal });
  } catch (error) {
    throw call.broke(error);
  }
  return answered(call, response);
}

/** The answer itself, or one like it that is read under the permit. */
async function answered(call, response) {
  const { request, gate } = call;
  const type = response.headers.get("content-type") ?? "";
  if (response.ok && request.asks && response.body !== null && request.isReadable(type)) {
    call.clear();
    const watch = new native.Watch(call.take(), request, type, gate.limits);
    return rebuilt(response, streamOf(new WatchedBody(call, response.body, watch)));
  }
  if (response.ok && !request.asks) {
    call.clear();
    if (response.body === null) {
      call.settle((place) => gate.success(place));
      call.done();
      return response;
    }
    return rebuilt(response, streamOf(new PlainBody(call, response.body, [])));
  }
  const { chunks, rest } = await call.read(response);
  const body = rest === undefined ? Buffer.concat(chunks) : undefined;
  const failed = call.judge(response, body);
  if (rest !== undefined) return rebuilt(response, streamOf(new PlainBody(call, rest, chunks)));
  call.done();
  if (response.body === null) return response;
  return rebuilt(response, failed === undefined ? body : streamOf(new FailedBody(gate, failed, body)));
}

/** What is asked for, and by whom. */
async function requestOf(input, init) {
  const isRequest = typeof Request === "function" && input instanceof Request;
  const method = init.method ?? (isRequest ? input.method : "GET");
  const url = new URL(isRequest ? input.url : String(input), "http://localhost");
  const headers = new Headers(init.headers ?? (isRequest ? input.headers : undefined));
  const body = init.body ?? (isRequest && input.body !== null ? await input.clone().text() : undefined);
  const content = contentOf(body);
  return {
    request: new native.Request(method.toUpperCase(), url.pathname, content),
    isOfAnSdk: headers.has("x-stainless-lang"),
    // How often it was sent before; NaN where nobody says.
    repeat: Number.parseInt(headers.get("x-stainless-retry-count") ?? "", 10),
    keyOf: (repeat) => keyOf(repeat, method, url.href, content),
    patience: Number.parseInt(headers.get("x-stainless-timeout") ?? "", 10) * 1000,
    signal: init.signal ?? (isRequest ? input.signal : undefined) ?? undefined,
  };
}

function contentOf(body) {
  if (typeof body === "string") return Buffer.from(body);
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  return new Uint8Array(); // an upload that is streamed
}

/** One call under way: its permit, its limit, and whether the caller is still there. */
class Call {
  #place;
  #controller = new AbortController();
  #timer;
  #isLate = false;
  #onAbort;
  // When this attempt began, by the age of the permit that it may have from an earlier one.
  #began = 0;
  // Whether an earlier attempt has failed, and is counted.
  #isCounted = false;

  constructor(gate, { request, patience, signal: caller, repeat, keyOf }) {
    caller?.throwIfAborted();
    Object.assign(this, { gate, request, patience, caller, repeat, keyOf });
    const first = gate.limits.firstToken ?? request.firstToken();
    const limit = request.streams ? first : (gate.limits.answer ?? USUAL.answer);
    this.#enter(limit);
    this.#limitTo(limit, "no answer");
    this.#onAbort = () => this.abort(caller.reason);
    caller?.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** A permit of its own, or that of the attempt which it repeats. */
  #enter(limit) {
    const { gate, repeat, keyOf } = this;
    const earlier = repeat > 0 ? gate.repeats.take(keyOf(repeat)) : undefined;
    this.#isCounted = earlier !== undefined && earlier.place === undefined;
    this.#place = earlier?.place ?? gate.enter(limit);
    if (earlier?.place === undefined) return;
    this.#began = native.elapsed(this.#place) ?? 0;
    native.progress(this.#place);
  }

  get signal() {
    return this.#controller.signal;
  }

  /** The permit, for whoever settles it from now on. */
  take() {
    const place = this.#place;
    this.#place = undefined;
    return place;
  }

  settle(how) {
    const place = this.take();
    if (place !== undefined) how(place);
  }

  /** Judges an answer and settles by it; gives what has failed, where that waits for its repeat. */
  judge(response, body) {
    const exchange = { provider: this.request.provider, status: response.status, headers: pairs(response.headers) };
    // A good answer that is longer than anybody reads has content.
    const isGood = response.ok && body === undefined;
    const verdict = native.classify({ ...exchange, body, hasLeft: false, asks: this.request.asks && !isGood });
    const isTold = response.body === null || body === undefined || this.#isCounted;
    if (!response.ok && !isTold && this.repeat >= 0 && Repeats.canWait(verdict)) {
      return this.#keep({ place: this.take(), verdict });
    }
    this.#fail((place) => this.gate.settle(place, verdict), verdict);
    return undefined;
  }

  /** Settles by what may be a failure: a call whose earlier attempt is counted has failed once, unless it failed as a probe. */
  #fail(how, verdict) {
    const isCounted = verdict?.kind !== null && this.#isCounted;
    this.settle((place) => {
      const isPassedOver = isCounted && !native.isProbe(place);
      if (isPassedOver) this.gate.cancel(place);
      if ((isPassedOver || how(place)) && this.repeat >= 0) this.#keep({ verdict });
    });
  }

  #keep(failed) {
    return this.gate.repeats.keep({ ...failed, key: this.keyOf(this.repeat + 1) });
  }

  /** There was no answer, or no whole one: what to throw. */
  broke(error) {
    const { gate } = this;
    if (!this.#isLate && this.caller?.aborted) {
      this.left();
      return error;
    }
    this.#fail((place) => (this.#isLate ? gate.left(place, 0, true) : gate.failed(place, error)));
    this.done();
    return this.#isLate ? this.signal.reason : error;
  }

  /** The caller has left. That says nothing, unless his patience was at its end. */
  left() {
    const { gate, patience } = this;
    this.#fail((place) => {
      const waited = (native.elapsed(place) ?? 0) - this.#began;
      const isSdksLimit = waited + CLOCK_STEP >= patience && patience > 0;
      return gate.left(place, waited, this.caller?.reason?.name === "TimeoutError" || isSdksLimit);
    });
    this.done();
  }

  /** Reads a body to its end, or as far as it is judged: then there is a rest. */
  async read(response) {
    const chunks = [];
    if (response.body === null) return { chunks };
    const reader = response.body.getReader();
    if (!response.ok) this.#limitTo(this.gate.limits.idle ?? USUAL.idle, "no end of the error");
    try {
      for (let size = 0; size <= MOST_OF_A_BODY; ) {
        const { done, value } = await reader.read();
        if (done) return { chunks };
        chunks.push(value);
        size += value.byteLength;
      }
    } catch (error) {
      if (response.ok) throw this.broke(error);
      return { chunks }; // so much of an error is one, too
    } finally {
      this.clear();
    }
    reader.releaseLock();
    return { chunks, rest: response.body };
  }

  abort(reason) {
    this.#controller.abort(reason);
  }

  /** No limit but those of the body from now on. */
  clear() {
    clearTimeout(this.#timer);
  }

  done() {
    this.clear();
    this.caller?.removeEventListener("abort", this.#onAbort);
  }

  #limitTo(limit, what) {
    this.clear();
    const late = () => {
      this.#isLate = true;
      this.abort(new DOMException(`${what} within ${limit} ms`, "TimeoutError"));
    };
    this.#timer = setTimeout(late, Math.min(limit, LONGEST));
  }
}

/** The same answer with this body. */
function rebuilt(response, body) {
  const { status, statusText, headers } = response;
  const same = new Response(BODILESS.has(status) ? null : body, { status, statusText, headers });
  for (const key of ["url", "redirected", "type"]) Object.defineProperty(same, key, { value: response[key] });
  return same;
}

/** A refusal as an answer: an SDK would repeat an error, as if the network had failed. */
function refusal(error) {
  const body = { type: "error", error: { type: error.code, code: error.code, message: error.message } };
  const response = Response.json(body, {
    status: 503,
    headers: {
      "retry-after": String(Math.ceil(error.retryAfterMs / 1000)),
      "retry-after-ms": String(Math.ceil(error.retryAfterMs)),
      "x-should-retry": "false",
    },
  });
  refusals.set(response.headers, error);
  return response;
}

module.exports = { fetchUnder };
