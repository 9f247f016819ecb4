// What is on its way, as a list under the eyes of whoever sends it.
import { account } from "./api.js";
import { element } from "./elements.js";
import * as keep from "./keep.js";
import { fingerprint, send } from "./sending.js";
import { knows, say } from "./words.js";

const LARGEST_KEPT = 2 ** 30; // larger files are read from where they are, and chosen again after a reload
const list = element("ul", { class: "transfers", "aria-live": "polite", hidden: true });
const running = new Map();
let accepted = () => {};

export function begin(place, whenAccepted) {
  accepted = whenAccepted;
  place.append(list);
  return goOn();
}

// Sends a file that was chosen or dropped; one that was unfinished goes on where it was.
export async function add(file) {
  const known = (await kept()).find((each) => each.fingerprint === fingerprint(file) && !running.has(each.id));
  const item = known || {
    id: crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`,
    account, name: file.name, size: file.size, fingerprint: fingerprint(file), url: null, share: 0, blob: null,
  };
  document.getElementById(`t-${item.id}`)?.remove();
  item.blob = file;
  const isKept = await keptWith(item);
  run(item, isKept ? "" : say("unkept", { name: item.name }));
}

// Sends what is kept already, a recording for one.
export const resume = (item) => run(item);

async function kept() {
  try {
    return await keep.sendsOf(account);
  } catch {
    return []; // a browser that keeps nothing sends all the same
  }
}

async function keptWith(item) {
  try {
    await keep.putSend(item.size <= LARGEST_KEPT ? item : { ...item, blob: null });
    return item.size <= LARGEST_KEPT;
  } catch {
    try {
      await keep.putSend({ ...item, blob: null });
    } catch {
      // There is no room at all; whoever sends is told to leave the page open.
    }
    return false;
  }
}

async function goOn() {
  for (const item of await kept()) {
    if (item.blob) alone(item, () => run(item));
    else row(item).say(say("unfinished", { name: item.name, percent: percent(item.share) }));
  }
}

// Another tab may be at it.
function alone(item, work) {
  if (!navigator.locks) return work();
  return navigator.locks.request(`rubezh send ${item.id}`, { ifAvailable: true }, (lock) => (lock ? work() : null));
}

async function run(item, remark = "") {
  const shown = row(item);
  const stop = new AbortController();
  running.set(item.id, stop);
  const keepItem = async () => {
    if (item.size <= LARGEST_KEPT) await keptWith(item);
  };
  try {
    shown.say(remark || say("waiting", { name: item.name }));
    const record = await send(item, {
      signal: stop.signal,
      kept: keepItem,
      hear({ state, share }) {
        if (share !== undefined) item.share = share;
        shown.progress(item.share);
        const words = { sending: say("sending", { name: item.name, percent: percent(item.share) }) };
        shown.say([words[state] ?? say(state, { name: item.name }), remark].filter(Boolean).join(" "));
      },
    });
    await dropped(item);
    shown.say(say("sent", { name: item.name }));
    shown.end();
    accepted(record);
  } catch (error) {
    if (!stop.signal.aborted) {
      const why = knows(`error.${error.code}`) ? say(`error.${error.code}`) : error.message;
      shown.say(say("refused", { name: item.name, why }), true);
    }
  } finally {
    running.delete(item.id);
  }
}

async function dropped(item) {
  try {
    await keep.dropSend(item.id);
  } catch {
    // It was not kept either; the service has it, and knows the upload again should it be sent once more.
  }
}

const percent = (share) => Math.floor((share || 0) * 100);

function row(item) {
  const words = element("span", { class: "words" });
  const bar = element("progress", { max: "1", value: "0", "aria-label": item.name });
  const giveUp = element("button", {
    type: "button", class: "link", "aria-label": say("give_up", { name: item.name }),
    onclick: async () => {
      running.get(item.id)?.abort();
      await dropped(item);
      end();
    },
  }, "×");
  const made = element("li", { id: `t-${item.id}` }, words, giveUp, bar);
  const end = () => {
    made.remove();
    list.hidden = !list.children.length;
  };
  document.getElementById(made.id)?.remove();
  list.append(made);
  list.hidden = false;
  return {
    say(text, isFault = false) {
      if (words.textContent !== text) words.textContent = text;
      made.classList.toggle("fault", isFault);
    },
    progress(share) { bar.value = share || 0; },
    end() { setTimeout(end, 4000); },
  };
}
