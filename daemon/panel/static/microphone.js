// Recording from the microphone: each second is kept in the browser at once, and let go of when the service has it.
import { account } from "./api.js";
import { element } from "./elements.js";
import * as keep from "./keep.js";
import { worded } from "./moments.js";
import { fingerprint } from "./sending.js";
import { resume } from "./transfers.js";
import { say } from "./words.js";

const KINDS = ["audio/webm;codecs=opus", "audio/mp4", "audio/ogg;codecs=opus"];
const CHUNK = 1000; // milliseconds
const ENDINGS = { "audio/webm": "webm", "audio/mp4": "m4a", "audio/ogg": "ogg" };

export function begin(place) {
  const button = element("button", { type: "button", class: "record", onclick: () => toggle() }, say("record"));
  const words = element("span", { class: "quiet", role: "status" });
  place.append(button, words);
  let now = null;

  async function toggle() {
    button.disabled = true;
    try {
      if (now) await now.stop();
      else now = await recording(told);
    } catch (error) {
      now = null;
      told(error.name === "NotAllowedError" || !navigator.mediaDevices ? say("microphone.none") : error.message);
    }
    button.disabled = false;
    button.textContent = now ? say("record.stop") : say("record");
    button.classList.toggle("on", Boolean(now));
  }

  function told(text, isOver = false) {
    words.textContent = text;
    if (isOver) {
      now = null;
      button.textContent = say("record");
      button.classList.remove("on");
    }
  }

  offerUnsent(place);
}

async function recording(told) {
  if (!navigator.mediaDevices) throw new Error(say("microphone.none"));
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  const type = KINDS.find((kind) => MediaRecorder.isTypeSupported(kind)) || "";
  const recorder = new MediaRecorder(stream, type ? { mimeType: type } : {});
  const kept = { id: crypto.randomUUID(), account, type: recorder.mimeType || type, began: new Date().toISOString() };
  await keep.putRecording(kept);
  const began = performance.now();
  let number = 0;
  let keeping = Promise.resolve();
  recorder.ondataavailable = ({ data }) => {
    if (data.size) keeping = Promise.all([keeping, keep.putChunk(kept.id, number++, data)]);
  };
  const letGo = held(kept);
  const ended = new Promise((resolve) => { recorder.onstop = resolve; });
  const clock = setInterval(() => told(say("recording", { time: clocked(performance.now() - began) })), 500);
  const over = ended.then(async () => {
    clearInterval(clock);
    for (const track of stream.getTracks()) track.stop();
    await keeping;
    await sendRecording(kept);
    letGo();
    told("", true);
  });
  recorder.start(CHUNK);
  told(say("recording", { time: "0:00" }));
  return {
    stop() {
      if (recorder.state !== "inactive") recorder.stop();
      return over;
    },
  };
}

async function sendRecording(kept) {
  const blob = await keep.wholeOf(kept);
  if (!blob.size) return keep.endRecording(kept.id);
  const ending = ENDINGS[kept.type.split(";")[0]] || "webm";
  const name = `${say("recording.name", { moment: worded(new Date(kept.began)) })}.${ending}`;
  const file = new File([blob], name, { type: kept.type });
  const item = {
    id: kept.id, account, name, size: file.size, fingerprint: fingerprint(file), url: null, share: 0, blob: file,
  };
  await keep.endRecording(kept.id, item);
  resume(item);
}

// As long as a tab records, no other one offers its recording as one that was left behind.
function held(kept) {
  let letGo = () => {};
  navigator.locks?.request(`rubezh recording ${kept.id}`, () => new Promise((resolve) => { letGo = resolve; }));
  return () => letGo();
}

async function offerUnsent(place) {
  for (const kept of await keep.recordingsOf(account)) {
    const isFree = navigator.locks
      ? await navigator.locks.request(`rubezh recording ${kept.id}`, { ifAvailable: true }, (lock) => Boolean(lock))
      : true;
    if (isFree) place.append(offer(kept));
  }
}

function offer(kept) {
  const made = element("div", { class: "notice" },
    element("p", {}, say("recording.left", { moment: worded(new Date(kept.began)) })),
    element("span", {},
      element("button", { type: "button", onclick: async () => { made.remove(); await sendRecording(kept); } },
        say("recording.send")), " ",
      element("button", { type: "button", class: "grave", onclick: async () => {
        made.remove();
        await keep.endRecording(kept.id);
      } }, say("record.discard"))));
  return made;
}

function clocked(milliseconds) {
  const seconds = Math.floor(milliseconds / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
