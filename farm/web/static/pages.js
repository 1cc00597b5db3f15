let source, missed, old, held, lefts;

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
const close = () => {
	source = source?.close();
	state();
};
const open = () => {
	if (source || document.hidden || !parts().length) return;
	source = new EventSource("/live?keys=" + encodeURIComponent(parts().map((part) => part.dataset.live).join(" ")));
	source.onopen = () => {
		state(1);
		stale();
		if (missed) refresh();
		missed = 1;
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
		old = stops(event);
		held = old.indexOf(document.activeElement);
		lefts = old.map((stop) => stop.scrollLeft);
	},
	"htmx:afterSwap": (event) => {
		stale();
		stops(event).forEach((stop, at) => {
			stop.parentNode.open ||= old[at]?.parentNode.open;
			stop.scrollLeft = lefts[at];
		});
		stops(event)[held]?.focus({ preventScroll: true });
	},
	pagehide: close,
	pageshow: open,
};
for (const name in events) addEventListener(name, events[name]);
