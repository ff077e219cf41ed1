"use strict";
// Draws the detailed timelines. All else on the page is there without it.
(() => {
	const data = JSON.parse(document.getElementById("timelines").textContent);
	const AXIS = 24, JOURNAL = 30, LANE = 20, GAP = 4;
	const PHASES = ["locking", "flushing", "logging"].map((name) => data.classes.indexOf(name));
	const RUNNING = data.classes.indexOf("running");
	const ratio = () => window.devicePixelRatio || 1;
	const dark = window.matchMedia("(prefers-color-scheme: dark)");

	const tip = document.createElement("div");
	tip.className = "tip";
	tip.hidden = true;
	document.body.append(tip);

	function time(us) {
		const sign = us < 0 ? "-" : "";
		us = Math.abs(us);
		const [value, unit] = us < 1e3 ? [us, "us"] : us < 1e6 ? [us / 1e3, "ms"] : [us / 1e6, "s"];
		const digits = value >= 100 || Number.isInteger(value) ? 0 : value >= 10 ? 1 : 2;
		return `${sign}${value.toFixed(digits)} ${unit}`;
	}

	// Round steps for an axis of this length.
	function step(length, most) {
		let step = 1;
		for (;;) {
			for (const factor of [1, 2, 5]) {
				if (length / (step * factor) <= most) return step * factor;
			}
			step *= 10;
		}
	}

	// The first index whose value is above x.
	function above(list, x, value) {
		let low = 0, high = list.length;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (value(list[middle]) > x) high = middle;
			else low = middle + 1;
		}
		return low;
	}

	class Timeline {
		constructor(root, periods) {
			this.root = root;
			this.periods = periods;
			this.canvas = root.querySelector("canvas");
			this.context = this.canvas.getContext("2d");
			this.select = root.querySelector("select");
			periods.forEach((period, index) => {
				const option = document.createElement("option");
				option.value = index;
				option.textContent = `${period.title} (${time(period.length_us)})`;
				this.select.append(option);
			});
			root.querySelector("label").hidden = periods.length < 2;
			this.select.addEventListener("change", () => this.show(Number(this.select.value)));
			root.querySelector(".buttons").addEventListener("click", (event) => this.act(event.target.dataset.do));
			this.canvas.addEventListener("keydown", (event) => this.key(event));
			this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
			this.canvas.addEventListener("dblclick", (event) => this.zoom(0.5, this.at(event)));
			this.canvas.addEventListener("pointerdown", (event) => this.grab(event));
			this.canvas.addEventListener("pointermove", (event) => this.move(event));
			this.canvas.addEventListener("pointerup", () => (this.from = null));
			this.canvas.addEventListener("pointerleave", () => (tip.hidden = true));
			new ResizeObserver(() => this.draw()).observe(root);
			dark.addEventListener("change", () => this.draw());
			root.hidden = false;
			this.show(0);
		}

		show(index) {
			this.period = this.periods[index];
			const { length_us: length, commits, lanes } = this.period;
			// Many calls at once tell nothing: begin with some commits in the middle.
			const middle = commits.length ? commits[commits.length >> 1][0] : 0;
			const part = commits.length > 40 ? (length / commits.length) * 24 : length;
			this.left = part < length ? Math.max(0, Math.min(length - part, middle - part / 2)) : 0;
			this.right = this.left + part;
			const used = new Set();
			for (const lane of lanes) {
				for (const call of lane.calls) {
					for (let i = 4; i < call.length; i += 2) used.add(call[i]);
				}
			}
			const legend = this.root.querySelector(".legend");
			legend.replaceChildren();
			[...used].sort((a, b) => a - b).forEach((part) => {
				const entry = document.createElement("span");
				const key = document.createElement("b");
				key.className = `key p-${data.classes[part]}`;
				entry.append(key, data.parts[part]);
				legend.append(entry);
			});
			const left_out = this.period.left_out;
			this.root.querySelector(".note").textContent =
				`${lanes.length} threads` + (left_out ? `; ${left_out} with less time in calls are left out.` : ".");
			this.draw();
		}

		// Where the lanes begin, and how many pixels there are for time.
		get labels() {
			return Math.min(150, this.width * 0.28);
		}

		x(us) {
			return this.labels + ((us - this.left) / (this.right - this.left)) * (this.width - this.labels);
		}

		us(x) {
			return this.left + ((x - this.labels) / (this.width - this.labels)) * (this.right - this.left);
		}

		at(event) {
			return this.us(event.clientX - this.canvas.getBoundingClientRect().left);
		}

		set(left, right) {
			const length = this.period.length_us;
			const span = Math.max(20, Math.min(right - left, length * 1.02));
			this.left = Math.max(-length * 0.01, Math.min(left, length * 1.01 - span));
			this.right = this.left + span;
			this.draw();
		}

		zoom(factor, around = (this.left + this.right) / 2) {
			this.set(around - (around - this.left) * factor, around + (this.right - around) * factor);
		}

		pan(share) {
			const shift = (this.right - this.left) * share;
			this.set(this.left + shift, this.right + shift);
		}

		act(what) {
			({
				in: () => this.zoom(0.5),
				out: () => this.zoom(2),
				left: () => this.pan(-0.5),
				right: () => this.pan(0.5),
				all: () => this.set(0, this.period.length_us),
			})[what]?.();
		}

		key(event) {
			const what = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", Home: "all" }[event.key];
			if (what) {
				event.preventDefault();
				this.act(what);
			}
		}

		wheel(event) {
			if (event.ctrlKey || event.metaKey) {
				event.preventDefault();
				this.zoom(Math.exp(event.deltaY * 0.003), this.at(event));
			} else if (event.deltaX) {
				event.preventDefault();
				this.pan(event.deltaX / this.width);
			}
		}

		grab(event) {
			this.canvas.setPointerCapture(event.pointerId);
			this.from = { x: event.clientX, left: this.left, right: this.right };
		}

		move(event) {
			if (this.from && event.buttons) {
				const us = ((this.from.x - event.clientX) / (this.width - this.labels)) * (this.from.right - this.from.left);
				tip.hidden = true;
				this.set(this.from.left + us, this.from.right + us);
				return;
			}
			const box = this.canvas.getBoundingClientRect();
			const text = this.describe(this.at(event), event.clientY - box.top);
			tip.hidden = !text;
			if (text) {
				tip.textContent = text;
				tip.style.left = `${Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8)}px`;
				tip.style.top = `${Math.min(event.clientY + 14, window.innerHeight - tip.offsetHeight - 8)}px`;
			}
		}

		// What is under the pointer, in words.
		describe(us, y) {
			const { commits, lanes } = this.period;
			if (y >= AXIS && y < AXIS + JOURNAL) {
				const commit = commits.find((c) => us >= c[0] && us <= c[0] + c[1] + c[2] + c[3]);
				if (!commit) return "";
				const [start, locking, flushing, logging, id, served, fast] = commit;
				return [
					`${fast ? "fast commit" : "commit"} ${id}: ${time(locking + flushing + logging)}, from ${time(this.since(start))}`,
					`${served} fsyncs served`,
					...(fast ? [] : [`locking ${time(locking)}, flushing ${time(flushing)}, logging ${time(logging)}`]),
				].join("\n");
			}
			const lane = lanes[Math.floor((y - AXIS - JOURNAL - GAP) / LANE)];
			if (!lane) return "";
			const last = above(lane.calls, us, (call) => call[0]);
			const call = lane.calls.slice(Math.max(0, last - 8), last).reverse().find((call) => us <= call[0] + call[1]);
			if (!call) return "";
			const [begin, length, kind, own] = call;
			const sums = new Map();
			for (let i = 4; i < call.length; i += 2) sums.set(call[i], (sums.get(call[i]) || 0) + call[i + 1]);
			const parts = [...sums].sort((a, b) => b[1] - a[1]).map(([part, us]) => `${data.parts[part]} ${time(us)}`);
			return [
				`${kind} by ${this.name(lane)}: ${time(length)}, from ${time(this.since(begin))}`,
				...(own ? [`own commit: ${own}`] : []),
				...parts,
			].join("\n");
		}

		since(us) {
			return this.period.from_us + us;
		}

		name(lane) {
			return lane.name ? `${lane.name} ${lane.thread}` : `thread ${lane.thread}`;
		}

		draw() {
			this.width = this.root.querySelector(".view").clientWidth;
			if (!this.width) return;
			const { commits, lanes } = this.period;
			const height = AXIS + JOURNAL + GAP + lanes.length * LANE + GAP;
			this.canvas.width = Math.round(this.width * ratio());
			this.canvas.height = Math.round(height * ratio());
			this.canvas.style.height = `${height}px`;
			const style = getComputedStyle(document.documentElement);
			const colour = (name) => style.getPropertyValue(name).trim();
			this.colours = data.classes.map((name) => colour(`--p-${name}`));
			const context = this.context;
			context.setTransform(ratio(), 0, 0, ratio(), 0, 0);
			context.fillStyle = colour("--card");
			context.fillRect(0, 0, this.width, height);
			context.font = `11.5px ${getComputedStyle(document.body).fontFamily}`;
			context.textBaseline = "middle";
			const [text, quiet, line, soft] = ["--text", "--quiet", "--line", "--soft"].map(colour);

			lanes.forEach((_, index) => {
				if (index % 2 === 0) {
					context.fillStyle = soft;
					context.globalAlpha = 0.5;
					context.fillRect(0, AXIS + JOURNAL + GAP + index * LANE, this.width, LANE);
					context.globalAlpha = 1;
				}
			});
			context.save();
			context.beginPath();
			context.rect(this.labels, 0, this.width - this.labels, height);
			context.clip();
			this.axis(context, height, line, quiet);
			this.commits(context, commits, text, line, height);
			lanes.forEach((lane, index) => this.lane(context, lane, AXIS + JOURNAL + GAP + index * LANE));
			context.restore();

			context.textAlign = "left";
			context.fillStyle = text;
			context.fillText("journal", 8, AXIS + JOURNAL / 2, this.labels - 12);
			context.fillStyle = quiet;
			lanes.forEach((lane, index) => {
				context.fillText(this.name(lane), 8, AXIS + JOURNAL + GAP + (index + 0.5) * LANE, this.labels - 12);
			});
		}

		axis(context, height, line, quiet) {
			const every = step(this.right - this.left, Math.max(2, (this.width - this.labels) / 110));
			const offset = this.period.from_us;
			const first = Math.ceil((this.left + offset) / every) * every;
			context.textAlign = "center";
			for (let at = first; at <= this.right + offset; at += every) {
				const x = Math.round(this.x(at - offset)) + 0.5;
				context.fillStyle = line;
				context.fillRect(x, AXIS, 1, height - AXIS);
				context.fillStyle = quiet;
				// Enough digits to tell neighbours apart.
				const digits = Math.max(0, 6 - Math.floor(Math.log10(every)));
				context.fillText(`${(at / 1e6).toFixed(Math.min(6, digits))} s`, x, AXIS / 2);
			}
		}

		commits(context, commits, text, line, height) {
			context.textAlign = "center";
			for (const [start, locking, flushing, logging, id, , fast] of commits) {
				const end = start + locking + flushing + logging;
				if (end < this.left || start > this.right) continue;
				let from = start;
				[locking, flushing, logging].forEach((length, phase) => {
					const x = this.x(from);
					const width = Math.max(length ? 0.7 : 0, this.x(from + length) - x);
					context.fillStyle = this.colours[fast ? data.classes.indexOf("fast_commit") : PHASES[phase]];
					context.fillRect(x, AXIS + 4, width, JOURNAL - 8);
					from += length;
				});
				const x = this.x(start), width = this.x(end) - x;
				context.fillStyle = line;
				if (width > 3) context.fillRect(this.x(end), AXIS, 1, height - AXIS);
				if (width > 30) {
					context.fillStyle = dark.matches ? "#10141a" : "#ffffff";
					context.fillText(String(id), x + width / 2, AXIS + JOURNAL / 2, width - 4);
				}
			}
		}

		lane(context, lane, top) {
			const calls = lane.calls;
			// Calls of a thread hardly overlap: one may lie inside the one before.
			const first = Math.max(0, above(calls, this.left, (call) => call[0]) - 2);
			for (let index = first; index < calls.length && calls[index][0] <= this.right; index++) {
				const call = calls[index];
				const x = this.x(call[0]), width = this.x(call[0] + call[1]) - x;
				if (x + width < this.labels) continue;
				context.fillStyle = this.colours[RUNNING];
				context.fillRect(x, top + 3, Math.max(0.7, width), LANE - 6);
				if (width < 1) continue;
				let from = call[0];
				for (let i = 4; i < call.length; i += 2) {
					const left = this.x(from);
					from += call[i + 1];
					context.fillStyle = this.colours[call[i]];
					context.fillRect(left, top + 3, Math.max(0.4, this.x(from) - left), LANE - 6);
				}
				const from_x = Math.max(x, this.labels);
				if (x + width - from_x > 60) {
					context.textAlign = "left";
					context.fillStyle = dark.matches ? "#10141a" : "#ffffff";
					context.fillText(call[2], from_x + 5, top + LANE / 2, x + width - from_x - 8);
				}
			}
		}
	}

	document.querySelectorAll(".timeline").forEach((root) => {
		const periods = data.file_systems[Number(root.dataset.timeline)] || [];
		if (periods.length) new Timeline(root, periods);
	});
})();
