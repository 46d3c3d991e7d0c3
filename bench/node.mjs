// What a breaker costs a call in Node: fuseline beside opossum and cockatiel in one process, by turns. Medians of the
// processor's time, which other programs disturb less than the wall's.

import { Breaker } from "fuseline";
import { ConsecutiveBreaker, circuitBreaker, handleAll } from "cockatiel";
import CircuitBreaker from "opossum";

const CALLS = 10_000;
const ROUNDS = 7;

const good = async () => 1;
const failure = Object.assign(new Error("down"), { status: 503 });
const bad = async () => {
  throw failure;
};
const caught = (call) => () => call().catch(() => {});

const never = { trip: [{ rule: "consecutive", failures: 1e9 }] };
const breaker = new Breaker("good");
const failing = new Breaker("failing", never);
const refusing = new Breaker("refusing");
refusing.forceOpen();
const quiet = new CircuitBreaker(good, { timeout: false });
const usual = new CircuitBreaker(good);
// With percentiles it sorts all that it remembers at each failure.
const opossumFailing = new CircuitBreaker(bad, { timeout: false, volumeThreshold: 1e9, rollingPercentilesEnabled: false });
const opossumOpen = new CircuitBreaker(good, { timeout: false });
opossumOpen.open();
const cockatiel = circuitBreaker(handleAll, { halfOpenAfter: 10_000, breaker: new ConsecutiveBreaker(5) });
const cockatielFailing = circuitBreaker(handleAll, { halfOpenAfter: 10_000, breaker: new ConsecutiveBreaker(1e9) });
const cockatielOpen = circuitBreaker(handleAll, { halfOpenAfter: 10_000, breaker: new ConsecutiveBreaker(5) });
cockatielOpen.isolate();

const ways = {
  "no breaker": good,
  "fuseline, `execute`": () => breaker.execute(good),
  "opossum, `fire`": () => usual.fire(),
  "opossum, `fire`, without its timeout": () => quiet.fire(),
  "cockatiel, `execute`": () => cockatiel.execute(good),
  "fuseline, failing": caught(() => failing.execute(bad)),
  "opossum, failing": caught(() => opossumFailing.fire()),
  "cockatiel, failing": caught(() => cockatielFailing.execute(bad)),
  "fuseline, refused": caught(() => refusing.execute(good)),
  "opossum, refused": caught(() => opossumOpen.fire()),
  "cockatiel, refused": caught(() => cockatielOpen.execute(good)),
};

async function round(call) {
  const began = process.cpuUsage();
  for (let at = 0; at < CALLS; at += 1) await call();
  const { user, system } = process.cpuUsage(began);
  return ((user + system) * 1_000) / CALLS;
}

const taken = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
for (let at = 0; at < ROUNDS; at += 1) {
  for (const [name, call] of Object.entries(ways)) taken[name].push(await round(call));
}
const median = (name) => taken[name].sort((one, other) => one - other)[Math.floor(ROUNDS / 2)];
console.log("| ns a call | |\n|---|---:|");
for (const name of Object.keys(ways)) console.log(`| ${name} | ${median(name).toFixed(0)} |`);
const ours = median("fuseline, `execute`");
const ratio = ours / median("opossum, `fire`, without its timeout");
console.log(`\nTo opossum's without its timeout: ${ratio.toFixed(2)} (aim 1); to its usual: ${(ours / median("opossum, `fire`")).toFixed(2)}; whole: ${ours.toFixed(0)} ns (aim 1200)`);
process.exit(0);
