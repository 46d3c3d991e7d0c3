// What an error says about the provider.

"use strict";

const { CircuitOpenError, StreamError } = require("./errors.js");
const native = require("./native.js");

// What happened on the wire, by the codes of Node, of its fetch, and of TLS.
const FAULTS = {
  EAI_AGAIN: "dns",
  ENOTFOUND: "dns",
  ECONNREFUSED: "refused",
  EHOSTUNREACH: "refused",
  ENETUNREACH: "refused",
  ECONNABORTED: "deadline",
  ECONNRESET: "reset",
  EPIPE: "reset",
  ERR_STREAM_PREMATURE_CLOSE: "reset",
  UND_ERR_SOCKET: "reset",
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: "reset",
  ETIMEDOUT: "connect_timeout",
  UND_ERR_CONNECT_TIMEOUT: "connect_timeout",
  ESOCKETTIMEDOUT: "deadline",
  UND_ERR_HEADERS_TIMEOUT: "deadline",
  UND_ERR_BODY_TIMEOUT: "stall",
  EPROTO: "tls",
  DEPTH_ZERO_SELF_SIGNED_CERT: "tls",
  SELF_SIGNED_CERT_IN_CHAIN: "tls",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "tls",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "tls",
};
// By the names of errors, those of the OpenAI, Anthropic and Vercel SDKs among them.
const FAULTS_BY_NAME = {
  APIConnectionError: "reset",
  APIConnectionTimeoutError: "deadline",
  TimeoutError: "deadline",
};
const LEFT = new Set(["AbortError", "APIUserAbortError", "CanceledError"]);
const KINDS_BY_NAME = {
  AI_JSONParseError: "parse",
  AI_TypeValidationError: "validation",
  SyntaxError: "parse",
  ZodError: "validation",
};
// The program's own mistakes say nothing about anybody else.
const MISTAKES = new Set(["AssertionError", "EvalError", "RangeError", "ReferenceError", "TypeError", "URIError"]);

// How far causes are followed: nobody wraps an error more often, and a circle ends.
const DEPTH = 8;

/** The error, what caused it, and so on. */
function* causes(error) {
  for (let depth = 0; depth < DEPTH && typeof error === "object" && error !== null; depth += 1) {
    yield error;
    error = error.cause ?? error.lastError ?? error.errors?.[0];
  }
}

/** The name of an error's class: the SDKs leave `name` as it is. */
function nameOf(error) {
  const own = error.name;
  return own === "Error" || own === undefined ? (error.constructor?.name ?? "") : own;
}

/** What happened on the wire, if the error tells of that. */
function faultOf(error) {
  let byName;
  for (const cause of causes(error)) {
    const code = String(cause.code ?? "");
    const fault = FAULTS[code] ?? (/^(ERR_TLS|ERR_SSL|CERT_)/.test(code) ? "tls" : undefined);
    if (fault !== undefined) return fault;
    byName ??= FAULTS_BY_NAME[nameOf(cause)];
    if (cause instanceof TypeError && /^(fetch failed|terminated)$/.test(cause.message)) byName ??= "reset";
  }
  return byName;
}

/** Whether it says that the caller has left, or was told to. */
function isAbort(error) {
  for (const cause of causes(error)) if (LEFT.has(nameOf(cause))) return true;
  return false;
}

/** Status, headers and body of an answer that an error carries. */
function answerOf(error) {
  for (const cause of causes(error)) {
    const response = cause.response ?? {};
    const status = cause.status ?? cause.statusCode ?? response.status;
    if (!Number.isInteger(status) || status < 300 || status > 599) continue;
    const headers = cause.headers ?? cause.responseHeaders ?? response.headers;
    const body = cause.responseBody ?? (cause.error === undefined ? response.data : wrapped(cause.error));
    return { status, headers: pairs(headers), body: bytes(body) };
  }
  return undefined;
}

/** The SDKs keep what stands under `error` in a body, or all of it. */
function wrapped(error) {
  const isWhole = typeof error === "object" && error !== null && "error" in error;
  return isWhole ? error : { error };
}

function bytes(body) {
  if (body === undefined || body === null) return undefined;
  if (body instanceof Uint8Array) return body;
  try {
    return Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
  } catch {
    return undefined;
  }
}

/** Headers of whatever library as pairs of texts. */
function pairs(headers) {
  if (typeof headers !== "object" || headers === null) return [];
  const entries = typeof headers.entries === "function" ? [...headers.entries()] : Object.entries(headers);
  return entries.filter(([name, value]) => typeof name === "string" && typeof value === "string");
}

/** The verdict on an exchange: see `classify` in `index.d.ts`. */
function classify(exchange) {
  const { provider = "", headers = [], body, hasLeft = false, asks = true, ...rest } = exchange;
  return native.classify({
    ...rest,
    provider,
    headers: Array.isArray(headers) ? headers : pairs(headers),
    body: bytes(body),
    hasLeft,
    asks,
  });
}

/** What an error is for a breaker: a verdict, a kind, or nothing. */
function known(error, provider) {
  if (typeof error !== "object" || error === null) return "server_error";
  if (CircuitOpenError.from(error) !== undefined) return "local";
  if (error instanceof StreamError) return error.kind;
  if (isAbort(error)) return undefined;
  const answer = answerOf(error);
  if (answer !== undefined) return classify({ provider, ...answer });
  const fault = faultOf(error);
  if (fault !== undefined) return classify({ provider, fault });
  const name = nameOf(error);
  return KINDS_BY_NAME[name] ?? (MISTAKES.has(name) ? undefined : "server_error");
}

module.exports = { classify, faultOf, isAbort, known, pairs };
