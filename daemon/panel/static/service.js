// The service: looked at anew every few seconds, as long as somebody looks at it.
import { localise } from "./moments.js";

const PAUSE = 5000;

async function again() {
  const main = document.getElementById("content");
  if (!document.hidden && !main.contains(document.activeElement)) {
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      if (answer.ok && !answer.redirected) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        localise(page);
        main.replaceChildren(...page.getElementById("content").childNodes);
      }
    } catch {
      // The network is away: what was seen last stays until it is back.
    }
  }
  setTimeout(again, PAUSE);
}

localise(document);
setTimeout(again, PAUSE);
