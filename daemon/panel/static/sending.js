// Sends a file by parts (tus): goes on after a lost connection, a reload or an ended session where it was.
import { call, proof, renewProof, Refusal } from "./api.js";

const PART = 8 * 1024 * 1024;
const LONGEST_PAUSE = 30_000;
const WORTH_ANOTHER_TRY = new Set([0, 408, 409, 423, 429, 460, 500, 502, 503, 504]);
const FINAL = new Set(["queue_full", "too_many_unfinished", "finished"]);

export const fingerprint = (file) => `${file.name}|${file.size}|${file.lastModified}`;

const encoded = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));

// Sends `item` ({name, size, blob, url}); `hear` is told {state, share}, and `kept` whenever the item changed.
// Returns the record's id; throws a Refusal for what will not be accepted.
export async function send(item, { hear, kept, signal }) {
  for (let failures = 0; ; ) {
    try {
      return await attempt(item, { kept, signal, hear: (share) => { failures = 0; hear({ state: "sending", share }); } });
    } catch (error) {
      if (signal.aborted) throw error;
      if (!(error instanceof Refusal)) throw error;
      if (error.status === 404 || error.status === 410) {
        item.url = null;
        await kept();
      } else if (error.status === 401 || error.code === "forged") {
        if (!(await renewProof(item.account))) hear({ state: "signed_out" });
      } else if (!WORTH_ANOTHER_TRY.has(error.status) || FINAL.has(error.code)) {
        throw error;
      } else if (error.status === 0) {
        hear({ state: "lost" });
      }
      failures += 1;
      await pause(Math.min(500 * 2 ** failures, LONGEST_PAUSE), signal);
    }
  }
}

async function attempt(item, { hear, kept, signal }) {
  if (!item.url) {
    const metadata = `filename ${encoded(item.name)}`;
    const headers = { "Tus-Resumable": "1.0.0", "Upload-Length": item.size, "Upload-Metadata": metadata };
    const begun = await reached(() => call("POST", "/v1/uploads", { headers, signal }));
    item.url = begun.headers.get("Location");
    await kept();
  }
  const asked = await reached(() => call("HEAD", item.url, { headers: { "Tus-Resumable": "1.0.0" }, signal }));
  let record = asked.headers.get("Rubezh-Record");
  let offset = Number(asked.headers.get("Upload-Offset"));
  while (!record) {
    hear(offset / item.size);
    const answer = await part(item, offset, (sent) => hear((offset + sent) / item.size), signal);
    record = answer.record;
    offset = answer.offset;
  }
  return record;
}

// fetch tells nothing of how far a body is, so the parts go by the older way.
function part(item, offset, progress, signal) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const abort = () => request.abort();
    request.open("PATCH", item.url);
    request.setRequestHeader("Tus-Resumable", "1.0.0");
    request.setRequestHeader("Rubezh-Csrf", proof());
    request.setRequestHeader("Content-Type", "application/offset+octet-stream");
    request.setRequestHeader("Upload-Offset", String(offset));
    request.upload.onprogress = (event) => progress(event.loaded);
    request.onloadend = () => {
      signal.removeEventListener("abort", abort);
      if (request.status === 204) {
        const received = Number(request.getResponseHeader("Upload-Offset"));
        resolve({ offset: received, record: request.getResponseHeader("Rubezh-Record") });
      } else {
        reject(new Refusal(request.status, told(request)));
      }
    };
    signal.addEventListener("abort", abort, { once: true });
    request.send(item.blob.slice(offset, offset + PART));
  });
}

function told(request) {
  try {
    return JSON.parse(request.responseText);
  } catch {
    return {}; // a proxy's page, or nothing at all: the status says what there is to say
  }
}

async function reached(ask) {
  try {
    return await ask();
  } catch (error) {
    throw error instanceof TypeError ? new Refusal(0, {}) : error; // what fetch calls a network that failed
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const over = () => {
      clearTimeout(timer);
      removeEventListener("online", over);
      signal.removeEventListener("abort", over);
      resolve();
    };
    const timer = setTimeout(over, milliseconds);
    addEventListener("online", over);
    signal.addEventListener("abort", over);
  });
}
