// Settings: the keys of the configuration file, in camel case or as they are written there.

"use strict";

const { SettingsError } = require("./errors.js");
const native = require("./native.js");

const SETTINGS = new Set([
  ...["preset", "mode", "trip", "on_success", "degraded_at", "cooldown", "backoff", "backoff_after", "max_cooldown"],
  ...["jitter", "max_retry_after", "probes", "successes_to_close", "probe_timeout", "probe_proof", "ramp"],
  ...["max_in_flight", "count", "per", "kinds"],
]);
const OPTIONS = new Set(["model", "clock", "timeouts", "judge", "check", "fetch"]);
const TIMEOUTS = new Set([
  ...["first_token", "stall", "idle", "total", "answer", "min_tokens_per_second", "cancel_counts_after"],
]);
const KIND = new Set(["count", "threshold", "immediate_open", "cooldown"]);
const RULES = {
  consecutive: new Set(["rule", "failures"]),
  window: new Set(["rule", "failures", "window"]),
  rate: new Set(["rule", "threshold", "window", "min_calls"]),
  slow: new Set(["rule", "slower_than", "threshold", "window", "min_calls"]),
  cusum: new Set(["rule", "well", "ill", "calls_per_false_alarm"]),
};
const DURATIONS = new Set([
  ...["cooldown", "max_cooldown", "max_retry_after", "probe_timeout", "probe_proof", "ramp", "window", "slower_than"],
]);
const LONGEST = 2 ** 31 - 1; // what a timer can do, in milliseconds
const UNITS = { ns: 1e-6, us: 1e-3, ms: 1, s: 1e3, m: 6e4, h: 3.6e6, d: 8.64e7 };

const snake = (key) => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const camel = (key) => key.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** The keys of an object as configuration writes them; those that are not known, or said twice, are problems. */
function named(place, given, known, problems) {
  const found = {};
  for (const [key, value] of Object.entries(given)) {
    const name = snake(key);
    if (value === undefined) continue;
    if (!known.has(name)) {
      problems.push(`${place}${key} is no setting, must be one of ${[...known].map(camel).sort().join(", ")}`);
    } else if (name in found) {
      problems.push(`${place}${key} is said twice, must be one of ${camel(name)} and ${name}`);
    } else {
      found[name] = DURATIONS.has(name) ? durationText(value) : value;
    }
  }
  return found;
}

/** As configuration writes it; what is no duration is left for the reader to refuse. */
function durationText(value) {
  return typeof value === "number" && value >= 0 && value < 1e13 ? `${Math.round(value * 1e6)}ns` : value;
}

/** A duration in milliseconds. */
function milliseconds(key, value) {
  if (typeof value === "number" && value >= 0 && Number.isFinite(value)) return value;
  if (typeof value === "string" && /^(\s*\d+(\.\d+)?\s*(ns|us|ms|s|m|h|d))+\s*$/.test(value)) {
    const parts = value.matchAll(/(\d+(?:\.\d+)?)\s*(ns|us|ms|s|m|h|d)/g);
    return [...parts].reduce((sum, [, count, unit]) => sum + Number(count) * UNITS[unit], 0);
  }
  throw new SettingsError([`${key} is ${JSON.stringify(value)}, must be a duration such as "30s" or 1500 (ms)`]);
}

function rule(place, given, problems) {
  if (!isObject(given) || !(given.rule in RULES)) return given;
  return named(`${place}.`, given, RULES[given.rule], problems);
}

/** The settings as the JSON that the native module reads. */
function encode(given, problems) {
  const written = given;
  if (Array.isArray(written.trip)) {
    written.trip = written.trip.map((entry, at) => rule(`trip[${at}]`, entry, problems));
  }
  if (isObject(written.kinds)) {
    const rows = Object.entries(written.kinds);
    written.kinds = Object.fromEntries(
      rows.map(([kind, row]) => [kind, isObject(row) ? named(`kinds.${kind}.`, row, KIND, problems) : row]),
    );
  }
  const text = JSON.stringify(written, Object.keys(written).length ? sorted : undefined);
  if (problems.length === 0) problems.push(...native.problems(text));
  return text;
}

function sorted(_, value) {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** The limits of calls and streams in milliseconds; those left out are not in it. */
function limits(given, problems) {
  const found = {};
  for (const [name, value] of Object.entries(named("timeouts.", given, TIMEOUTS, problems))) {
    const key = camel(name);
    try {
      found[key] = name === "min_tokens_per_second" ? Number(value) : milliseconds(`timeouts.${key}`, value);
    } catch (error) {
      problems.push(...error.problems);
    }
  }
  return found;
}

/** Options that are few: those of these keys. */
function chosen(given, keys) {
  const problems = [];
  const found = named("", given, new Set(keys.map(snake)), problems);
  if (problems.length > 0) throw new SettingsError(problems);
  return Object.fromEntries(Object.entries(found).map(([name, value]) => [camel(name), value]));
}

/** What was given, in its parts: settings as JSON, and what is JavaScript's own. */
function read(options = {}) {
  const problems = [];
  const { model, clock, timeouts = {}, judge, check, fetch, ...settings } = options;
  const known = new Set([...SETTINGS, ...OPTIONS]);
  const written = named("", settings, known, problems);
  const text = encode(written, problems);
  for (const [key, value] of Object.entries({ judge, check, fetch })) {
    if (value !== undefined && typeof value !== "function") problems.push(`${key} is ${typeof value}, must be a function`);
  }
  const read = { model, clock, settings: text, limits: limits(timeouts, problems), judge, check, fetch };
  if (problems.length > 0) throw new SettingsError(problems);
  return read;
}

module.exports = { LONGEST, chosen, milliseconds, read };
