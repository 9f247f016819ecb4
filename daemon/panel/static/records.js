// The list of records: rows that change as their records do, files dropped anywhere, the microphone.
import { element, parsed } from "./elements.js";
import { live } from "./live.js";
import * as microphone from "./microphone.js";
import { localise } from "./moments.js";
import * as transfers from "./transfers.js";
import { say } from "./words.js";

const content = document.getElementById("content");
const isFirst = !new URLSearchParams(location.search).has("cursor");

// Rows.
const rows = () => content.querySelector("[data-rows]");
const liveIds = () => [...content.querySelectorAll(".row[data-live=true]")].map((row) => row.dataset.id);

const stream = live(
  () => `/records/live?${new URLSearchParams({ ids: liveIds().join(","), newest: content.dataset.newest })}`,
  { row: replaceRow, newer: () => isFirst && refresh(), over: () => stream.end() },
);

function replaceRow({ id, html }) {
  const there = document.getElementById(`r-${id}`);
  if (!there) return;
  if (!html) {
    there.remove();
    return;
  }
  const made = parsed(html);
  localise(made);
  if (made.isEqualNode(there)) return;
  const box = there.querySelector("input");
  const focused = there.contains(document.activeElement) ? document.activeElement.tagName : "";
  made.querySelector("input").checked = box.checked;
  there.replaceWith(made);
  if (focused) made.querySelector(focused === "INPUT" ? "input" : "a").focus();
}

// The list anew, as the service has it now: by the same page, of which the list is taken.
async function refresh() {
  const answer = await fetch(location.href, { credentials: "same-origin" });
  if (!answer.ok || answer.redirected) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const list = page.querySelector("[data-list]");
  const selected = new Set([...content.querySelectorAll(".row input:checked")].map((box) => box.value));
  localise(list);
  for (const box of list.querySelectorAll(".row input")) box.checked = selected.has(box.value);
  content.querySelector("[data-list]").replaceWith(list);
  content.dataset.newest = page.getElementById("content").dataset.newest;
  count();
  stream.again();
}

// Selecting: the deeds are there when there is something to do them to.
function count() {
  const bulk = content.querySelector(".bulk");
  if (bulk) bulk.hidden = !content.querySelector(".row input:checked");
}
content.addEventListener("change", (event) => { if (event.target.matches(".row input")) count(); });
count();

// Sending.
const place = content.querySelector("[data-send]");
const input = element("input", {
  type: "file", multiple: true, accept: "audio/*,video/*", id: "files", class: "unseen",
  onchange: () => { [...input.files].forEach(transfers.add); input.value = ""; },
});
const choose = element("label", { class: "choose", for: "files" }, place.querySelector(".choose span").textContent);
place.replaceChildren(element("div", { class: "ways" }, input, choose));
const hint = element("span", { class: "quiet hint" }, say("drop.hint"));
transfers.begin(place, () => { if (isFirst) refresh(); });
microphone.begin(place.firstElementChild);
place.firstElementChild.append(hint);

const drop = element("div", { class: "drop", hidden: true, "aria-hidden": "true" }, say("drop"));
document.body.append(drop);
const brings = (event) => event.dataTransfer && [...event.dataTransfer.types].includes("Files");
addEventListener("dragover", (event) => {
  if (!brings(event)) return;
  event.preventDefault();
  drop.hidden = false;
});
addEventListener("dragleave", (event) => { if (!event.relatedTarget) drop.hidden = true; });
addEventListener("drop", (event) => {
  if (!brings(event)) return;
  event.preventDefault();
  drop.hidden = true;
  [...event.dataTransfer.files].forEach(transfers.add);
});

// "/" leads to the search, as in most places where people read.
addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]");
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
  event.preventDefault();
  content.querySelector("[type=search]").focus();
});

localise(document);
