// Types of the package. Durations are texts such as "30s", "1m 30s" or "500ms", or numbers of milliseconds; what ends in `Ms` is
// a number of milliseconds. Keys are in camel case; those of the configuration file (`min_calls`) are understood, too.

/** How long. */
export type Duration = string | number;

/** The states of a breaker. */
export type State = "closed" | "degraded" | "open" | "half_open" | "forced_open" | "forced_closed";

/** Why a call was refused. */
export type Reason = "forced" | "open" | "probing" | "saturated" | "ramping" | "held";

/** What a breaker guards. */
export type Scope = "provider" | "model" | "key";

/** What went wrong with a call. */
export type Kind =
  | "server_error"
  | "overloaded"
  | "rate_limit"
  | "quota_exhausted"
  | "timeout"
  | "network"
  | "empty_response"
  | "stream_stall"
  | "stream_truncated"
  | "auth"
  | "permission"
  | "bad_request"
  | "not_found"
  | "context_length"
  | "content_policy"
  | "validation"
  | "parse"
  | "cancelled"
  | "local";

/** A rule that opens. */
export type TripRule =
  | { rule: "consecutive"; failures: number }
  | { rule: "window"; failures: number; window: Duration }
  | { rule: "rate"; threshold: number; window: Duration; minCalls: number }
  | { rule: "slow"; slowerThan: Duration; threshold: number; window: Duration; minCalls: number }
  | { rule: "cusum"; well?: number; ill?: number; callsPerFalseAlarm?: number };

/** How failures of one kind count. */
export interface KindSettings {
  count?: boolean;
  threshold?: number;
  immediateOpen?: boolean;
  cooldown?: Duration;
}

/** The settings of a breaker; each has a default. */
export interface Settings {
  /** A known system's behaviour to start from; other keys win. */
  preset?: "vernllm" | "llmtest" | "llmtest-rate" | "omniroute" | "agents" | "n4n";
  /** `shadow` decides and reports, and rejects nobody; `off` is no breaker. Default `enforce`. */
  mode?: "enforce" | "shadow" | "off";
  /** Any of these opens. Default: 5 failures in a row, or half of at least 10 calls within 60 s. */
  trip?: TripRule[];
  /** What a success does to the run of failures. Default `reset`. */
  onSuccess?: "reset" | "decrement";
  /** Share of a threshold from which the state reads `degraded`. Default 0.6. */
  degradedAt?: number;
  /** Time in `open`. Default 15 s. */
  cooldown?: Duration;
  /** Factor per failed probe episode. Default 2. */
  backoff?: number;
  /** Failed episodes before the factor applies. Default 0. */
  backoffAfter?: number;
  /** Cap of that growth. Default 2 minutes. */
  maxCooldown?: Duration;
  /** Lengthens a cooldown by up to this share. Default 0.1. */
  jitter?: number;
  /** Cap of a provider's own wait hint. Default 1 hour. */
  maxRetryAfter?: Duration;
  /** Live probes at once, 1 to 64. Default 1. */
  probes?: number;
  /** Good probes needed to close. Default 2. */
  successesToClose?: number;
  /** A probe without a sign of life for so long has failed. Default 60 s. */
  probeTimeout?: Duration;
  /** A streaming probe that has delivered for so long is a success. Default 5 s. */
  probeProof?: Duration;
  /** After closing, admission grows to all over this time. Default 0. */
  ramp?: Duration;
  /** Unsettled calls at once; 0, the default, is no limit. */
  maxInFlight?: number;
  /** Kept for settings that are shared with the gateway: here each call of yours is one. */
  count?: "call" | "attempt";
  /** Kept for settings that are shared with the gateway: here each breaker is its own. */
  per?: "model" | "provider";
  /** How failures of a kind count, where that differs from the usual. */
  kinds?: Partial<Record<Kind, KindSettings>>;
}

/** The limits of `fetch` and of streams. */
export interface Timeouts {
  /** Until a stream's first item or content event. Default 60 s, longer for models that are known to think. */
  firstToken?: Duration;
  /** Between items or content events. Default 30 s. */
  stall?: Duration;
  /** Between bytes. Default 30 s. */
  idle?: Duration;
  /** A whole stream. No limit unless set. */
  total?: Duration;
  /** A whole answer that is no stream. Default 10 minutes. */
  answer?: Duration;
  /** Slower than this over ten seconds is too slow to be of use. Default 0: any speed will do. */
  minTokensPerSecond?: number;
  /** Who leaves after so long without an answer has met a timeout. Default 20 s. */
  cancelCountsAfter?: Duration;
}

/** What a breaker is made with. */
export interface BreakerOptions extends Settings {
  /** Guards one model of the provider that the name names. */
  model?: string;
  /** Where its time comes from; tests bring a `Clock.manual()`. */
  clock?: Clock;
  timeouts?: Timeouts;
  /** What an error is: a kind, `false` for nothing, `undefined` for what the rules say of it. */
  judge?: (error: unknown) => Kind | false | undefined;
  /** The kind of failure that an answer is, `undefined` for a good one. */
  check?: (value: any) => Kind | undefined;
  /** What `breaker.fetch` fetches with. Default `globalThis.fetch`. */
  fetch?: typeof globalThis.fetch;
}

/** What a single call is made with. */
export interface CallOptions {
  /** Given on to the function. Once it is aborted, how the call ends says nothing; a signal that is a timeout says so. */
  signal?: AbortSignal;
  /** The call is given up after so many milliseconds: a probe's lease lasts as long. */
  within?: number;
}

/** One counted failure. */
export interface FailureNote {
  atMs: number;
  kind: Kind;
  code?: number;
}

/** A change of state. */
export interface Transition {
  /** 1 for a breaker's first. */
  number: number;
  /** By the breaker's clock. */
  atMs: number;
  from: State;
  to: State;
  generation: number;
  /** When an `open` or forced state ends, where that is known. */
  untilMs?: number;
  why: {
    cause: string;
    observed: number;
    threshold: number;
    kind?: Kind;
    lastFailures: FailureNote[];
    /** All of it in a sentence. */
    text: string;
  };
}

/** Everything there is to see of a breaker at one instant. */
export interface Status {
  name: string;
  scope: Scope;
  atMs: number;
  state: State;
  sinceMs: number;
  generation: number;
  /** Why a call would be refused, if it would. */
  reason?: Reason;
  /** When asking again is of use, where it is not now. */
  retryAfterMs?: number;
  /** Failures with no success between them. */
  run: number;
  kinds: Partial<Record<Kind, number>>;
  rules: { rule: TripRule["rule"]; hits: number; calls?: number; observed: number; threshold: number; armed: boolean }[];
  pressure: number;
  episodes: number;
  liveProbes: number;
  goodProbes: number;
  inFlight: number;
  /** Outcomes whose state had passed. */
  late: number;
  rejected: Record<Exclude<Reason, "held">, number>;
  entered: Record<State, number>;
  openForMs: number;
  incidentSinceMs?: number;
  lastFailures: FailureNote[];
  /** The transition that led here. */
  why?: Transition;
}

/** Leave to make one call, and the duty to say how it went. It settles once; one that is forgotten is cancelled. */
export interface Permit {
  /** The provider came through. False where the permit is settled already, here and below. */
  success(tookMs?: number): boolean;
  failure(kind: Kind, notes?: { retryAfterMs?: number; openNow?: boolean; code?: number }): boolean;
  /** Settles by what the rules say of an error; the kind that is recorded. */
  error(error: unknown, signal?: AbortSignal): Kind | undefined;
  /** Settles by a verdict; the kind that is recorded. */
  verdict(verdict: Verdict): Kind | undefined;
  /** Gives it back: the call says nothing. */
  cancel(): boolean;
  /** A sign of life: a probe's lease begins anew. */
  progress(): void;
  readonly isSettled: boolean;
  readonly isProbe: boolean;
  /** In shadow mode, why an enforcing breaker would have refused. */
  readonly wouldReject: Reason | undefined;
  readonly elapsedMs: number | undefined;
}

/** A circuit breaker. */
export class Breaker {
  constructor(name: string, options?: BreakerOptions);
  readonly name: string;
  readonly scope: Scope;
  readonly state: State;
  /** `fetch` under this breaker, for the SDKs' `fetch` option; it needs no `this`. */
  readonly fetch: typeof globalThis.fetch;
  /**
   * Makes a call. An async iterable or a web stream that it gives is guarded to its end. Rejects with what the call rejects with,
   * or with `CircuitOpenError`.
   */
  execute<T>(call: (signal: AbortSignal | undefined) => T | PromiseLike<T>, options?: CallOptions): Promise<T>;
  /** The function, each call of it under this breaker. */
  wrap<This, Given extends unknown[], T>(
    call: (this: This, ...given: Given) => T | PromiseLike<T>,
  ): (this: This, ...given: Given) => Promise<T>;
  /** Leave to make one call, to be settled by hand. Throws `CircuitOpenError`. */
  acquire(options?: Pick<CallOptions, "within">): Permit;
  /** Whether a call would be let through now. */
  isHealthy(): boolean;
  getStatus(): Status;
  /** Transitions after a number; the last 20 are kept. */
  history(after?: number): Transition[];
  /** Hears transitions, or those into one state, soon after the call that made them. */
  on(event: "transition" | State, listener: (transition: Transition) => void): this;
  off(event: "transition" | State, listener: (transition: Transition) => void): this;
  /** Refuses all calls, for so long or until released. */
  forceOpen(lasting?: Duration): void;
  /** Lets all calls pass, for so long or until released. */
  forceClosed(lasting?: Duration): void;
  release(): void;
  reset(): void;
  /** Other options from now on, all of them. */
  reconfigure(options: Omit<BreakerOptions, "model" | "clock">): void;
}

/** A reader of many breakers' transitions. One that is slow or gone costs no call anything. */
export interface Events {
  /** Everything since the last time. */
  drain(): { name: string; transition: Transition; missed: number }[];
}

/** Breakers by name, at most 500 unless set otherwise. Most programs need none of their own. */
export class Registry {
  constructor(options?: { maxBreakers?: number; clock?: Clock });
  /** The breaker of this name, made if need be. Throws `RegistryError` where it exists with other options. */
  getBreaker(name: string, options?: Omit<BreakerOptions, "clock">): Breaker;
  /** The breaker of this name, if there is one: tells "none" from "closed". */
  findBreaker(name: string, options?: { model?: string }): Breaker | undefined;
  breakers(): Breaker[];
  /** Whether a call under this name would be let through; true where there is no such breaker. */
  isHealthy(name: string, options?: { model?: string }): boolean;
  getStatus(): Status[];
  remove(name: string, options?: { model?: string }): void;
  events(): Events;
}

/** Those of the process, which all its threads share. */
export const getBreaker: Registry["getBreaker"];
export const findBreaker: Registry["findBreaker"];
export const breakers: Registry["breakers"];
export const isHealthy: Registry["isHealthy"];
export const getStatus: Registry["getStatus"];
export const events: Registry["events"];

/**
 * The last good results by request, bounded by bytes and by age: the oldest leave first. The key is everything on which a result
 * may depend: the request, and who asks. **Two users who must not see each other's results need two keys.**
 */
export class Cache<R = any> {
  /**
   * `ttl`: how long a result is kept. Default 10 minutes. `maxBytes`: how much is kept in all. Default 64 MiB. `sizeOf`: how many
   * bytes a key and its result hold; unless it is given, two a letter of both, of objects as JSON. What cannot be measured, and
   * what is larger than all the room, is not kept.
   */
  constructor(options?: { ttl?: Duration; maxBytes?: number; sizeOf?: (key: string, value: R) => number; clock?: Clock });
  keep(key: string, value: R): void;
  recall(key: string): { value: R; ageMs: number } | undefined;
  /** How many results are kept. */
  readonly size: number;
}

/** What a call along a chain came to. */
export interface Answer<R> {
  value: R;
  /** Whose target gave it; none where it comes from the cache. */
  breaker: string | undefined;
  /** How old it is, where it comes from the cache: say so to whoever reads it. */
  ageMs: number | undefined;
}

/** What a call along a chain is made with. */
export interface ChainCallOptions {
  signal?: AbortSignal;
  /** Of the cache: under which a good result is kept, and given back. Without it nothing is. */
  key?: string;
}

/** Targets in the order of preference, each with its breaker or the name of a process-wide one. */
export class Chain<T> {
  /**
   * `maxWait`: where every target refuses, waits so long in all for the first that may be back. Default 0. `budget`: a call takes no
   * longer than that until its result, or its stream, is there: then the signal that the function was given is aborted, and no further
   * target is tried. No limit unless set. `cache`: gives the last good result under the call's key where every target has failed
   * or refused, or the budget is spent. A stream is not kept.
   */
  constructor(
    targets: Iterable<readonly [Breaker | string, T]>,
    options?: { maxWait?: Duration; budget?: Duration; cache?: Cache },
  );
  /**
   * Makes the call to one target after the other until one comes through. Rejects with the last error, or with
   * `CircuitOpenError` and the shortest wait where every target refused.
   */
  execute<R>(
    call: (target: T, signal: AbortSignal | undefined) => R | PromiseLike<R>,
    options?: ChainCallOptions,
  ): Promise<R>;
  /** As `execute`, and tells where the result comes from. */
  answer<R>(
    call: (target: T, signal: AbortSignal | undefined) => R | PromiseLike<R>,
    options?: ChainCallOptions,
  ): Promise<Answer<R>>;
  isHealthy(): boolean;
}

/** How a fleet fares. */
export interface FleetHealth {
  /** Whether each replica decides by itself, because Redis is out of reach. */
  isDegraded: boolean;
  /** Those that were there at the last exchange, this one among them. */
  replicas: number;
}

/** Carries what happens to breakers to a file or a fleet, from threads of its own, until it is closed. Made by `keep`. */
export class Keeper {
  private constructor();
  /** How the fleet fares; none without one. */
  health(): FleetHealth | undefined;
  /** Writes what is left, leaves the fleet, and waits for both. Breakers stay as they are. */
  close(): void;
}

/**
 * Keeps the breakers of `getBreaker` in a file over restarts, or shares them with a fleet, or both. Calls never wait for either.
 * A gateway with the same `fleet` and `prefix` is a replica like any other: a breaker named `openai` here is that of its provider
 * `openai`, and `getBreaker("openai", { model: "gpt-5" })` that of this model.
 *
 * Throws where a file cannot be used, or the address is none of Redis. A Redis that is away is no error: until it answers, this
 * process decides by itself.
 */
export function keep(options: {
  /** The path of an SQLite file. */
  state?: string;
  /** The address of a Redis: `redis://user:password@host:port/database`, `rediss://` for TLS. */
  fleet?: string;
  /** Authorities in PEM that are trusted beside the public ones. */
  caFile?: string;
  /** What every key in Redis begins with. Default `fuseline`. */
  prefix?: string;
  /** Whose breakers. Default those of the process. */
  registry?: Registry;
}): Keeper;

/** What an answer means. */
export interface Verdict {
  readonly kind: Kind | null;
  readonly isSuccess: boolean;
  readonly scope: Scope;
  readonly providerFault: boolean;
  readonly retryable: boolean;
  /** The provider's wait hint. */
  readonly retryAfterMs: number | null;
  readonly evidence: string;
}

/** What an exchange means, as far as it came, by the rules of the gateway. */
export function classify(exchange: {
  /** Whose rules beside the common ones: "openai", "anthropic", "groq" and so on. */
  provider?: string;
  status?: number;
  headers?: Headers | Record<string, string> | [string, string][];
  body?: string | Uint8Array | object;
  /** A stream's events: names and data. */
  events?: [string, string][];
  /** What happened on the wire: "dns", "refused", "tls", "connect_timeout", "reset", "deadline", "stall" and so on. */
  fault?: string;
  /** The caller left. Default false. */
  hasLeft?: boolean;
  /** A model was asked for an answer. Default true. */
  asks?: boolean;
  /** What time it is, since 1970. Default now. */
  atMs?: number;
}): Verdict;

/** The system's monotonic clock, or one that tests move by hand. */
export class Clock {
  private constructor();
  static system(): Clock;
  static manual(): Clock;
  advance(ms: number): void;
  now(): number;
}

/** Of every error that this package throws of its own. */
export class FuselineError extends Error {}

/** The breaker refused: the call was not made. */
export class CircuitOpenError extends FuselineError {
  readonly code: "circuit_open";
  /** Whose. */
  readonly breaker: string;
  readonly scope: Scope;
  readonly reason: Reason;
  /** When it is worth asking again. */
  readonly retryAfterMs: number;
  /** The refusal behind what an SDK threw, if that is what it was. */
  static from(error: unknown): CircuitOpenError | undefined;
}

/** A streamed answer ended before it was complete. */
export class StreamError extends FuselineError {
  /** How: "stream_stall", "stream_truncated" and so on. */
  readonly ending: string;
  readonly kind: Kind;
}

/** Settings that cannot work: every mistake, with its key, its value, and what is allowed. */
export class SettingsError extends FuselineError {
  readonly problems: string[];
}

/** A breaker cannot be had. */
export class RegistryError extends FuselineError {
  /** Whether one of this name exists with other settings; if not, there is no room. */
  readonly isTaken: boolean;
}
