const by = (id) => document.getElementById(id);
let source, missed;

const parts = (selector = "[data-live]") => [...document.querySelectorAll(selector)];
const refresh = (selector) => parts(selector).forEach((part) => htmx.trigger(part, "changed"));
const state = (on) => {
	const mark = by("live"), text = by("live-text"), now = on ? "on" : "off";
	if (!mark || mark.dataset.state === now) return;
	mark.dataset.state = now;
	if (text) text.textContent = on ? "live" : "not live since " + new Date().toTimeString().slice(0, 5);
};
const stale = (is) => {
	by("stale").hidden = !is;
	if (is) state();
};
const close = () => {
	source?.close();
	source = null;
	state();
};
const open = () => {
	if (source || document.hidden || !parts().length) return;
	source = new EventSource("/live?keys=" + encodeURIComponent(parts().map((part) => part.dataset.live).join(" ")));
	source.onopen = () => {
		state(true);
		stale();
		if (missed) refresh();
		missed = true;
	};
	source.onmessage = ({ data }) => refresh(JSON.parse(data).map((key) => `[data-live~=${CSS.escape(key)}]`).join());
	source.onerror = () => {
		if (source.readyState < 2) return state();
		close();
		stale(true);
		setTimeout(open, 3e4);
	};
};

setInterval(() => {
	for (const at of document.querySelectorAll(".age")) {
		const min = ~~Math.max(0, (Date.now() - new Date(at.dateTime)) / 6e4);
		at.textContent = min < 60 ? min + " min" : min < 2880 ? ~~(min / 60) + " h" : ~~(min / 1440) + " days";
	}
}, 2e4);

const events = {
	visibilitychange: () => (document.hidden ? close() : open()),
	"htmx:responseError": ({ detail }) => detail.xhr.status === 401 && stale(true),
	"htmx:afterSwap": () => stale(),
	pagehide: close,
	pageshow: open,
};
for (const name in events) addEventListener(name, events[name]);
