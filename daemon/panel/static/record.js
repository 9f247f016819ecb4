// One record: heard, read, corrected; it grows as it is recognised.
import { begin as beginEditing } from "./editing.js";
import { parsed } from "./elements.js";
import { live } from "./live.js";
import { localise } from "./moments.js";
import { begin as beginPlayer } from "./player.js";
import { begin as beginText } from "./text.js";

const content = document.getElementById("content");
const { record } = content.dataset;

const text = beginText(content, record);
const player = beginPlayer(content, record, text);
text.listen(player);
beginEditing(content, record, text);

let first = true;
const stream = live(() => `/records/${record}/live`, {
  state({ html }) {
    const there = document.getElementById("state");
    const made = parsed(html);
    localise(made);
    if (made.isEqualNode(there)) return;
    const focused = there.contains(document.activeElement) ? document.activeElement.closest("form")?.action : null;
    there.replaceWith(made);
    if (focused) [...made.querySelectorAll("form")].find((form) => form.action === focused)?.querySelector("button").focus();
  },
  text() {
    // The first word of it is about what the page was made of.
    if (!first) text.refresh();
    first = false;
  },
  over: () => stream.end(),
});

localise(document);
