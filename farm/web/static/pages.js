// Live changes: the farm says which rows changed, and only the parts that show them are fetched again.
"use strict";
(() => {
	const RETRY_MS = 10000;
	let source = null, missed = false;

	const parts = () => [...document.querySelectorAll("[data-live]")];
	const keysOf = (part) => part.dataset.live.split(" ");
	const waiting = new Set();
	const refreshPart = (part) => {
		const seconds = Number(part.dataset.every || 0);
		if (!seconds) return htmx.trigger(part, "changed");
		// What changes with each job of the farm is fetched once for all that changed meanwhile.
		if (waiting.has(part.id)) return;
		waiting.add(part.id);
		setTimeout(() => {
			waiting.delete(part.id);
			htmx.trigger(part, "changed");
		}, seconds * 1000);
	};
	const refresh = (keys) => {
		for (const part of parts())
			if (!keys || keysOf(part).some((key) => keys.includes(key))) refreshPart(part);
	};
	const state = (words) => {
		const mark = document.getElementById("live");
		if (!mark) return;
		mark.dataset.state = words;
		mark.title = words === "on" ? "live" : "not live: reload to see changes";
		const text = document.getElementById("live-text");
		if (text && text.dataset.state !== words) {
			const since = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
			text.textContent = words === "on" ? "live" : `not live since ${since}`;
			text.dataset.state = words;
		}
	};
	const stale = (is) => {
		document.getElementById("stale").hidden = !is;
		if (is) state("off");
	};
	// A connection that is lost is opened again by the browser, and one that was refused is not: by a proxy
	// while the farm starts, for a moment; after the end of a session, for good.
	const refused = () => {
		source = null;
		const later = () => setTimeout(open, RETRY_MS);
		fetch("/live", { method: "HEAD" }).then((answer) => (answer.status === 401 ? stale(true) : later()), later);
	};
	const open = () => {
		if (source || document.hidden || parts().length === 0) return;
		const keys = [...new Set(parts().flatMap(keysOf))];
		source = new EventSource("/live?keys=" + encodeURIComponent(keys.join(" ")));
		source.onopen = () => {
			state("on");
			stale(false);
			if (missed) refresh(null);
			missed = true;
		};
		source.onmessage = (message) => refresh(JSON.parse(message.data));
		source.onerror = () => {
			state("off");
			if (source.readyState === EventSource.CLOSED) refused();
		};
	};
	const close = () => {
		if (source) source.close();
		source = null;
		state("off");
	};
	document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
	document.addEventListener("htmx:responseError", (event) => event.detail.xhr.status === 401 && stale(true));
	document.addEventListener("htmx:afterSwap", () => stale(false));
	addEventListener("pagehide", close);
	addEventListener("pageshow", open);
})();
