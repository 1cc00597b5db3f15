// Live changes: the farm says which rows changed, and only the parts that show them are fetched again.
"use strict";
(() => {
	let source = null, missed = false;

	const parts = () => [...document.querySelectorAll("[data-live]")];
	const keysOf = (part) => part.dataset.live.split(" ");
	const refresh = (keys) => {
		for (const part of parts())
			if (!keys || keysOf(part).some((key) => keys.includes(key))) htmx.trigger(part, "changed");
	};
	const state = (words) => {
		const mark = document.getElementById("live");
		if (!mark) return;
		mark.dataset.state = words;
		mark.title = words === "on" ? "live" : "not live: reload to see changes";
	};
	const open = () => {
		if (source || document.hidden || parts().length === 0) return;
		const keys = [...new Set(parts().flatMap(keysOf))];
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
	addEventListener("pagehide", close);
	addEventListener("pageshow", open);
})();
