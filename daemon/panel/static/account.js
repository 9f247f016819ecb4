// The account: moments in one's own zone, and a press that copies a secret.
import { element } from "./elements.js";
import { localise } from "./moments.js";
import { say } from "./words.js";

localise(document);
for (const secret of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) continue;
  const button = element("button", { type: "button", onclick: async () => {
    await navigator.clipboard.writeText(secret.textContent);
    button.textContent = say("copied");
  } }, say("copy"));
  secret.after(button);
}
