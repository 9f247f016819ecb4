// The HTTP contract, by the session of this page.
const page = document.getElementById("content").dataset;

export const account = page.account;
export const proof = () => page.proof;

export class Refusal extends Error {
  constructor(status, problem) {
    super(problem.detail || String(status));
    this.status = status;
    this.code = problem.code || "";
    this.problem = problem;
  }
}

// Calls the API; returns the answer, and throws a Refusal for one that is an error.
export async function call(method, path, { json, headers = {}, body, signal } = {}) {
  const sent = { Accept: "application/json", ...headers };
  if (method !== "GET" && method !== "HEAD") sent["Rubezh-Csrf"] = proof();
  if (json !== undefined) sent["Content-Type"] = "application/json";
  const given = json === undefined ? body : JSON.stringify(json);
  const answer = await fetch(path, { method, headers: sent, body: given, signal, credentials: "same-origin" });
  if (answer.ok || answer.status === 304) return answer;
  const kind = answer.headers.get("Content-Type") || "";
  throw new Refusal(answer.status, kind.startsWith("application/problem+json") ? await answer.json() : {});
}

// After a session has ended and the same person has signed in again, in another tab perhaps: go on by the new one.
export async function renewProof(whose = account) {
  try {
    const answer = await fetch("/proof", { credentials: "same-origin", redirect: "error" });
    const found = await answer.json();
    if (found.account !== whose) return false;
    page.proof = found.proof;
    return true;
  } catch {
    return false; // nobody is signed in, or nothing can be reached: whoever asks tries again
  }
}
