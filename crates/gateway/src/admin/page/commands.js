// The operator's switches: what a command would do is said first, and only then done.

import { find, hide, write } from "./dom.js";
import { command } from "./link.js";

/** What each command is called and does. */
const COMMANDS = {
  open: { title: "Force open", go: "Force open", what: "Every call to it is turned away, or answered by the next target, until the time is over or somebody releases it." },
  closed: { title: "Force closed", go: "Force closed", what: "Every call to it passes, however many fail, until the time is over or somebody releases it." },
  release: { title: "Release", go: "Release", what: "Ends a forced state, and a wait that the provider asked for. It goes back to its own rules." },
  reset: { title: "Reset", go: "Reset", what: "It becomes closed, with nothing counted. If the provider is still failing, calls fail until it opens again." },
  all: { title: "Reset all breakers", go: "Reset all", what: "Every breaker becomes closed, with nothing counted; forced states end too." },
};

const path = (name, action) => `breakers/${encodeURIComponent(name)}/${action}`;

async function carryOut(name, which) {
  if (which === "all") return command("reset");
  if (which === "release" || which === "reset") return command(path(name, which));
  const [lasts, note] = [find("command-for").value, find("command-note").value.trim()];
  return command(path(name, "force"), { to: which, ...(lasts && { for: lasts }), ...(note && { note }) });
}

/** Asks for confirmation, carries the command out, and tells when it is done. What goes wrong is said where it was asked. */
export function confirm(name, which, onDone) {
  const [dialog, go, error] = [find("command"), find("command-go"), find("command-error")];
  const { title, go: word, what } = COMMANDS[which];
  const isForced = which === "open" || which === "closed";
  const heading = find("command-title");
  heading.replaceChildren(title);
  if (name !== null) {
    const of = document.createElement("bdi");
    of.textContent = name;
    heading.append(" ", of);
  }
  write(find("command-what"), what);
  write(go, word);
  write(error, "");
  hide(find("command-force"), !isForced);
  find("command-note").value = "";
  go.dataset.tone = which === "open" || which === "all" ? "hard" : "";
  dialog.querySelector("form").onsubmit = async (event) => {
    event.preventDefault();
    if (go.disabled) return;
    go.disabled = true;
    write(error, "");
    try {
      await carryOut(name, which);
      dialog.close();
      onDone();
    } catch (failure) {
      write(error, `Not done: ${failure.message}`);
    } finally {
      go.disabled = false;
    }
  };
  dialog.showModal();
  (isForced ? find("command-for") : go).focus();
}

/** Buttons that close the dialog they stand in. */
export function letClose() {
  for (const button of document.querySelectorAll("dialog [data-close]")) {
    button.addEventListener("click", () => button.closest("dialog").close());
  }
}
