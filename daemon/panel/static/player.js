// The player: a waveform to jump in, a speed, and keys for hands that stay on the keyboard.
import { element } from "./elements.js";
import { say } from "./words.js";

const SPEEDS = [0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3];
const STEP = 5; // seconds
const AGAIN = 4000; // milliseconds until the outline is asked for again
const MOST_ASKED = 450; // half an hour: a page that is kept open does not ask for ever
const TYPING = "input, textarea, select, [contenteditable]";
const SPEED_KEPT = "rubezh speed";

export function begin(content, record, text) {
  const place = content.querySelector("[data-player]");
  if (!place) return null;
  const audio = place.querySelector("audio");
  let whole = Number(content.dataset.seconds) || 0;
  let peaks = [];
  let started = false;
  let wanted = 0; // where to begin, before anything was loaded

  const play = element("button", { type: "button", class: "play main", onclick: toggle });
  const back = element("button", { type: "button", class: "step", "aria-label": say("back"), title: say("back"), onclick: () => go(time() - STEP) }, "−5");
  const forward = element("button", { type: "button", class: "step", "aria-label": say("forward"), title: say("forward"), onclick: () => go(time() + STEP) }, "+5");
  const clock = element("span", { class: "clock" });
  const speed = element("select", { "aria-label": say("speed"), onchange: () => paced(Number(speed.value)) },
    ...SPEEDS.map((pace) => element("option", { value: pace }, `${pace}×`)));
  const canvas = element("canvas", { "aria-hidden": "true" });
  const range = element("input", { type: "range", min: 0, max: whole || 1, step: "any", value: 0, "aria-label": say("seek"), class: "seek" });
  const keys = element("details", { class: "keys" }, element("summary", {}, say("keys")), element("p", {}, say("keys.what")));
  audio.hidden = true;
  place.append(
    element("div", { class: "wave" }, canvas, range),
    element("div", { class: "ways" }, play, back, forward, clock, speed, keys),
  );

  const time = () => (started ? audio.currentTime : wanted);

  function toggle() {
    if (audio.paused) start();
    else audio.pause();
  }

  function start() {
    started = true;
    audio.playbackRate = Number(speed.value);
    audio.play().catch(() => {}); // the browser tells of it at the element; what is heard is seen at the button
  }

  // Jumps to a second and plays on from there.
  function go(second) {
    stand(second);
    if (audio.paused) start();
  }

  function stand(second) {
    wanted = Math.min(Math.max(second, 0), whole || second);
    if (audio.readyState > 0) audio.currentTime = wanted;
    else {
      audio.preload = "metadata";
      audio.addEventListener("loadedmetadata", () => { audio.currentTime = wanted; }, { once: true });
      if (audio.networkState !== HTMLMediaElement.NETWORK_LOADING) audio.load();
    }
    draw(wanted);
    text.go(wanted);
  }

  function paced(pace) {
    speed.value = String(pace);
    audio.playbackRate = pace;
    try { localStorage.setItem(SPEED_KEPT, String(pace)); } catch { /* a browser that keeps nothing plays at 1 next time */ }
  }

  function draw(second = time()) {
    const told = `${written(second)} / ${written(whole)}`;
    if (clock.textContent !== told) clock.textContent = told;
    range.value = second;
    range.setAttribute("aria-valuetext", told);
    const { width, height } = canvas.getBoundingClientRect();
    const dense = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * dense)) {
      canvas.width = Math.round(width * dense);
      canvas.height = Math.round(height * dense);
    }
    const pen = canvas.getContext("2d");
    const style = getComputedStyle(canvas);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    const middle = canvas.height / 2;
    const pairs = peaks.length / 2;
    const top = Math.max(16, ...bounds) / middle;
    const heard = whole ? (second / whole) * canvas.width : 0;
    const step = Math.max(2, Math.round(3 * dense));
    for (let x = 0; x < canvas.width; x += step) {
      let reach = 0;
      const from = Math.floor((x / canvas.width) * pairs);
      const until = Math.max(from + 1, Math.floor(((x + step) / canvas.width) * pairs));
      for (let at = from; at < until && at < pairs; at++) reach = Math.max(reach, -peaks[2 * at], peaks[2 * at + 1]);
      const tall = Math.max(dense, (reach / top) * 0.92);
      pen.fillStyle = x < heard ? style.color : style.caretColor;
      pen.fillRect(x, middle - tall, step - dense, 2 * tall);
    }
    mark(pen, style.outlineColor, dense);
  }

  // Where somebody speaks and there is no text.
  function mark(pen, colour, dense) {
    if (!whole) return;
    pen.fillStyle = colour;
    for (const { start, end, element: line } of text.gaps) {
      if (!line.matches(".gap")) continue;
      const from = (start / whole) * canvas.width;
      pen.fillRect(from, canvas.height - 3 * dense, Math.max(3 * dense, ((end - start) / whole) * canvas.width), 3 * dense);
    }
  }

  let bounds = [];
  async function outline(left = MOST_ASKED) {
    const answer = await fetch(`/v1/records/${record}/peaks`, { credentials: "same-origin" }).catch(() => null);
    if (answer?.ok) {
      const told = await answer.json();
      peaks = told.peaks;
      bounds = peaks.length ? [peaks.reduce((most, each) => Math.max(most, Math.abs(each)), 1)] : [];
      if (told.seconds) whole = told.seconds;
      range.max = whole || 1;
      draw();
      // By now there is a copy of a tenth of the size; who has begun to listen goes on with the one there is.
      if (!started && !audio.src.includes("copy=")) audio.src = `/v1/records/${record}/audio?copy=listening`;
    } else if (left && answer?.status === 409 && (await answer.json()).code === "not_ready") {
      setTimeout(() => outline(left - 1), AGAIN);
    }
  }

  let frame = 0;
  function follow() {
    draw();
    text.show(time());
    frame = audio.paused ? 0 : requestAnimationFrame(follow);
  }
  const told = () => {
    play.textContent = say(audio.paused ? "play" : "pause");
    if (!audio.paused && !frame) follow();
  };
  for (const event of ["play", "pause", "ended"]) audio.addEventListener(event, told);
  audio.addEventListener("seeked", () => { draw(); text.show(time()); });
  audio.addEventListener("durationchange", () => {
    if (!whole && Number.isFinite(audio.duration)) range.max = whole = audio.duration;
  });
  range.addEventListener("input", () => stand(Number(range.value)));
  new ResizeObserver(() => draw()).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());

  let kept = "1";
  try { kept = localStorage.getItem(SPEED_KEPT) || "1"; } catch { /* as above */ }
  speed.value = SPEEDS.includes(Number(kept)) ? kept : "1";
  told();
  outline();

  addEventListener("keydown", (event) => {
    const typing = event.target.closest(event.key === " " ? `${TYPING}, button, a, summary` : TYPING);
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const pace = SPEEDS.indexOf(Number(speed.value));
    const deeds = {
      " ": toggle,
      k: toggle,
      ArrowLeft: () => go(time() - STEP),
      ArrowRight: () => go(time() + STEP),
      ",": () => paced(SPEEDS[Math.max(pace - 1, 0)]),
      ".": () => paced(SPEEDS[Math.min(pace + 1, SPEEDS.length - 1)]),
      ArrowUp: () => beside(-1),
      ArrowDown: () => beside(1),
    };
    const deed = deeds[event.key];
    // Up and down scroll, as everywhere, until a line is the one that is heard.
    if (!deed || ((event.key === "ArrowUp" || event.key === "ArrowDown") && !text.current)) return;
    event.preventDefault();
    deed();
  });

  function beside(step) {
    const line = text.beside(step);
    if (line) stand(line.start);
  }

  return {
    go,
    stand,
    get time() { return time(); },
    get playing() { return !audio.paused; },
    get started() { return started; },
  };
}

function written(seconds) {
  const all = Math.floor(Math.max(seconds, 0));
  const minutes = Math.floor(all / 60) % 60;
  const rest = String(all % 60).padStart(2, "0");
  return all >= 3600 ? `${Math.floor(all / 3600)}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}
