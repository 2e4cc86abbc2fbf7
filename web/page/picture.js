import { h, s, put } from './dom.js';
import { draw, cells } from './scene.js';

// mostCells is how many cells of groups are drawn at a time; where there are more, groups are closed until they are near.
const mostCells = 2000;

// Picture shows a scene that can be zoomed, moved and walked through by keys.
export class Picture {
  constructor({ onchoose, onopen }) {
    this.onchoose = onchoose;
    this.onopen = onopen;
    this.svg = s('svg', { class: 'topology', role: 'group', preserveAspectRatio: 'xMidYMin meet' });
    const button = (text, label, work) => h('button', { type: 'button', title: label, 'aria-label': label, onclick: work }, text);
    this.root = h('div', { class: 'picture' }, h('div', { class: 'sheet' }, this.svg),
      h('div', { class: 'zoom', role: 'group', 'aria-label': 'zoom' }, button('+', 'zoom in', () => this.zoom(1.4)), button('−', 'zoom out', () => this.zoom(1 / 1.4)), button('⤢', 'whole picture', () => this.fit())));
    this.svg.addEventListener('wheel', (e) => { if (e.ctrlKey || e.metaKey || this.zoomed || e.altKey) { e.preventDefault(); this.zoom(Math.exp(-e.deltaY / 400), this.point(e)); } }, { passive: false });
    this.svg.addEventListener('dblclick', (e) => { if (!e.target.closest('.item')) this.zoom(1.8, this.point(e)); });
    this.svg.addEventListener('pointerdown', (e) => this.grab(e));
    this.svg.addEventListener('click', (e) => this.click(e));
    this.svg.addEventListener('keydown', (e) => this.key(e));
    this.root.addEventListener('focusin', (e) => { const g = e.target.closest('.item'); if (g) this.rove(g); });
  }

  draw(scene, load) {
    this.scene = scene;
    this.load = load;
    const held = this.svg.contains(document.activeElement);
    this.svg.setAttribute('aria-label', scene.title);
    this.folded = scene.marks.reduce((n, m) => n + (m.cells?.n || 0), 0) > mostCells;
    this.svg.classList.toggle('loaded', Boolean(load.row));
    put(this.svg, draw(scene, load, this.folded));
    this.opened = new Set();
    this.svg.classList.toggle('crowded', this.svg.querySelectorAll('.wire.tight').length > 12); // where all glow, nothing does
    const first = [...this.svg.querySelectorAll('.item')].reduce((a, x) => (!a || centre(x).y < centre(a).y ? x : a), null); // the one on top
    if (first) first.setAttribute('tabindex', '0');
    if (held) this.enter();
    this.fit();
  }

  // enter puts the focus into the picture.
  enter() { this.svg.querySelector('.item[tabindex="0"]')?.focus({ preventScroll: true }); }

  fit() {
    const wide = Math.max(this.scene.width, 640); // a small scene is not blown up
    this.box = { x: (this.scene.width - wide) / 2, y: 0, w: wide, h: this.scene.height };
    this.zoomed = false;
    this.look();
  }

  // show brings a part of the picture near.
  show({ x, y, w, h: height }) {
    const all = Math.max(this.scene.width, 640), k = Math.min(1, 1.25 * Math.max(w / all, height / this.scene.height));
    const wide = all * k, high = this.scene.height * k;
    this.box = { x: x + w / 2 - wide / 2, y: y + height / 2 - high / 2, w: wide, h: high };
    this.zoomed = k < 0.999;
    if (!this.zoomed) this.fit(); else this.keep();
  }

  // unfold draws the cells of groups that are near, when they are few enough, and forgets those of others.
  unfold() {
    const { x, y, w, h: height } = this.box;
    const near = this.scene.groups.filter((g) => g.x < x + w && g.x + g.w > x && g.y < y + height && g.y + g.h > y);
    const ids = new Set(near.map((g) => g.id));
    const marks = this.scene.marks.filter((m) => m.cells && ids.has(m.cells.in));
    const fits = marks.reduce((n, m) => n + m.cells.n, 0) <= mostCells;
    for (const id of this.opened) if (!fits || !ids.has(id)) this.close(id);
    if (!fits) return;
    for (const id of ids) {
      if (this.opened.has(id)) continue;
      this.opened.add(id);
      const places = this.svg.querySelectorAll(`.cells[data-in="${id}"]`);
      marks.filter((m) => m.cells.in === id).forEach((m, i) => put(places[i], cells(m, this.load)));
    }
  }

  close(id) {
    this.opened.delete(id);
    for (const place of this.svg.querySelectorAll(`.cells[data-in="${id}"]`)) if (!place.contains(document.activeElement)) put(place);
  }

  look() {
    const { x, y, w, h: height } = this.box;
    this.svg.setAttribute('viewBox', `${x} ${y} ${w} ${height}`);
    this.svg.style.setProperty('aspect-ratio', `${Math.max(this.scene.width, 640)} / ${this.scene.height}`);
    this.svg.style.setProperty('--readable', `${Math.round(0.6 * this.scene.width)}px`); // on a phone it scrolls
    if (this.folded && !this.due) this.due = requestAnimationFrame(() => { this.due = 0; this.unfold(); });
  }

  // point is where in the picture a pointer is.
  point(e) {
    const m = this.svg.getScreenCTM();
    return m ? new DOMPoint(e.clientX, e.clientY).matrixTransform(m.inverse()) : null;
  }

  zoom(by, at) {
    const b = this.box, most = Math.max(this.scene.width, 640);
    const scale = Math.min(most, Math.max(most / 40, b.w / by)) / b.w;
    const p = at || { x: b.x + b.w / 2, y: b.y + b.h / 2 };
    this.box = { x: p.x - (p.x - b.x) * scale, y: p.y - (p.y - b.y) * scale, w: b.w * scale, h: b.h * scale };
    this.zoomed = this.box.w < most * 0.999;
    if (!this.zoomed) this.fit();
    else this.keep();
  }

  // keep holds the view inside the picture.
  keep() {
    const b = this.box, full = this.scene;
    b.x = Math.min(Math.max(b.x, -b.w / 3), full.width - b.w * 2 / 3);
    b.y = Math.min(Math.max(b.y, -b.h / 3), full.height - b.h * 2 / 3);
    this.look();
  }

  grab(e) {
    if (e.button || !this.zoomed) return;
    const from = { x: e.clientX, y: e.clientY, box: { ...this.box } };
    const k = this.svg.getScreenCTM()?.a || 1;
    this.moved = false;
    const move = (m) => {
      const dx = m.clientX - from.x, dy = m.clientY - from.y;
      if (Math.abs(dx) + Math.abs(dy) > 4) this.moved = true;
      this.box.x = from.box.x - dx / k;
      this.box.y = from.box.y - dy / k;
      this.keep();
    };
    const up = () => { window.removeEventListener('pointermove', move); window.removeEventListener('pointerup', up); };
    window.addEventListener('pointermove', move);
    window.addEventListener('pointerup', up);
  }

  click(e) {
    const g = e.target.closest('.item');
    if (this.moved) { this.moved = false; return; }
    if (g) this.choose(g);
  }

  choose(g) {
    this.mark(g.dataset.key);
    g.focus();
    this.onchoose(g.dataset.key, g);
  }

  // mark shows what is chosen.
  mark(key) {
    for (const x of this.svg.querySelectorAll('.item[aria-pressed=true]')) x.setAttribute('aria-pressed', 'false');
    const g = key && this.svg.querySelector(`.item[data-key="${CSS.escape(key)}"]`);
    if (g) g.setAttribute('aria-pressed', 'true');
    return g;
  }

  rove(g) {
    const was = this.svg.querySelector('.item[tabindex="0"]');
    if (was && was !== g) was.setAttribute('tabindex', '-1');
    g.setAttribute('tabindex', '0');
  }

  key(e) {
    const steps = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
    const g = e.target.closest('.item');
    if (steps[e.key] && g) { e.preventDefault(); this.walk(g, steps[e.key]); return; }
    switch (e.key) {
      case 'Enter': case ' ':
        if (g) { e.preventDefault(); if (g.getAttribute('aria-pressed') === 'true') this.onopen(g.dataset.key); else this.choose(g); }
        break;
      case '+': case '=': this.zoom(1.4, g && centre(g)); break;
      case '-': this.zoom(1 / 1.4); break;
      case '0': this.fit(); break;
      default:
    }
  }

  // walk goes to the nearest thing in a direction.
  walk(g, [dx, dy]) {
    const from = centre(g);
    let best = null, least = Infinity;
    for (const x of this.svg.querySelectorAll('.item')) {
      if (x === g) continue;
      const c = centre(x);
      const along = (c.x - from.x) * dx + (c.y - from.y) * dy;
      const across = Math.abs((c.x - from.x) * dy) + Math.abs((c.y - from.y) * dx);
      if (along <= 1) continue;
      const d = along + 3 * across;
      if (d < least) { least = d; best = x; }
    }
    if (best) best.focus();
  }
}

function centre(g) {
  const [x, y] = (g.dataset.at || '0,0').split(',').map(Number);
  return { x, y };
}
