import { grown, h, put } from './dom.js';
import { dark, pixels, stops } from './fleetscale.js';

// Heat is a table of pairs as a picture: rows send, columns receive. It is drawn whole from pixels; where there are more
// pairs than pixels, a pixel shows the worst of its pairs. A cell is pointed at with the mouse or walked to by keys.

const gap = 6;
const widest = 84; // of a cell: few nodes need no large picture

export class Heat {
  constructor({ label, onopen }) {
    this.onopen = onopen;
    this.canvas = h('canvas', { 'aria-hidden': 'true' });
    this.over = h('canvas', { 'aria-hidden': 'true', class: 'over' });
    this.said = h('output', { class: 'readout' });
    this.box = h('div', { class: 'heat', role: 'application', 'aria-roledescription': 'heat map', 'aria-label': `${label}. Arrow keys walk from pair to pair, Enter opens a pair, n goes to the next worst, plus, minus and 0 zoom.`, tabindex: '0' }, this.canvas, this.over);
    this.legend = h('div', { class: 'scale' });
    const button = (text, name, by) => h('button', { type: 'button', 'aria-label': name, title: name, onclick: () => { if (this.table) this.zoom(by); } }, text);
    this.buttons = h('div', { class: 'row zooms', role: 'group', 'aria-label': 'zoom' }, button('+', 'zoom in', 0.5), button('−', 'zoom out', 2), button('⤢', 'all pairs', Infinity));
    this.cursor = null;
    this.window = null;
    this.resize = new ResizeObserver(() => { if (this.table && Math.abs(this.box.clientWidth - this.width) > 2) this.draw(); });
    this.resize.observe(this.box);
    this.themed = () => this.draw();
    window.addEventListener('themed', this.themed);
    this.box.addEventListener('pointermove', (e) => this.point(e));
    this.box.addEventListener('pointerleave', () => this.aim(this.held));
    this.box.addEventListener('click', (e) => { this.point(e); if (this.cursor) { this.held = this.cursor; this.open(); } });
    this.box.addEventListener('keydown', (e) => this.key(e));
    this.box.addEventListener('focus', () => { if (!this.cursor && this.table?.n) this.aim(this.held || { i: 0, j: Math.min(1, this.table.n - 1) }, true); });
  }

  end() {
    this.resize.disconnect();
    window.removeEventListener('themed', this.themed);
  }

  // show takes a table with its scale; describe says what is known of a pair.
  show(table, scale, describe) {
    const same = this.table && this.table.n === table.n;
    this.table = table;
    this.scale = scale;
    this.describe = describe;
    this.list = null;
    if (!same) { this.window = null; this.cursor = null; this.held = null; }
    this.draw();
  }

  // layout finds the room for names and the size of a cell.
  layout() {
    const w = this.window || { i: 0, j: 0, n: this.table.n };
    this.width = this.box.clientWidth || 600;
    const k = grown();
    const room = Math.max(280, Math.min(this.width, window.innerHeight - 110 * k));
    const longest = Math.max(...this.table.names.map((x) => x.length), 4);
    const named = (room - 120 * k) / w.n >= 11 * k;
    const left = named ? k * Math.min(150, 14 + 6.6 * longest) : this.table.groups.length > 1 ? 16 * k : 4;
    const side = Math.max(120, Math.min(Math.floor(room - left - gap), k * widest * w.n));
    this.place = { left, top: left, side, cell: side / w.n, named, w, k };
  }

  draw() {
    if (!this.table || !this.table.n) return;
    this.layout();
    const { left, top, side, cell, w, k } = this.place;
    const dpr = window.devicePixelRatio || 1;
    for (const c of [this.canvas, this.over]) {
      c.width = Math.round((left + side + 1) * dpr);
      c.height = Math.round((top + side + 1) * dpr);
      c.style.setProperty('width', `${left + side + 1}px`);
      c.style.setProperty('height', `${top + side + 1}px`);
    }
    const g = this.canvas.getContext('2d');
    g.scale(dpr, dpr);
    const css = getComputedStyle(document.documentElement);
    const of = (name) => css.getPropertyValue(name).trim();
    this.ink = of('--ink');
    this.paper = of('--card');
    g.fillStyle = of('--sunk');
    g.fillRect(left, top, side, side);
    const m = Math.min(w.n, Math.floor(side * dpr));
    g.imageSmoothingEnabled = false;
    g.drawImage(this.image(w, m), left, top, side, side);
    this.lines(g, of('--card'), of('--strong'));
    this.names(g, of('--soft'), of('--font'));
    if (cell >= 34 * k) this.figures(g, of('--font'));
    this.aim(this.cursor);
    this.drawLegend();
  }

  // image is the window as m by m pixels, the worst pair of each.
  image(w, m) {
    const { values, n } = this.table;
    const worst = new Int16Array(m * m).fill(-1);
    const { bad } = this.scale;
    for (let i = 0; i < w.n; i++) {
      const base = (w.i + i) * n + w.j;
      const line = Math.floor(i * m / w.n) * m;
      for (let j = 0; j < w.n; j++) {
        const v = values[base + j];
        if (v !== v) continue; // NaN: not measured
        const t = bad(v);
        const b = t <= 0 ? 0 : t >= 1 ? 255 : Math.round(255 * t);
        const k = line + (m === w.n ? j : Math.floor(j * m / w.n));
        if (b > worst[k]) worst[k] = b;
      }
    }
    const table = pixels();
    const data = new ImageData(m, m);
    const out = new Uint32Array(data.data.buffer);
    for (let k = 0; k < out.length; k++) if (worst[k] >= 0) out[k] = table[worst[k]];
    const c = document.createElement('canvas');
    c.width = c.height = m;
    c.getContext('2d').putImageData(data, 0, 0);
    return c;
  }

  // lines separate cells where they are large, groups otherwise, and mark the diagonal.
  lines(g, paper, strong) {
    const { left, top, side, cell, w } = this.place;
    g.strokeStyle = paper;
    g.lineWidth = 1;
    if (cell >= 8) {
      g.beginPath();
      for (let k = 0; k <= w.n; k++) {
        const x = Math.round(left + k * cell) + 0.5, y = Math.round(top + k * cell) + 0.5;
        g.moveTo(x, top); g.lineTo(x, top + side); g.moveTo(left, y); g.lineTo(left + side, y);
      }
      g.stroke();
    }
    g.strokeStyle = strong;
    g.lineWidth = cell >= 8 ? 2 : 1;
    g.globalAlpha = cell >= 8 ? 1 : 0.35;
    g.beginPath();
    for (const gr of this.table.groups.slice(1)) {
      const x = left + (gr.from - w.j) * cell, y = top + (gr.from - w.i) * cell;
      if (x > left && x < left + side) { g.moveTo(x, top); g.lineTo(x, top + side); }
      if (y > top && y < top + side) { g.moveTo(left, y); g.lineTo(left + side, y); }
    }
    g.stroke();
    g.globalAlpha = 1;
    g.save();
    g.beginPath();
    g.rect(left, top, side, side);
    g.clip();
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(left - w.j * cell, top - w.i * cell);
    g.lineTo(left + (this.table.n - w.j) * cell, top + (this.table.n - w.i) * cell);
    g.stroke();
    g.restore();
  }

  names(g, soft, font) {
    const { left, top, side, cell, named, w, k: grow } = this.place;
    g.fillStyle = soft;
    g.font = `${11 * grow}px ${font || 'sans-serif'}`;
    g.textBaseline = 'middle';
    const upright = (text, x) => { g.save(); g.translate(x, top - 5); g.rotate(-Math.PI / 2); g.textAlign = 'left'; g.fillText(text, 0, 0); g.restore(); };
    if (named) {
      g.textAlign = 'right';
      for (let k = 0; k < w.n; k++) {
        g.fillText(this.table.names[w.i + k], left - 6, top + (k + 0.5) * cell);
        upright(this.table.names[w.j + k], left + (k + 0.5) * cell);
      }
      return;
    }
    for (const gr of this.table.groups) {
      const from = Math.max(0, gr.from - w.i), to = Math.min(w.n, gr.to - w.i);
      if ((to - from) * cell < 40) continue;
      g.save();
      g.translate(8 * grow, top + (from + to) / 2 * cell);
      g.rotate(-Math.PI / 2);
      g.textAlign = 'center';
      g.fillText(fit(g, gr.name, (to - from) * cell), 0, 0);
      g.restore();
      const a = Math.max(0, gr.from - w.j), b = Math.min(w.n, gr.to - w.j);
      g.textAlign = 'center';
      if (b > a) g.fillText(fit(g, gr.name, (b - a) * cell), Math.min(left + side, left + (a + b) / 2 * cell), 8 * grow);
    }
  }

  // figures stands in cells that are large enough.
  figures(g, font) {
    const { left, top, cell, w, k } = this.place;
    g.font = `${(cell > 60 * k ? 13 : 11) * k}px ${font || 'sans-serif'}`;
    g.textAlign = 'center';
    const light = !dark();
    for (let i = 0; i < w.n; i++) for (let j = 0; j < w.n; j++) {
      const v = this.table.at(w.i + i, w.j + j);
      if (Number.isNaN(v)) continue;
      const t = this.scale.bad(v);
      g.fillStyle = (light ? t < 0.55 : t > 0.5) ? '#161b22' : '#ffffff';
      g.fillText(this.scale.short(v), left + (j + 0.5) * cell, top + (i + 0.5) * cell + 0.5);
    }
  }

  drawLegend() {
    const bar = h('div', { class: 'ramp', 'aria-hidden': 'true', style: { background: `linear-gradient(to right, ${stops().join(', ')})` } });
    put(this.legend, h('div', { class: 'ramps' }, bar,
      h('ul', { 'aria-label': `scale in ${this.scale.unit}, from good to bad` }, this.scale.ticks.map(([t, text]) => h('li', { style: { left: `${100 * t}%` } }, text)))),
    h('p', { class: 'quiet' }, `${this.scale.unit}; the ${dark() ? 'brighter' : 'darker'}, the ${this.scale.worse}`, h('span', { class: 'swatch blank' }), 'not measured'));
  }

  point(e) {
    if (!this.place) return;
    const { left, top, cell, w } = this.place;
    const r = this.canvas.getBoundingClientRect();
    const i = Math.floor((e.clientY - r.top - top) / cell), j = Math.floor((e.clientX - r.left - left) / cell);
    this.aim(i >= 0 && j >= 0 && i < w.n && j < w.n ? { i: w.i + i, j: w.j + j } : this.held);
  }

  // aim puts the cursor on a cell; keys and clicks hold it there.
  aim(at, hold) {
    this.cursor = at || null;
    if (hold) this.held = this.cursor;
    const g = this.over.getContext('2d');
    const dpr = window.devicePixelRatio || 1;
    g.setTransform(dpr, 0, 0, dpr, 0, 0);
    g.clearRect(0, 0, this.over.width, this.over.height);
    if (!at || !this.place) { this.shown = null; this.said.textContent = 'Point at a cell, or walk there with the arrow keys.'; return; }
    const { left, top, side, cell, w } = this.place;
    const x = left + (at.j - w.j) * cell, y = top + (at.i - w.i) * cell, c = Math.max(cell, 3);
    g.fillStyle = this.ink;
    g.globalAlpha = 0.55;
    g.fillRect(left - 4, y, 4, c);
    g.fillRect(x, top - 4, c, 4);
    if (cell < 12) { g.globalAlpha = 0.25; g.fillRect(left, y + c / 2 - 0.5, side, 1); g.fillRect(x + c / 2 - 0.5, top, 1, side); }
    g.globalAlpha = 1;
    const o = cell < 12 ? 3 : 1;
    g.lineWidth = 4; g.strokeStyle = this.paper; g.strokeRect(x - o, y - o, c + 2 * o, c + 2 * o);
    g.lineWidth = 2; g.strokeStyle = this.ink; g.strokeRect(x - o, y - o, c + 2 * o, c + 2 * o);
    const key = `${at.i},${at.j}`;
    if (this.shown !== key) {
      this.shown = key;
      this.said.textContent = this.describe(at.i, at.j);
    }
  }

  open() {
    const at = this.cursor;
    if (at && at.i !== at.j) this.onopen(this.table.names[at.i], this.table.names[at.j]);
  }

  key(e) {
    if (!this.table?.n || e.ctrlKey || e.metaKey || e.altKey) return;
    const n = this.table.n;
    const at = this.cursor || { i: 0, j: 0 };
    const page = Math.max(2, Math.round(n / 10));
    const moves = {
      ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0], PageDown: [page, 0], PageUp: [-page, 0], Home: [0, -n], End: [0, n],
    };
    if (moves[e.key]) {
      const [di, dj] = moves[e.key];
      this.go({ i: Math.min(n - 1, Math.max(0, at.i + di)), j: Math.min(n - 1, Math.max(0, at.j + dj)) });
    } else if (e.key === 'Enter' || e.key === ' ') this.open();
    else if (e.key === '+' || e.key === '=') this.zoom(0.5);
    else if (e.key === '-') this.zoom(2);
    else if (e.key === '0') this.zoom(Infinity);
    else if (e.key === 'n') this.next();
    else return;
    e.preventDefault();
  }

  // next goes through the worst pairs.
  next() {
    this.list = this.list || this.table.worst(this.scale, 50);
    if (!this.list.length) return;
    const k = this.list.findIndex((x) => x.i === this.cursor?.i && x.j === this.cursor?.j);
    this.go(this.list[(k + 1) % this.list.length]);
  }

  go({ i, j }) {
    const w = this.window;
    if (w && (i < w.i || j < w.j || i >= w.i + w.n || j >= w.j + w.n)) {
      w.i = Math.min(Math.max(0, i - Math.floor(w.n / 2)), this.table.n - w.n);
      w.j = Math.min(Math.max(0, j - Math.floor(w.n / 2)), this.table.n - w.n);
      this.draw();
    }
    this.aim({ i, j }, true);
  }

  zoom(by) {
    const n = this.table.n;
    const now = this.window || { i: 0, j: 0, n };
    const size = Math.min(n, Math.max(Math.min(8, n), Math.round(now.n * by)));
    const at = this.cursor || { i: now.i + now.n / 2, j: now.j + now.n / 2 };
    const start = (x) => Math.min(Math.max(0, Math.round(x - size / 2)), n - size);
    this.window = size >= n ? null : { i: start(at.i), j: start(at.j), n: size };
    this.draw();
  }
}

// fit cuts a text to a width.
function fit(g, text, width) {
  while (text.length > 3 && g.measureText(text).width > width - 6) text = `${text.slice(0, -2)}…`;
  return text;
}
