import uPlot from './vendor/uplot/uPlot.js';
import { grown, h, put } from './dom.js';

// Curves over a size or a number of nodes, with both axes as the question needs them. A series is {name, xs, ys, points,
// dash, low, high}: points alone are measured values, a line is predicted, low and high make a band.

const colours = 8;

function css(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

export class Curve {
  constructor({ label, x, y, log = true, height = 320 }) {
    this.x = x;
    this.y = y;
    this.log = log;
    this.height = height;
    this.label = label;
    this.root = h('div', { class: 'curve', role: 'img', 'aria-label': label });
    this.resize = new ResizeObserver(() => this.fit());
    this.resize.observe(this.root);
    this.themed = () => this.redraw();
    window.addEventListener('themed', this.themed);
  }

  end() {
    this.resize.disconnect();
    window.removeEventListener('themed', this.themed);
    this.plot?.destroy();
  }

  fit() {
    const w = this.root.clientWidth;
    if (this.plot && w && Math.abs(w - this.plot.width) > 2) this.plot.setSize({ width: w, height: this.height * grown() });
  }

  // draw shows series; what is said about them is the picture's name for those who do not see it.
  draw(series, said) {
    this.series = series;
    if (said) this.root.setAttribute('aria-label', `${this.label}. ${said}`);
    this.redraw();
  }

  redraw() {
    if (!this.series) return;
    const width = this.root.clientWidth || 600;
    const xs = [...new Set(this.series.flatMap((x) => x.xs))].sort((a, b) => a - b);
    const data = [xs];
    const lines = [{ label: this.x.name, value: (_, v) => (v === null || v === undefined ? '' : this.x.show(v)) }];
    const bands = [];
    this.series.forEach((one, i) => {
      const colour = css(`--c${(one.colour ?? i) % colours + 1}`);
      const at = new Map(one.xs.map((x, k) => [x, k]));
      const column = (list) => xs.map((x) => (at.has(x) ? list[at.get(x)] : null));
      data.push(column(one.ys));
      lines.push({
        label: one.name, stroke: colour, width: one.points ? 0 : (one.width || 2) * grown(), dash: one.dash, spanGaps: true,
        points: { show: true, size: (one.points ? 9 : 5) * grown(), fill: one.points ? colour : css('--card'), stroke: colour, space: 0 },
        paths: one.points ? () => null : undefined, value: (_, v) => (v === null || v === undefined ? '' : this.y.show(v)),
      });
      if (one.low && one.high) {
        const k = data.length;
        data.push(column(one.low), column(one.high));
        const edge = { stroke: 'transparent', width: 0, spanGaps: true, points: { show: false }, class: 'edge' };
        lines.push({ ...edge, label: `${one.name} at least`, value: () => '' }, { ...edge, label: `${one.name} at most`, value: () => '' });
        bands.push({ series: [k + 1, k], fill: `${colour}22` });
      }
    });
    const ink = css('--soft'), grid = { stroke: css('--line'), width: 1 };
    const k = grown();
    const font = `${12 * k}px ${css('--font') || 'sans-serif'}`;
    this.plot?.destroy();
    this.plot = new uPlot({
      width, height: this.height * k, bands, series: lines,
      scales: { x: { time: Boolean(this.x.time), distr: this.log ? 3 : 1, log: 2 }, y: { range: (_, lo, hi) => [0, (hi || 1) * 1.06] } },
      axes: [
        { stroke: ink, grid, ticks: grid, font, labelFont: font, label: this.x.name, labelSize: 30 * k, size: 34 * k, space: 70 * k, values: (_, list) => list.map((v) => (v === null ? '' : this.x.show(v))), filter: this.log ? (u, list) => thin(list, Math.floor(u.width / (75 * k))) : undefined },
        { stroke: ink, grid, ticks: grid, font, labelFont: font, label: this.y.name, labelSize: 30 * k, size: 74 * k, values: (_, list) => list.map((v) => (v === null ? '' : this.y.show(v))) },
      ],
      cursor: { focus: { prox: 24 }, drag: { x: true, y: false } },
      legend: { live: true },
    }, data, put(this.root));
    for (const row of this.root.querySelectorAll('.u-legend tr')) row.hidden = / at (least|most)$/.test(row.querySelector('.u-label')?.textContent || '');
  }
}

// thin keeps as many powers of two as there is room for.
function thin(list, room) {
  const whole = list.filter((v) => v !== null && Number.isInteger(Math.log2(v)));
  const every = Math.max(1, Math.ceil(whole.length / Math.min(9, Math.max(2, room - 1))));
  const keep = new Set(whole.filter((_, i) => i % every === 0));
  return list.map((v) => (keep.has(v) ? v : null));
}
