let source, seen, old, held;

const parts = (selector = "[data-live]") => [...document.querySelectorAll(selector)];
const stops = ({ target }) => parts(`#${target.id} :is(a,summary,[tabindex])`);
const refresh = (selector) => parts(selector).forEach((part) => htmx.trigger(part, "changed"));
const state = (on) => {
	const [mark, text] = parts("#live,#live-text"), now = on ? "on" : "off";
	if (!mark || mark.dataset.state == now) return;
	mark.dataset.state = now;
	if (text) text.textContent = on ? "live" : "not live since " + new Date().toTimeString().slice(0, 5);
};
const stale = (is) => {
	parts("#stale")[0].hidden = !is;
	is && state();
};
const close = () => state((source = source?.close()));
const open = () => {
	if (source || document.hidden || !parts().length) return;
	source = new EventSource("/live?keys=" + parts().map((part) => part.dataset.live).join(" "));
	source.onopen = () => {
		state(1);
		stale();
		if (seen) refresh();
		seen = 1;
	};
	source.onmessage = ({ data }) => refresh(JSON.parse(data).map((key) => `[data-live~=${CSS.escape(key)}]`).join());
	source.onerror = () => {
		if (source.readyState < 2) return state();
		close();
		stale(1);
		setTimeout(open, 3e4);
	};
};

setInterval(() => {
	for (const at of parts(".age")) {
		const min = ~~Math.max(0, (Date.now() - new Date(at.dateTime)) / 6e4);
		at.textContent = min < 60 ? min + " min" : min < 2880 ? ~~(min / 60) + " h" : ~~(min / 1440) + " days";
	}
}, 2e4);

const events = {
	visibilitychange: () => (document.hidden ? close() : open()),
	"htmx:responseError": ({ detail }) => detail.xhr.status == 401 && stale(1),
	"htmx:beforeSwap": (event) => {
		held = document.activeElement;
		old = stops(event).map((stop) => [stop == held, stop.parentNode.open, stop.scrollLeft]);
	},
	"htmx:afterSwap": (event) => {
		let is, at;
		stale();
		for (const stop of stops(event)) {
			[is, stop.parentNode.open, stop.scrollLeft] = old.shift() ?? [];
			if ((at ||= is) && stop.outerHTML == held.outerHTML) at = stop.focus({ preventScroll: true });
		}
	},
	pagehide: close,
	pageshow: open,
};
for (const name in events) addEventListener(name, events[name]);
