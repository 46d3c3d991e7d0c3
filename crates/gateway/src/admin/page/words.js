// What states, causes and times are called, in a sentence that can be read from across the room.

/** How a breaker stands, worst first. A key that its provider asked to wait is closed, and yet turns calls away. */
export const STANDINGS = {
  open: { word: "Open", does: "Calls are turned away." },
  forced_open: { word: "Forced open", does: "An operator has it turn every call away." },
  half_open: { word: "Half-open", does: "Single calls go out as probes; the others are turned away." },
  held: { word: "Held", does: "Calls with it are turned away for as long as the provider asked." },
  degraded: { word: "Degraded", does: "Calls pass, but it is close to opening." },
  forced_closed: { word: "Forced closed", does: "An operator lets every call pass, whatever becomes of it." },
  closed: { word: "Closed", does: "Calls pass." },
};

const RANKS = new Map(Object.keys(STANDINGS).map((name, rank) => [name, rank]));

export const rank = (standing) => RANKS.get(standing) ?? 0;
export const wordOf = (standing) => STANDINGS[standing]?.word ?? standing;
/** Whether calls are turned away in this standing. */
export const turnsAway = (standing) => rank(standing) <= rank("held");

export function standing(view) {
  const flows = view.state === "closed" || view.state === "degraded";
  return flows && view.reason === "held" ? "held" : view.state;
}

/** What it does to calls, in its mode. */
export function does(view) {
  if (view.mode !== "enforce" && turnsAway(view.state)) return "Only watching: no call is turned away in this mode.";
  if (view.state === "open" && view.reason === null) return "The cooldown is over: the next call is a probe.";
  if (view.reason === "ramping") return "Just closed: admission is still growing.";
  if (view.reason === "saturated") return "As many calls are under way as it lets pass at once.";
  return STANDINGS[standing(view)]?.does ?? "";
}

const count = (number) => String(Math.round(number * 100) / 100);
const percent = (share) => `${Math.round(share * 1000) / 10} %`;
const of = ({ observed, threshold }) => `${count(observed)} of ${count(threshold)}`;

/** Causes of transitions. */
const CAUSES = {
  consecutive: (why) => `${count(why.observed)} failures in a row, limit ${count(why.threshold)}`,
  window: (why) => `${count(why.observed)} failures in the window, limit ${count(why.threshold)}`,
  rate: (why) => `${percent(why.observed)} of calls failed, limit ${percent(why.threshold)}`,
  slow: (why) => `${percent(why.observed)} of calls were slow, limit ${percent(why.threshold)}`,
  cusum: (why) => `failures have become more: ${count(why.observed)} less what successes took off, limit ${count(why.threshold)}`,
  kind: (why) => (why.threshold > 0 ? `a limit of its own: ${of(why)}` : "this kind opens at once"),
  open_now: () => "the provider said when to come back",
  probe: (why) => (why.to === "closed" ? `${of(why)} probes were good` : "a probe failed"),
  lease: () => "a probe gave no sign of life",
  cooldown: () => "the cooldown is over, a call goes out as a probe",
  pressure: (why) => `${percent(why.observed)} of the way to a limit`,
  models: (why) => (why.threshold > 0 ? `${of(why)} of its models are open` : "more than half of its models are open"),
  operator: () => "an operator's command",
  expiry: () => "the time of the forced state is over",
  restored: () => "as it was before the restart",
  fleet: () => "the replicas of the fleet together",
};

/** Why a transition came about, in words. */
export function because(why) {
  const told = CAUSES[why.cause]?.(why) ?? why.cause;
  return why.kind ? `${told} (${kindOf(why.kind)})` : told;
}

/** The reason a breaker stands as it does, or nothing where there is none to give. */
export function reason(view) {
  const now = standing(view);
  if (now === "held") return "the provider asked this key to wait";
  return view.why && now !== "closed" ? because(view.why) : "";
}

export const kindOf = (kind) => kind.replaceAll("_", " ");
export const sentence = (text) => text && text[0].toUpperCase() + text.slice(1);
export const plural = (number, one, many) => `${number} ${number === 1 ? one : many}`;

/** A length of time, coarse: "8 s", "4 min 12 s", "3 h 5 min", "2 d 4 h". It is never broken over two lines. */
export const length = (ms) => parts(ms).join(SPACE);

/** The same, coarser still: for what nobody needs to see tick. */
export const about = (ms) => (ms < 60_000 ? "just now" : parts(ms)[0]);

const SPACE = "\u00a0";

function parts(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const units = [
    ["d", 86_400],
    ["h", 3_600],
    ["min", 60],
    ["s", 1],
  ];
  const at = seconds ? units.findIndex(([, size]) => seconds >= size) : units.length - 1;
  let rest = seconds;
  const counts = units.map(([unit, size]) => {
    const count = Math.floor(rest / size);
    rest -= count * size;
    return [count, `${count}${SPACE}${unit}`];
  });
  const told = counts.slice(at, at + 2);
  return told.filter(([count], place) => count || place === 0).map(([, text]) => text);
}

/** A count-down: "0:08", "12:30", "1:04:00". */
export function clock(ms) {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  const pad = (number) => String(number).padStart(2, "0");
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60), seconds % 60];
  return hours ? `${hours}:${pad(minutes)}:${pad(rest)}` : `${minutes}:${pad(rest)}`;
}

/** What a count-down counts to. */
export function countsTo(view) {
  if (view.state === "forced_open" || view.state === "forced_closed") return "back to its rules in";
  return { open: "next probe in", held: "over in" }[standing(view)] ?? "ask again in";
}

/** A share as people read it: no decimals from 10 % on, and never 0 or 100 for what only comes near. */
export function share(part) {
  const value = part * 100;
  if (value > 0 && value < 0.1) return "< 0.1";
  if (value > 99.9 && value < 100) return "> 99.9";
  return value === 0 || value === 100 || value >= 10 ? String(Math.floor(value)) : value.toFixed(1);
}
