// Corrections in place: by edition, kept in the browser until they are saved, both versions shown where they meet.
import { call, renewProof } from "./api.js";
import * as drafts from "./drafts.js";
import { element } from "./elements.js";
import { knows, say } from "./words.js";

export function begin(content, record, text) {
  const about = content.querySelector("[data-about]");
  describe(about, content, record);

  text.root.addEventListener("click", (event) => {
    const fix = event.target.closest("a.fix");
    if (!fix || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open(fix.closest(".line"), record, text);
  });
  addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || event.key.toLowerCase() !== "e") return;
    const line = document.activeElement?.closest?.(".line") ?? text.current;
    if (!line) return;
    event.preventDefault();
    open(line, record, text);
  });
  for (const key of drafts.linesOf(record)) reopen(key, record, text);
}

// A draft from before a reload, in whatever part of the text it is.
async function reopen(key, record, text) {
  const draft = drafts.kept(record, `line ${key}`);
  if (!draft) return;
  await text.load(draft.part);
  const line = text.root.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (line) open(line, record, text, draft);
}

async function open(line, record, text, draft = null) {
  if (line.querySelector("textarea")) {
    line.querySelector("textarea").focus();
    return;
  }
  const key = line.dataset.key;
  const what = `line ${key}`;
  const said = line.querySelector(".said, .why");
  const path = `/v1/records/${record}/segments/${key}`;
  const time = line.querySelector("time").textContent;
  const area = element("textarea", { rows: 2, maxlength: 20000, "aria-label": say("line", { time }) });
  const told = element("p", { class: "told", role: "status" });
  const undo = element("button", { type: "button", hidden: true, onclick: () => save(null) }, say("restore"));
  const form = element("div", { class: "fixing" }, area, told,
    element("span", { class: "ways" },
      element("button", { type: "button", class: "main", onclick: () => save(area.value.trim()) }, say("save")),
      element("button", { type: "button", onclick: close }, say("cancel")),
      undo,
      element("a", { href: `/records/${record}/segments/${key}` }, say("history"))));
  let edition = draft?.edition ?? null;
  area.value = draft?.text ?? (said.matches(".said") ? said.textContent : "");
  said.hidden = true;
  said.after(form);
  fit(area);
  if (draft) told.textContent = say("unsaved");
  else area.focus();

  area.addEventListener("input", () => {
    fit(area);
    const isKept = drafts.keep(record, what, { text: area.value, edition, part: Number(line.closest(".part").dataset.part) });
    told.textContent = isKept ? say("unsaved") : "";
  });
  area.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save(area.value.trim());
  });
  try {
    const there = await (await call("GET", path)).json();
    edition ??= there.edition;
    undo.hidden = there.corrections.length === 0 || there.corrections[0].text === null;
  } catch (error) {
    tell(told, error);
  }

  function close() {
    drafts.drop(record, what);
    form.remove();
    said.hidden = false;
    line.querySelector(".fix").focus();
  }

  async function save(written) {
    told.textContent = say("saving");
    try {
      edition ??= (await (await call("GET", path)).json()).edition;
      const there = await (await signedIn(() => call("PUT", path, { json: { text: written, edition } }))).json();
      drafts.drop(record, what);
      shown(there);
    } catch (error) {
      if (error.code === "edition_conflict") conflict(error.problem.current, written);
      else tell(told, error);
    }
  }

  function shown(there) {
    const isCorrected = there.corrections.length > 0 && there.corrections[0].text !== null;
    const made = element("span", { class: "said" }, there.text.trim());
    form.remove();
    said.replaceWith(made);
    line.classList.toggle("corrected", isCorrected);
    line.classList.remove("gap");
    text.renew(line);
    line.querySelector(".fix").focus();
  }

  function conflict(current, written) {
    told.replaceChildren(
      say("conflict"), " ", element("q", { class: "theirs" }, current.text.trim()), " ",
      element("button", { type: "button", onclick: () => { edition = current.edition; save(written); } }, say("mine")), " ",
      element("button", { type: "button", onclick: () => {
        drafts.drop(record, what);
        shown({ text: current.text, corrections: [{ text: current.text === current.recognised ? null : current.text }] });
      } }, say("theirs")));
  }
}

// Title, description, topics and names: the form of the page, saved without leaving it.
function describe(about, content, record) {
  const form = about.querySelector("form");
  const fields = [...form.querySelectorAll("input:not([type=hidden]), textarea")];
  const told = element("p", { class: "told", role: "status" });
  form.append(told);
  const read = () => Object.fromEntries(fields.map((field) => [field.name, field.value]));
  const draft = drafts.kept(record, "about");
  if (draft) {
    about.open = true;
    for (const field of fields) if (field.name in draft.fields) field.value = draft.fields[field.name];
    form.elements.edition.value = draft.edition;
    told.textContent = say("unsaved");
  }
  form.addEventListener("input", () => {
    const isKept = drafts.keep(record, "about", { fields: read(), edition: Number(form.elements.edition.value) });
    told.textContent = isKept ? say("unsaved") : "";
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    save();
  });

  async function save() {
    told.textContent = say("saving");
    const written = read();
    const topics = written.topics.split("\n").map((topic) => topic.trim()).filter(Boolean);
    const json = { ...written, topics, edition: Number(form.elements.edition.value) };
    try {
      const there = await (await signedIn(() => call("PATCH", form.dataset.api, { json }))).json();
      drafts.drop(record, "about");
      form.elements.edition.value = there.edition;
      shown(there);
      told.textContent = say("saved");
    } catch (error) {
      if (error.code === "edition_conflict") conflict(error.problem.current);
      else tell(told, error);
    }
  }

  function shown(there) {
    const name = content.querySelector("[data-name]");
    name.textContent = there.title || there.filename || name.textContent;
    document.title = `${name.textContent} · ${document.title.split(" · ").at(-1)}`;
    const words = content.querySelector("[data-description]");
    words.textContent = there.description;
    words.hidden = !there.description;
  }

  function conflict(current) {
    const theirs = fields.filter((field) => textOf(current[field.name]) !== field.value)
      .map((field) => element("li", {}, form.querySelector(`[for="${field.id}"]`).textContent, ": ",
        element("q", { class: "theirs" }, textOf(current[field.name]))));
    told.replaceChildren(say("conflict"), element("ul", {}, ...theirs),
      element("button", { type: "button", onclick: () => { form.elements.edition.value = current.edition; save(); } }, say("mine")), " ",
      element("button", { type: "button", onclick: () => {
        for (const field of fields) field.value = textOf(current[field.name]);
        form.elements.edition.value = current.edition;
        drafts.drop(record, "about");
        shown({ ...current, filename: "" });
        told.textContent = "";
      } }, say("theirs")));
  }
}

const textOf = (value) => (Array.isArray(value) ? value.join("\n") : value ?? "");

function fit(area) {
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight + 2}px`;
}

// Says it once more when the session is another one by now: who signed in again need not write again.
async function signedIn(said) {
  try {
    return await said();
  } catch (error) {
    const isOver = error.status === 401 || error.code === "forged";
    if (isOver && (await renewProof())) return said();
    throw error;
  }
}

function tell(told, error) {
  if (error.status === 401 || error.code === "forged") told.textContent = say("over");
  else if (error.status === undefined) told.textContent = say("offline");
  else told.textContent = say("failed", { why: knows(`error.${error.code}`) ? say(`error.${error.code}`) : error.message });
}
