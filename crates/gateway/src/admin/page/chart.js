// Two drawings: the states of the last minutes as a strip, and the share of failures as a line.

import { set, svg } from "./dom.js";
import { WINDOW } from "./model.js";

const HEIGHT = 24;
/** How high a state stands: the worse, the higher, so that it is told without colour. */
const HEIGHTS = { closed: 3, degraded: 9, forced_closed: 9, half_open: 15, open: 24, forced_open: 24 };

/** Draws the states that a breaker went through. */
export function strip(picture, breaker, now) {
  const start = now - WINDOW;
  const paths = new Map();
  // What was before the first that is known of it is not drawn.
  const first = breaker.events[0];
  let from = first ? (first.number === 1 ? start : first.at) : now - breaker.lasts(now);
  const draw = (state, to) => {
    const height = HEIGHTS[state] ?? HEIGHT;
    const [left, right] = [Math.max(from, start), Math.min(to, now)];
    if (right <= left) return;
    // Short states stay visible.
    const x = Math.round(((left - start) / WINDOW) * 900);
    const width = Math.max(3, Math.round(((right - left) / WINDOW) * 900));
    const path = `M${Math.min(x, 900 - width)} ${HEIGHT - height}h${width}v${height}h${-width}z`;
    paths.set(state, (paths.get(state) ?? "") + path);
  };
  for (const event of breaker.events) {
    if (event.at > start && event.at >= from) {
      draw(event.from, event.at);
      from = event.at;
    }
  }
  draw(breaker.view.state, now);
  set(picture, "viewBox", `0 0 900 ${HEIGHT}`);
  const known = [...picture.children];
  const states = [...paths.keys()].sort((a, b) => (HEIGHTS[a] ?? 0) - (HEIGHTS[b] ?? 0));
  states.forEach((state, at) => {
    const path = known[at] ?? picture.appendChild(svg("path"));
    set(path, "class", `in-${state}`);
    set(path, "d", paths.get(state));
  });
  known.slice(states.length).forEach((path) => path.remove());
}

/** Whether a strip changes as time goes by. */
export const moves = (breaker, now) => breaker.events.some((event) => event.at > now - WINDOW - 60_000);

/** Draws the share of failures between samples; false where nothing was asked meanwhile. */
export function line(picture, samples) {
  const shares = [];
  for (let at = 1; at < samples.length; at += 1) {
    const calls = samples[at].attempts - samples[at - 1].attempts;
    const failures = samples[at].failures - samples[at - 1].failures;
    shares.push({ at: samples[at].at, share: calls > 0 ? failures / calls : null });
  }
  if (!shares.some(({ share }) => share !== null)) return false;
  const [first, last] = [samples[0].at, samples.at(-1).at];
  const x = (at) => (((at - first) / Math.max(1, last - first)) * 900).toFixed(1);
  let path = `M0 ${HEIGHT * 2}`;
  let bottom = 0;
  for (const { at, share } of shares) {
    bottom = HEIGHT * 2 - (share ?? 0) * (HEIGHT * 2 - 2);
    path += `V${bottom.toFixed(1)}H${x(at)}`;
  }
  set(picture, "viewBox", `0 0 900 ${HEIGHT * 2}`);
  const drawn = picture.firstElementChild ?? picture.appendChild(svg("path"));
  set(drawn, "d", `${path}V${HEIGHT * 2}z`);
  return true;
}
