// Moments in the reader's own zone and manner; without scripts they stand there in UTC.
const shown = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" });

export const worded = (moment) => shown.format(moment);

export function localise(root) {
  for (const time of root.querySelectorAll("time[data-moment]")) time.textContent = worded(new Date(time.dateTime));
}
