// Live changes: the farm says which rows changed, and only the parts that show them are fetched again.
"use strict";
(() => {
  const mark = () => document.getElementById("live");
  let source = null;
  let missed = false;

  const parts = () => [...document.querySelectorAll("[data-live]")];
  const refresh = (keys) => {
    for (const part of parts()) {
      const own = part.dataset.live.split(" ");
      if (keys === null || own.some((key) => keys.includes(key))) htmx.trigger(part, "changed");
    }
  };
  const state = (words) => {
    const element = mark();
    if (element) {
      element.dataset.state = words;
      element.title = words === "on" ? "live" : "not live: reload to see changes";
    }
  };
  const open = () => {
    if (source || document.hidden || parts().length === 0) return;
    const keys = [...new Set(parts().flatMap((part) => part.dataset.live.split(" ")))];
    source = new EventSource("/live?keys=" + encodeURIComponent(keys.join(" ")));
    source.onopen = () => {
      state("on");
      if (missed) refresh(null);
      missed = true;
    };
    source.onmessage = (message) => refresh(JSON.parse(message.data));
    source.onerror = () => state("off");
  };
  const close = () => {
    if (source) source.close();
    source = null;
    state("off");
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", open);
})();
