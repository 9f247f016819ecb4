// The text: parts of a hundred lines, of which the browser lays out only what is seen; the word that is said is lit.
import { parsed } from "./elements.js";

const SHADED = 160; // pixels at the top, where the player is
const NEAR = 2000; // pixels from what is seen
const LINES = 100; // of a part
const ROOM = 100; // milliseconds between two parts that nobody waits for

export function begin(content, record) {
  const root = content.querySelector("[data-text]");
  const parts = new Map(); // by number, once they are there
  const words = new Map(); // by line: seconds and words, for the parts that were asked for
  const asked = new Map();
  const byPart = new Map();
  let lines = []; // in the order of the audio: {start, end, element}
  let gaps = [];
  let player = null;
  let now = null;
  let scrolledAt = 0;
  const light = "highlights" in CSS ? new Highlight() : null;
  if (light) CSS.highlights.set("word", light);

  const watcher = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) if (isIntersecting) load(Number(target.dataset.part));
  }, { rootMargin: "1500px" });

  const own = root.querySelector(".part");
  if (own?.children.length) {
    settle(own);
    // How tall the others will be, about: so that the bar at the side tells the truth.
    root.style.setProperty("--tall", `${Math.round((own.offsetHeight / own.children.length) * LINES)}px`);
  }
  content.querySelector("[data-pages]")?.remove();
  make(Number(root.dataset.parts));
  addEventListener("wheel", () => { scrolledAt = performance.now(); }, { passive: true });
  addEventListener("touchmove", () => { scrolledAt = performance.now(); }, { passive: true });

  fill();

  // Room for parts that are not there yet.
  function make(count) {
    for (let number = 0; number < count; number++) {
      if (root.querySelector(`[data-part="${number}"]`)) continue;
      const empty = document.createElement("section");
      empty.className = "part empty-part";
      empty.dataset.part = number;
      const after = [...root.children].find((part) => Number(part.dataset.part) > number);
      root.insertBefore(empty, after || null);
      watcher.observe(empty);
    }
  }

  function settle(part) {
    const number = Number(part.dataset.part);
    parts.set(number, part);
    const mine = [...part.children].map((element) => ({
      start: Number(element.dataset.start), end: Number(element.dataset.end), element, part: number,
    }));
    gaps = gaps.filter((gap) => gap.part !== number).concat(mine.filter((line) => line.element.matches(".gap")));
    byPart.set(number, mine);
    lines = [...byPart.keys()].sort((a, b) => a - b).flatMap((each) => byPart.get(each));
  }

  async function fetched(query) {
    const answer = await fetch(`/records/${record}/text?${query}`, { credentials: "same-origin" });
    if (!answer.ok || answer.redirected) return null;
    return parsed(await answer.text());
  }

  function place(part) {
    make(Number(part.dataset.part) + 1);
    const there = root.querySelector(`[data-part="${part.dataset.part}"]`);
    const box = there.getBoundingClientRect();
    const isNear = box.bottom > -NEAR && box.top < innerHeight + NEAR;
    const anchor = isNear ? inSight() : null;
    if (there.children.length) merge(there, part);
    else {
      // Near to what is seen it is laid out at once: then it is as tall as it is, and what is seen can stay in its place.
      part.classList.toggle("fresh", isNear);
      there.replaceWith(part);
      if (isNear) requestAnimationFrame(() => requestAnimationFrame(() => part.classList.remove("fresh")));
    }
    if (anchor) scrollBy(0, Math.round(anchor.line.getBoundingClientRect().top - anchor.top));
    settle(root.querySelector(`[data-part="${part.dataset.part}"]`));
    if (part.children.length) content.querySelector("[data-empty]")?.remove();
  }

  // A line that is seen, and where.
  function inSight() {
    const isSeen = (box) => box.height > 0 && box.bottom > SHADED && box.top < innerHeight;
    if (now?.isConnected && isSeen(now.getBoundingClientRect())) return { line: now, top: now.getBoundingClientRect().top };
    for (const part of parts.values()) {
      if (!isSeen(part.getBoundingClientRect())) continue;
      const line = [...part.children].find((each) => isSeen(each.getBoundingClientRect()));
      if (line) return { line, top: line.getBoundingClientRect().top };
    }
    return null;
  }

  // What is new takes the place of what was there, but for a line that is being corrected.
  function merge(there, part) {
    const known = new Map([...there.children].map((line) => [line.id, line]));
    const made = [...part.children].map((line) => {
      const before = known.get(line.id);
      return before && (before.isEqualNode(line) || before.querySelector("textarea")) ? before : line;
    });
    if (made.length === there.children.length && made.every((line, at) => line === there.children[at])) return;
    there.replaceChildren(...made);
  }

  function load(number) {
    if (parts.has(number)) return Promise.resolve();
    if (!asked.has(number)) {
      asked.set(number, fetched(`part=${number}`).then((part) => { if (part) place(part); }).catch(() => {})
        .finally(() => asked.delete(number)));
    }
    return asked.get(number);
  }

  // All of it comes by and by, so that the browser's own search finds every word.
  async function fill() {
    for (const empty of root.querySelectorAll(".part.empty-part")) {
      if (document.hidden) await new Promise((go) => document.addEventListener("visibilitychange", go, { once: true }));
      await load(Number(empty.dataset.part));
      await new Promise((go) => setTimeout(go, ROOM));
    }
  }

  // The record went on, or was corrected somewhere else: what is seen, and the end, are asked for anew.
  async function refresh() {
    const seen = [...parts.entries()].filter(([, part]) => {
      const box = part.getBoundingClientRect();
      return box.bottom > 0 && box.top < innerHeight;
    }).map(([number]) => number);
    const last = Math.max(0, Number(root.dataset.parts) - 1, ...parts.keys());
    for (const number of new Set([...seen, last, last + 1])) {
      const part = await fetched(`part=${number}`).catch(() => null);
      if (part && part.children.length) {
        root.dataset.parts = Math.max(Number(root.dataset.parts), Number(part.dataset.part) + 1);
        asked.delete(`words ${part.dataset.part}`);
        place(part);
      }
    }
    show(player?.time ?? 0);
  }

  function wordsOf(number) {
    const key = `words ${number}`;
    if (!asked.has(key)) {
      asked.set(key, fetch(`/records/${record}/words?part=${number}`, { credentials: "same-origin" })
        .then(async (answer) => {
          if (!answer.ok || answer.redirected) return;
          for (const [line, said] of Object.entries(await answer.json())) words.set(line, said);
        }).catch(() => asked.delete(key)));
    }
    return asked.get(key);
  }

  // Where each word stands in the line's text: [offset, length, second].
  function spots(element) {
    const node = element.querySelector(".said")?.firstChild;
    const said = words.get(element.dataset.key);
    if (!node || !said) return [];
    const found = [];
    let from = 0;
    for (const [second, word] of said) {
      const at = node.data.indexOf(word, from);
      if (at < 0 || !word) continue;
      found.push([at, word.length, second]);
      from = at + word.length;
    }
    return found;
  }

  function lineAt(second) {
    let low = 0;
    let high = lines.length - 1;
    let found = null;
    while (low <= high) {
      const middle = (low + high) >> 1;
      if (lines[middle].start <= second + 0.001) {
        found = lines[middle];
        low = middle + 1;
      } else high = middle - 1;
    }
    return found;
  }

  function show(second, { scroll = false } = {}) {
    const line = lineAt(second);
    if (line?.element !== now) {
      now?.classList.remove("now");
      now = line?.element ?? null;
      now?.classList.add("now");
      if (now && (scroll || (player?.playing && performance.now() - scrolledAt > 4000))) reveal(now);
    }
    if (!light) return;
    light.clear();
    if (!line || !player?.started) return;
    if (!words.has(line.element.dataset.key)) wordsOf(line.part);
    const node = line.element.querySelector(".said")?.firstChild;
    const spot = spots(line.element).findLast(([, , at]) => at <= second + 0.001);
    if (!node || !spot || second > line.end + 1) return;
    const range = new Range();
    range.setStart(node, spot[0]);
    range.setEnd(node, spot[0] + spot[1]);
    light.add(range);
  }

  function reveal(element) {
    const box = element.getBoundingClientRect();
    if (box.top < SHADED || box.bottom > innerHeight - 60) element.scrollIntoView({ block: "center" });
  }

  async function go(second) {
    const line = lineAt(second);
    if (!line || !parts.has(line.part) || second > line.end + 60 || (line === lines.at(-1) && second > line.end)) {
      const part = await fetched(`at=${second}`).catch(() => null);
      if (part && !parts.has(Number(part.dataset.part))) place(part);
    }
    show(second, { scroll: true });
  }

  function caret(event) {
    const at = document.caretPositionFromPoint?.(event.clientX, event.clientY);
    if (at) return [at.offsetNode, at.offset];
    const range = document.caretRangeFromPoint?.(event.clientX, event.clientY);
    return range ? [range.startContainer, range.startOffset] : [null, 0];
  }

  // A click on a word jumps to it; who selects text selects it.
  root.addEventListener("click", async (event) => {
    const at = event.target.closest("a.at");
    const line = event.target.closest(".line");
    if (!line || !player || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (at) {
      event.preventDefault();
      player.go(Number(line.dataset.start));
      return;
    }
    if (!event.target.closest(".said") || !getSelection().isCollapsed) return;
    const [node, offset] = caret(event);
    if (!words.has(line.dataset.key)) await wordsOf(Number(line.closest(".part").dataset.part));
    const spot = spots(line).findLast(([begins]) => begins <= offset);
    const isThere = node === line.querySelector(".said").firstChild && spot;
    player.go(isThere ? spot[2] : Number(line.dataset.start));
  });

  return {
    root,
    refresh,
    show,
    go,
    load,
    listen(heard) {
      player = heard;
      const at = new URLSearchParams(location.search).get("at");
      if (player && at !== null && Number.isFinite(Number(at))) player.stand(Number(at));
      if (at !== null) show(Number(at) || 0, { scroll: true });
    },
    get current() { return now; },
    get gaps() { return gaps; },
    // Forgets when the words of a line are said: it says others by now.
    renew(line) {
      words.delete(line.dataset.key);
      asked.delete(`words ${line.closest(".part").dataset.part}`);
    },
    beside(step) {
      const here = now ? lines.findIndex((line) => line.element === now) : -1;
      return lines[Math.min(Math.max(here + step, 0), lines.length - 1)] ?? null;
    },
  };
}
