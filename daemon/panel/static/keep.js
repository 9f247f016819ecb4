// What this browser keeps until the service has it: files that are being sent, and recordings in the making.
// Everything is of an account: another one that signs in here sees and sends none of it.
const VERSION = 1;
let opening = null;

function open() {
  opening ??= new Promise((resolve, reject) => {
    const asked = indexedDB.open("rubezh", VERSION);
    asked.onupgradeneeded = () => {
      asked.result.createObjectStore("sends", { keyPath: "id" });
      asked.result.createObjectStore("recordings", { keyPath: "id" });
      asked.result.createObjectStore("chunks", { keyPath: ["recording", "number"] });
    };
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
    asked.onblocked = () => reject(new Error("the browser's store is held by another tab"));
  });
  return opening;
}

// Does `work` with the named stores in one transaction, and waits until all of it is kept.
async function within(names, mode, work) {
  const database = await open();
  return new Promise((resolve, reject) => {
    const transaction = database.transaction(names, mode, { durability: "strict" });
    let result;
    transaction.oncomplete = () => resolve(result && "result" in result ? result.result : result);
    transaction.onerror = transaction.onabort = () => reject(transaction.error);
    result = work(...names.map((name) => transaction.objectStore(name)));
  });
}

const chunksOf = (id) => IDBKeyRange.bound([id, 0], [id, Infinity]);

export const putSend = (send) => within(["sends"], "readwrite", (sends) => { sends.put(send); });

export const dropSend = (id) => within(["sends"], "readwrite", (sends) => { sends.delete(id); });

export async function sendsOf(account) {
  const all = await within(["sends"], "readonly", (sends) => sends.getAll());
  return all.filter((send) => send.account === account);
}

export const putRecording = (recording) =>
  within(["recordings"], "readwrite", (recordings) => { recordings.put(recording); });

export async function recordingsOf(account) {
  const all = await within(["recordings"], "readonly", (recordings) => recordings.getAll());
  return all.filter((recording) => recording.account === account);
}

export const putChunk = (recording, number, blob) =>
  within(["chunks"], "readwrite", (chunks) => { chunks.put({ recording, number, blob }); });

export async function wholeOf(recording) {
  const chunks = await within(["chunks"], "readonly", (store) => store.getAll(chunksOf(recording.id)));
  return new Blob(chunks.map((chunk) => chunk.blob), { type: recording.type });
}

// A recording becomes something to be sent, or is dropped: never both, never neither.
export const endRecording = (id, send = null) =>
  within(["recordings", "chunks", "sends"], "readwrite", (recordings, chunks, sends) => {
    recordings.delete(id);
    chunks.delete(chunksOf(id));
    if (send) sends.put(send);
  });
