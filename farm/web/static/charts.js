const height = 220, font = "11px system-ui";
let charts = [];
const probe = document.head.appendChild(new Image());
const colour = (name) => {
	probe.style.color = `var(--${name})`;
	return getComputedStyle(probe).color;
};
const zoom = ({ cursor }, min, max) => uPlot.sync(cursor.sync.key).plots.forEach((chart) => chart.setScale("x", { min, max }));
const clock = (at, step) => new Date(at).toISOString().slice(0, step < 864e5 ? 16 : 10).replace("T", "\n");

const draw = (figure) => {
	const { plot, values, unit } = figure.dataset, columns = ["at", ...values.split(" ")];
	const rows = [...document.getElementById(plot).rows].filter((row) => columns[1] in row.dataset)
		.sort((a, b) => a.dataset.at - b.dataset.at);
	if (rows.length < 2) return;
	const data = columns.map((name) => rows.map(({ dataset }) => (name in dataset ? +dataset[name] : null)));
	const [at, , lows, highs] = data;

	const marks = (u) => {
		const { ctx, bbox: { left, top, width, height } } = u, ratio = devicePixelRatio, right = left + width;
		const x = (value) => u.valToPos(value, "x", 1), y = (value) => u.valToPos(value, "y", 1);
		const line = (name, x, y, x2, y2) => {
			ctx.strokeStyle = colour(name);
			ctx.stroke(new Path2D(`M${x},${y}L${x2},${y2}`));
		};
		const named = [], ends = [0, 0, 0];
		const name = (x, words, colour) => words && x >= left && x <= right && named.push([x, words, colour]);
		ctx.save();
		ctx.clip(new Path2D(`M${left},0h${width}v${top + height}h${-width}z`));
		ctx.lineWidth = ratio;
		for (const { dataset } of figure.closest("section").querySelectorAll("[data-since]")) {
			const from = x(dataset.before);
			ctx.fillStyle = colour("changed");
			ctx.fillRect(from, top, x(dataset.since) - from + 3, height);
			name(Math.max(from, left), dataset.words, "slower");
		}
		ctx.setLineDash([3, 3]);
		rows.forEach(({ dataset: { versions } }, index) => {
			const from = x(at[index]);
			versions && line("quiet", from, top, from, top + height);
			name(from, versions, "quiet");
		});
		ctx.setLineDash([]);
		if (unit === "x") line("ink", left, y(1), right, y(1));
		lows?.forEach((low, index) => low && line("same", x(at[index]), y(low), x(at[index]), y(highs[index])));
		ctx.font = ratio * 11 + font.slice(2);
		ctx.textAlign = "left";
		for (const [from, words, name] of named.sort((a, b) => a[0] - b[0])) {
			const size = ctx.measureText(words).width, begin = Math.min(from, right - size);
			const lane = ends.findIndex((end) => end < begin);
			ctx.fillStyle = colour(name);
			if (lane >= 0) ctx.fillText(words, begin, top - (lane * 13 + 4) * ratio);
			ends[lane] = begin + size + 8 * ratio;
		}
		ctx.restore();
	};
	const axis = { stroke: () => colour("quiet"), font, grid: { width: 1, stroke: () => colour("line") } };

	const box = figure.querySelector(".zoom");
	figure.className = "plotted";
	const chart = new uPlot({
		width: figure.clientWidth,
		height,
		ms: 1,
		padding: [45, 16, 0, 0],
		tzDate: (at) => uPlot.tzDate(new Date(at), "UTC"),
		cursor: { y: 0, sync: { key: plot } },
		axes: [
			{ ...axis, space: 84, values: (u, splits, index, space, step) => splits.map((at) => clock(at, step)) },
			{ ...axis, size: 70, values: (u, splits) => splits.map((value) => +value.toPrecision(4) + unit) },
		],
		series: columns.map((label, index) => ({
			label,
			class: label,
			value: (u, value, series, row) => rows[row]?.querySelector(`[data-of=${label}]`)?.textContent || "",
			...(index == 1 && { stroke: () => colour("accent"), width: 1.25, points: { show: 1, size: 6 } }),
		})),
		hooks: { drawAxes: [marks] },
	}, data, box);
	charts.push(chart);
	box.onkeydown = (event) => {
		const { min, max } = chart.scales.x, first = at[0], size = max - min;
		const [factor, shift] =
			{ "+": [.5, .25], "-": [2, -.5], ArrowLeft: [1, -.25], ArrowRight: [1, .25], Escape: [1e9, 0] }[event.key] || [];
		if (!factor) return;
		event.preventDefault();
		const last = at.at(-1), span = Math.min(factor * size, last - first);
		const begin = Math.max(first, Math.min(min + shift * size, last - span));
		zoom(chart, begin, begin + span);
	};
};

const drawAll = () => {
	document.querySelectorAll("[data-plot]:not(.plotted)").forEach(draw);
	charts = charts.filter((chart) => {
		const { min, max } = chart.scales.x, [at] = chart.data;
		if (chart.root.isConnected) return 1;
		chart.destroy();
		if (min > at[0] || max < at.at(-1)) zoom(chart, min, max);
	});
};
addEventListener("htmx:afterSwap", drawAll);
addEventListener("resize", () => charts.forEach((chart) => chart.setSize({ width: chart.root.parentNode.clientWidth, height })));
drawAll();
