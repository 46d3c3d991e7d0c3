// What the gateway has told so far: breakers, transitions, calls. Everything in it is bounded, and time is the browser's own.

import { rank, standing } from "./words.js";

/** How far back states are drawn, in milliseconds. */
export const WINDOW = 15 * 60_000;
/** Over how much of the past calls are summed. */
const RECENT = 60_000;
const MAX_SAMPLES = 300;
const MAX_EVENTS = 1000;
/** Two reports of one transition differ by no more than the way they took. */
const SAME = 2_000;

/** A breaker with what was seen of it since the page was opened. */
class Breaker {
  constructor(name) {
    this.name = name;
    this.samples = [];
    this.events = [];
  }

  take(view, now) {
    this.view = view;
    this.takenAt = now;
    this.standing = standing(view);
    this.rank = rank(this.standing);
    if (view.attempts !== null) keep(this.samples, { at: now, attempts: view.attempts, failures: view.failures });
  }

  /** Milliseconds in this state. */
  lasts(now) {
    return this.view.since_ms_ago + now - this.takenAt;
  }

  /** Milliseconds until something ends, and how long it was in all; null where nothing is known to end. */
  left(now) {
    const { why, state, retry_after_ms: retry } = this.view;
    const passed = now - this.takenAt;
    const isForced = state === "forced_open" || state === "forced_closed";
    const from = isForced ? (why?.until_ms ?? null) : retry;
    if (from === null || (from === 0 && !isForced)) return null;
    const whole = why?.until_ms != null && why.to === state ? why.until_ms + why.ms_ago : from;
    return { ms: Math.max(0, from - passed), whole: Math.max(whole, from, 1) };
  }

  /** The share of attempts that failed lately, or as its own rule sees it; null where there were none. */
  failing(now) {
    const part = difference(this.samples, now, (sample) => [sample.failures, sample.attempts]);
    if (part && part[1] > 0) return part[0] / part[1];
    const rule = this.view.rules.find((seen) => seen.rule === "rate" && seen.calls > 0);
    return rule ? rule.hits / rule.calls : null;
  }
}

function keep(samples, sample) {
  const last = samples.at(-1);
  // The counts of another process: from the beginning.
  if (last && Object.keys(sample).some((key) => sample[key] < last[key])) samples.length = 0;
  samples.push(sample);
  if (samples.length > MAX_SAMPLES) samples.shift();
}

/** How far counts have come lately. */
function difference(samples, now, counts) {
  const first = samples.find((sample) => sample.at >= now - RECENT);
  const last = samples.at(-1);
  if (!first || first === last) return null;
  const before = counts(first);
  return counts(last).map((value, at) => value - before[at]);
}

export class Model {
  breakers = new Map();
  /** Transitions and gaps, oldest first. */
  events = [];
  calls = [];

  /** The breakers as they are listed. */
  list(views, now) {
    const names = new Set();
    for (const view of views) {
      names.add(view.name);
      if (!this.breakers.has(view.name)) {
        const breaker = new Breaker(view.name);
        breaker.events = this.events.filter((event) => event.breaker === view.name);
        this.breakers.set(view.name, breaker);
      }
      this.breakers.get(view.name).take(view, now);
    }
    for (const name of this.breakers.keys()) if (!names.has(name)) this.breakers.delete(name);
  }

  /** A transition; false where it was known. */
  add(event, now) {
    const known = { ...event, at: now - event.ms_ago, wall: event.at };
    const isKnown = ({ breaker, number, at }) => breaker === event.breaker && number === event.number && Math.abs(at - known.at) < SAME;
    if (this.events.some(isKnown)) return false;
    this.#put(known);
    const breaker = this.breakers.get(event.breaker);
    if (breaker) {
      breaker.events.push(known);
      breaker.events.sort((a, b) => a.at - b.at);
      if (breaker.events.length > MAX_EVENTS) breaker.events.shift();
    }
    return true;
  }

  /** So many transitions were not told. */
  gap(missed, now) {
    this.#put({ gap: missed, at: now });
  }

  #put(event) {
    this.events.push(event);
    const before = this.events.at(-2);
    if (before && before.at > event.at) this.events.sort((a, b) => a.at - b.at);
    if (this.events.length > MAX_EVENTS) this.events.shift();
  }

  /** The page of metrics, of which the calls are read. */
  metrics(page, now) {
    const sample = { at: now, success: 0, failure: 0, neutral: 0, rejected: 0, fallback: 0 };
    const bounds = [];
    for (const [, name, labels, value] of page.matchAll(/^(calls_total|fallback_total|call_seconds_bucket)(?:\{(.*)\})? (\S+)/gm)) {
      const number = Number(value);
      if (name === "fallback_total") sample.fallback = number;
      else if (name === "calls_total") sample[/outcome="(\w+)"/.exec(labels)?.[1]] += number;
      else bounds.push([Number(/le="([^"]+)"/.exec(labels)[1].replace("+Inf", "Infinity")), number]);
    }
    bounds.forEach(([, number], at) => (sample[`below_${at}`] = number));
    this.bounds = bounds.map(([bound]) => bound);
    keep(this.calls, sample);
  }

  /** The calls of the last minute; null before anything is known. */
  traffic(now) {
    const keys = ["success", "failure", "neutral", "rejected", "fallback"];
    const first = this.calls.find((sample) => sample.at >= now - RECENT);
    const last = this.calls.at(-1);
    if (!first || first === last) return null;
    const since = (key) => last[key] - first[key];
    const [success, failure, neutral, rejected, fallback] = keys.map(since);
    const all = success + failure + neutral + rejected;
    const below = this.bounds.map((bound, at) => [bound, since(`below_${at}`)]);
    const part = (number) => (all ? number / all : null);
    return {
      rate: all / ((last.at - first.at) / 1000),
      failed: part(failure),
      rejected: part(rejected),
      fallback: part(fallback),
      median: within(below, 0.5),
      high: within(below, 0.95),
    };
  }
}

/** Within how many seconds so many of the calls were over, between the bounds of a histogram. */
function within(below, part) {
  const all = below.at(-1)?.[1] ?? 0;
  if (!all) return null;
  const wanted = all * part;
  let [from, before] = [0, 0];
  for (const [bound, number] of below) {
    if (number >= wanted) {
      return Number.isFinite(bound) ? from + ((bound - from) * (wanted - before)) / (number - before) : from;
    }
    [from, before] = [bound, number];
  }
  return from;
}
