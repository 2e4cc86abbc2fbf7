import { number } from './units.js';

// What figures of pairs mean: which is worse, how they are coloured, and how they are said.

// Lightness falls (on paper) or rises (in the dark) evenly from good to bad, and the hue goes from blue to orange, so that
// the order is seen by everybody.
const palettes = {
  light: ['#dbe8f5', '#e6d09a', '#eeb25c', '#d4701f', '#94330b', '#4a1204'],
  dark: ['#1c3550', '#4c5250', '#8a7340', '#cf9a35', '#f6c95a', '#fff4cf'],
};

export function dark() {
  const set = document.documentElement.dataset.theme;
  return set ? set === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

export function stops() { return palettes[dark() ? 'dark' : 'light']; }

// pixels are 256 colours from good to bad, as a canvas has them.
export function pixels() {
  const g = Object.assign(document.createElement('canvas'), { width: 256, height: 1 }).getContext('2d');
  const list = stops();
  g.fillStyle = list.reduce((ramp, c, i) => { ramp.addColorStop(i / (list.length - 1), c); return ramp; }, g.createLinearGradient(0, 0, 256, 0));
  g.fillRect(0, 0, 256, 1);
  return new Uint32Array(g.getImageData(0, 0, 256, 1).data.buffer);
}

// sorted is a sample of what is known, in order: a million figures have the same quantiles as some thousands of them.
function sorted(values) {
  const every = values.length < 100000 ? 1 : 2 * Math.floor(values.length / 100000) + 1;
  const list = [];
  for (let k = 0; k < values.length; k += every) if (!Number.isNaN(values[k])) list.push(values[k]);
  return Float32Array.from(list).sort();
}

function quantile(list, q) { return list.length ? list[Math.min(list.length - 1, Math.floor(q * list.length))] : 0; }

// scaleOf makes a figure's scale from all its values: bad(v) from 0 to 1, show(v), and ticks of the legend.
export function scaleOf(figure, values) {
  const list = sorted(values);
  if (figure === 'latency') {
    const low = quantile(list, 0.02) || 1;
    const high = Math.max(quantile(list, 0.995), 4 * low);
    const ratio = Math.log(high / low);
    const at = (t) => low * Math.exp(t * ratio);
    return {
      unit: 'µs', bad: (v) => Math.log(v / low) / ratio, show: (v) => `${number(v)} µs`, short: number,
      ticks: [0, 0.25, 0.5, 0.75, 1].map((t) => [t, `${t === 0 ? '≤ ' : t === 1 ? '≥ ' : ''}${number(at(t))}`]), worse: 'longer',
    };
  }
  if (figure === 'peers') {
    // Findings count deviations: where all pairs scatter, a pair must be further from its peers to look as bad.
    const middle = quantile(list, 0.5);
    const scatter = 1.4826 * quantile(Float32Array.from(list, (v) => Math.abs(v - middle)).sort(), 0.5);
    const span = Math.min(1, Math.max(0.5, 6 * scatter));
    return {
      unit: '% of its peers', bad: (v) => (1 - v) / span, show: (v) => `${Math.round(100 * v)}% of its peers`, short: (v) => String(Math.round(100 * v)),
      ticks: [0, 0.2, 0.4, 0.6, 0.8, 1].map((t) => [t, `${t === 0 ? '≥ ' : t === 1 ? '≤ ' : ''}${Math.round(100 * (1 - t * span))}`]), worse: 'slower',
    };
  }
  const top = quantile(list, 0.98) || 1;
  return {
    unit: 'GB/s', bad: (v) => 1 - v / top, show: (v) => `${number(v)} GB/s`, short: number,
    ticks: [[0, `≥ ${number(top)}`], [0.25, number(0.75 * top)], [0.5, number(0.5 * top)], [0.75, number(0.25 * top)], [1, '0']], worse: 'slower',
  };
}

// groupsOf are the nodes behind the same leaves, or of the same kind, where that is known.
export function groupsOf(topo) {
  if (topo.pods.length < 2) return [];
  return topo.pods.map((p) => ({ name: p.leaves.length && p.leaves.length <= 2 ? p.leaves.map((x) => x.name).join(' ') : p.name, names: p.hosts.map((x) => x.name) }));
}

// Table is one figure of all pairs in the order in which they are drawn; what is not known is NaN.
export class Table {
  constructor(doc, groups) {
    this.figure = doc.figure;
    const place = new Map();
    const known = new Set(doc.names);
    this.groups = [];
    this.names = [];
    for (const g of groups) {
      const list = g.names.filter((n) => known.has(n));
      if (!list.length) continue;
      this.groups.push({ name: g.name, from: this.names.length, to: this.names.length + list.length });
      for (const n of list) { place.set(n, this.names.length); this.names.push(n); }
    }
    const rest = doc.names.filter((n) => !place.has(n));
    if (rest.length && this.groups.length) this.groups.push({ name: 'others', from: this.names.length, to: this.names.length + rest.length });
    for (const n of rest) { place.set(n, this.names.length); this.names.push(n); }
    this.place = place;
    const n = this.n = this.names.length;
    this.group = new Uint16Array(n);
    this.groups.forEach((g, k) => this.group.fill(k, g.from, g.to));
    this.values = new Float32Array(n * n).fill(NaN);
    const at = doc.names.map((x) => place.get(x));
    doc.values.forEach((row, i) => {
      const base = at[i] * n;
      for (let j = 0; j < row.length; j++) if (row[j] !== null) this.values[base + at[j]] = row[j];
    });
  }

  at(i, j) { return this.values[i * this.n + j]; }

  // set takes one new figure; false where a node is not in the table.
  set(from, to, v) {
    const i = this.place.get(from), j = this.place.get(to);
    if (i === undefined || j === undefined || !v) return false;
    this.values[i * this.n + j] = v;
    this.middles = null;
    return true;
  }

  get known() {
    let k = 0;
    for (const v of this.values) if (!Number.isNaN(v)) k++;
    return k;
  }

  // peers gives the middle figure of a pair's peers: those between the same two groups, or inside any one. Some hundreds
  // of each kind say as much as all; where there are few, all pairs are peers.
  peers() {
    if (this.middles) return this.middles;
    const g = Math.max(1, this.groups.length), n = this.n;
    const key = (i, j) => {
      const a = this.group[i], b = this.group[j];
      return a === b ? g * g : a < b ? a * g + b : b * g + a;
    };
    const lists = new Array(g * g + 1);
    const all = [];
    for (let k = 0; k < n * n; k++) {
      const v = this.values[k];
      if (v !== v) continue; // not measured
      const i = Math.floor(k / n), c = key(i, k - i * n);
      const list = lists[c] || (lists[c] = []);
      if (list.length < 600) { list.push(v); all.push(v); } else if (k % 97 === 0) list[k % 600] = v;
    }
    const middle = (list) => Float32Array.from(list).sort()[Math.floor(list.length / 2)];
    const whole = all.length ? middle(all) : 1;
    const medians = Array.from(lists, (list) => (list && list.length >= 6 ? middle(list) : whole));
    this.middles = (i, j) => medians[key(i, j)];
    return this.middles;
  }

  // relative is the table with every figure as a part of what its peers show.
  relative() {
    const of = this.peers();
    const out = Object.assign(Object.create(Table.prototype), this, { figure: 'peers', values: new Float32Array(this.values.length) });
    for (let i = 0, k = 0; i < this.n; i++) for (let j = 0; j < this.n; j++, k++) out.values[k] = this.values[k] / of(i, j);
    return out;
  }

  // worst are the pairs with the greatest badness.
  worst(scale, most) {
    const out = [];
    let least = -Infinity;
    for (let k = 0; k < this.values.length; k++) {
      const v = this.values[k];
      if (Number.isNaN(v)) continue;
      const bad = scale.bad(v);
      if (out.length >= most && bad <= least) continue;
      out.push({ i: Math.floor(k / this.n), j: k % this.n, v, bad });
      if (out.length >= 4 * most) {
        out.sort((a, b) => b.bad - a.bad).length = most;
        least = out[most - 1].bad;
      }
    }
    return out.sort((a, b) => b.bad - a.bad).slice(0, most);
  }
}
