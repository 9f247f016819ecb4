// One stream of events for a page. A browser has few connections to one place, so a page nobody sees has none.
export function live(address, hear) {
  let source = null;

  function begin() {
    if (source || document.hidden) return;
    source = new EventSource(address());
    for (const [kind, told] of Object.entries(hear)) {
      source.addEventListener(kind, (event) => { if (event.data !== undefined) told(JSON.parse(event.data)); });
    }
    // The service ends a stream when it stops, or after an hour; the page asks for what it shows by then.
    source.onerror = () => {
      const again = source.readyState === EventSource.CLOSED ? 5000 : 2000;
      end();
      setTimeout(begin, again);
    };
  }

  function end() {
    if (source) source.close();
    source = null;
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? end() : begin()));
  addEventListener("pagehide", end);
  addEventListener("pageshow", begin);
  begin();
  return { again() { end(); begin(); }, end };
}
