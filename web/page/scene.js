import { s } from './dom.js';
import { hosts } from './units.js';

// The server lays out a scene (package report); here it is drawn: marks become elements, what has a key can be chosen and
// has the colour of its load. Nothing is placed here.

// draw gives the elements of a scene. Cells of groups that are not to be seen yet are left to Picture.
export function draw(scene, load, folded) {
  return scene.marks.map((m) => (folded && m.class === 'pod' ? group({ ...m, closed: true }, load) : m.cells ? s('g', { class: 'cells', 'data-in': m.cells.in }, folded ? null : cells(m, load)) : mark(m, load)));
}

function mark(m, load) { return m.is === 'group' ? group(m, load) : shape(m); }

// classes are what the style sheet knows groups by.
function classes(m) { return (m.class || '').replace(/\bhost\b/, 'node').replace(/\blink\b/, 'cable'); }

function group(m, load) {
  if (!m.key) return s('g', { class: m.class }, m.tip && s('title', {}, m.tip), (m.marks || []).map((x) => mark(x, load)));
  const kids = [];
  const lines = m.class.startsWith('link');
  const last = lines ? m.marks.findLastIndex((x) => x.is === 'line' || x.is === 'path') : -1;
  const step = load.step(m.key, m);
  m.marks.forEach((x, i) => {
    if (i === last) kids.push(shape({ ...x, paint: {} }), shape(x));
    else kids.push(mark(x, load));
  });
  if (last >= 0) {
    kids[last].setAttribute('class', 'hit');
    kids[last + 1].setAttribute('class', `wire${step}`);
  }
  const box = m.marks.find((x) => x.is === 'rect');
  const sign = m.key.startsWith('node/') && load.mark(m.key.slice(5));
  if (sign) { // on the corner, where it covers no name
    const x = box.x + box.w - 2, y = box.y + 2;
    kids.push(s('circle', { cx: x, cy: y, r: 7, fill: 'var(--s-paper)', stroke: 'var(--s-ink)' }), s('text', { x, y: y + 4, 'font-size': 11, 'font-weight': 'bold', fill: 'var(--s-ink)', 'text-anchor': 'middle' }, sign));
  }
  return item(m.key, [m.tip, load.short(m.key, m)].filter(Boolean).join('; '), middle(m), `${classes(m)}${lines ? '' : step}`, ...kids);
}

// middle is where a group is, for the keys that walk from one to the next.
function middle(m) {
  const box = m.marks.findLast((x) => x.is === 'rect');
  if (box) return [box.x + (box.w || 0) / 2, box.y + Math.min((box.h || 0) / 2, 30)];
  const line = m.marks.findLast((x) => x.is === 'line');
  if (line) return [((line.x || 0) + (line.x2 || 0)) / 2, ((line.y || 0) + (line.y2 || 0)) / 2];
  const [x1, y1, , top, , , x2] = (m.marks.find((x) => x.is === 'path')?.d.match(/-?[\d.]+/g) || [0, 0, 0, 0, 0, 0, 0]).map(Number);
  return [(x1 + x2) / 2, (y1 + 3 * top) / 4];
}

// cells are many equal boxes, one for each node or switch of a group.
export function cells(m, load) {
  const c = m.cells;
  const names = c.names || hosts(c.hosts);
  return names.map((name, i) => {
    const x = m.x + (i % c.cols) * c.dx, y = m.y + Math.floor(i / c.cols) * c.dy;
    const key = `${c.what}/${name}`;
    const sign = c.what === 'node' ? load.mark(name) : '';
    const text = [sign, c.labels?.[i]].filter(Boolean).join(' ');
    const at = [x + m.w / 2, y + m.h / 2];
    return item(key, [name, load.short(key, m)].filter(Boolean).join('; '), at, `${c.what}${load.step(key, m)}`,
      s('rect', { x, y, width: m.w, height: m.h, rx: m.r, ...paint(m.paint) }),
      text && s('text', { x: at[0], y: at[1] + m.type.size * 0.36, ...type(m.type), 'font-size': Math.min(m.type.size, m.h) }, text));
  });
}

function shape(m) {
  switch (m.is) {
    case 'rect': return s('rect', { x: m.x || 0, y: m.y || 0, width: m.w || 0, height: m.h || 0, rx: m.r, ...paint(m.paint) });
    case 'line': return s('path', { d: `M${m.x || 0} ${m.y || 0}L${m.x2 || 0} ${m.y2 || 0}`, ...paint(m.paint) });
    case 'path': return s('path', { d: m.d, ...paint(m.paint) });
    default: return s('text', { x: m.x || 0, y: m.y || 0, ...type(m.type) }, m.text);
  }
}

// colour is a name of the scene's palette, which the style sheet has in light and dark.
function colour(name) { return name ? `var(--s-${name})` : 'none'; }

function paint(p) {
  return { fill: colour(p.fill), stroke: p.stroke && colour(p.stroke), 'stroke-width': p.width, 'stroke-dasharray': p.dash, opacity: p.opacity, 'stroke-linecap': p.round && 'round' };
}

function type(t) {
  return { 'font-size': t.size, fill: colour(t.fill), 'text-anchor': t.anchor, 'font-weight': t.bold && 'bold', 'font-style': t.italic && 'italic' };
}

// sample is an entry of the legend.
export function sample(x) {
  return s('svg', { viewBox: '0 0 30 12', 'aria-hidden': 'true' }, x.solid ? s('rect', { x: 1, y: 1, width: 28, height: 10, rx: 3, ...paint(x.paint) }) : s('path', { d: 'M0 6H30', ...paint(x.paint) }));
}

// item is a group that can be chosen; at is its middle. What is written in it is part of its name, for people who say what
// they see.
function item(key, label, at, cls, ...kids) {
  const seen = kids.filter((k) => k && k.tagName === 'text').map((k) => k.textContent).join(' ');
  if (seen && !` ${label.replaceAll(/[,:;]/g, ' ')} `.includes(` ${seen} `)) label = `${seen}: ${label}`;
  return s('g', { class: `item ${cls || ''}`, 'data-key': key, 'data-at': `${Math.round(at[0])},${Math.round(at[1])}`, role: 'button', 'aria-pressed': 'false', tabindex: '-1', 'aria-label': label }, s('title', {}, label), kids.map((k) => (k && k.tagName === 'text' ? [' ', k] : k)));
}
