// What was written and is not saved yet: kept in this browser, for its account, until the service has it.
import { account } from "./api.js";

const name = (record, what) => `rubezh draft ${account} ${record} ${what}`;

export function keep(record, what, draft) {
  try {
    localStorage.setItem(name(record, what), JSON.stringify(draft));
    return true;
  } catch {
    return false; // a browser without room: the text is in the page as long as that is open
  }
}

export function kept(record, what) {
  try {
    return JSON.parse(localStorage.getItem(name(record, what)));
  } catch {
    return null;
  }
}

export function drop(record, what) {
  try {
    localStorage.removeItem(name(record, what));
  } catch {
    // where nothing can be kept there is nothing to drop
  }
}

// Which lines of a record have a draft.
export function linesOf(record) {
  const begins = name(record, "line ");
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(begins)).map((key) => key.slice(begins.length));
  } catch {
    return [];
  }
}
