// Small ways to write into the page. Text only ever becomes text.

const SVG = "http://www.w3.org/2000/svg";

export const find = (id) => document.getElementById(id);

/** An element with attributes and children; an attribute that is null or false is left out. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for what belongs into an `svg`. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) set(node, name, value);
  node.append(...children);
  return node;
}

/** Writes a text where it differs, so that nothing is laid out in vain. */
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Sets an attribute where it differs. */
export function set(node, name, value) {
  if (value === null || value === undefined || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) {
    node.setAttribute(name, value);
  }
}

/** Hides or shows, where that differs. */
export function hide(node, isHidden) {
  if (node.hidden !== isHidden) node.hidden = isHidden;
}

/** The picture of a standing. */
export function glyph(standing) {
  return svg("svg", { class: "glyph", "aria-hidden": "true" }, svg("use", { href: `#${standing}` }));
}

/** Long names keep their beginning and their end. Cut between letters, never within one. */
export function shortened(name, most = 96) {
  if (name.length <= most) return name;
  const letters = [...name.slice(0, most), "…", ...name.slice(-12)];
  return letters.filter((letter) => !/^[\ud800-\udfff]$/.test(letter)).join("");
}

/** Puts the children of a list into this order, and moves no more than it must: what is in place keeps focus and scroll. */
export function arrange(list, wanted) {
  let next = list.firstElementChild;
  for (const node of wanted) {
    if (node === next) {
      next = next.nextElementSibling;
    } else if (next && next.nextElementSibling === node) {
      // The one before it leaves; its own place comes later.
      next = node.nextElementSibling;
    } else if (list.moveBefore && node.parentNode === list) {
      list.moveBefore(node, next);
    } else {
      const focused = node.contains(document.activeElement) && document.activeElement;
      list.insertBefore(node, next);
      if (focused) focused.focus({ preventScroll: true });
    }
  }
}
