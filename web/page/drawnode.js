import { s } from './dom.js';
import { item } from './picture.js';
import { rate } from './units.js';

// One node: its tree of sockets, memory domains, bridges and switches from above, GPUs and NICs in the last row, what joins
// GPUs below.

const shown = new Set(['gpu', 'nic']);
const tall = 62;

export function nodeScene(topo, host, load) {
  const type = host.type;
  const devices = type.devices || [];
  const byName = new Map(devices.map((d) => [d.name, { d, kids: [], x: 0, y: 0 }]));
  const roots = [];
  for (const x of byName.values()) {
    if (x.d.kind === 'nvswitch') continue;
    const up = byName.get(x.d.parent);
    if (up) up.kids.push(x); else roots.push(x);
  }
  const useful = (x) => shown.has(x.d.kind) || x.kids.some(useful);
  const prune = (x) => { x.kids = x.kids.filter(useful); x.kids.forEach(prune); };
  const kept = roots.filter((x) => useful(x) || x.d.kind === 'socket');
  kept.forEach(prune);
  let depth = 0;
  const deep = (x, n) => { x.depth = n; depth = Math.max(depth, n); x.kids.forEach((k) => deep(k, n + 1)); };
  kept.forEach((x) => deep(x, 0));
  const leaves = [];
  const gather = (x) => { if (!x.kids.length) leaves.push(x); x.kids.forEach(gather); };
  kept.forEach(gather);
  const step = leaves.length > 40 ? 40 : leaves.length > 12 ? 62 : 92;
  leaves.forEach((x, i) => { x.x = 50 + i * step; });
  const bottom = 34 + depth * tall;
  const settle = (x) => {
    x.kids.forEach(settle);
    x.y = shown.has(x.d.kind) ? bottom : 34 + x.depth * tall;
    if (x.kids.length) x.x = (x.kids[0].x + x.kids[x.kids.length - 1].x) / 2;
  };
  kept.forEach(settle);
  const width = Math.max(180, 60 + leaves.length * step);
  const items = [];
  wires(items, kept, type, host, load);
  between(items, type, byName, host, load);
  const joint = joins(items, type, byName, host, load, { bottom, width });
  for (const x of byName.values()) if (x.depth !== undefined) items.push(box(x, host, load, step, type.links));
  cables(items, byName, host, load, bottom, step);
  return { width, height: joint + 34, label: `${host.name}: ${type.name}`, items };
}

function box(x, host, load, step, links) {
  const { d } = x;
  const leaf = shown.has(d.kind);
  const w = leaf ? step - 10 : Math.min(110, Math.max(step - 8, 52));
  const cls = { gpu: 'gpu', nic: 'nic' }[d.kind] || 'bridge';
  const name = d.kind === 'nic' ? d.label || d.name : d.name;
  return item(`device/${host.name}/${d.name}`, `${d.kind} ${name}${d.model?.value ? `, ${d.model.value}` : ''}`, [x.x, x.y], `${cls}${leaf ? load.deviceStep(host.name, d, links) : ''}`,
    s('rect', { x: x.x - w / 2, y: x.y - 12, width: w, height: leaf ? 30 : 24, rx: 5 }),
    s('text', { x: x.x, y: x.y + (leaf ? 7 : 4), 'text-anchor': 'middle', class: step < 50 ? 'tiny' : 'little' }, name.length * 7 > w + 8 ? name.slice(-Math.max(3, Math.floor(w / 7))) : name));
}

// title names a link, with its rate and how busy it is.
function title(l, host, load) { return [`${l.kind} ${l.a} to ${l.b}${l.rate_GBps ? `, ${rate(l.rate_GBps.value)}` : ''}`, load.short(load.link(host.name, l))].filter(Boolean).join('; '); }

// wires are the links down the tree, each with its own facts.
function wires(items, kept, type, host, load) {
  const find = (a, b) => (type.links || []).findIndex((l) => (l.a === a && l.b === b) || (l.a === b && l.b === a));
  const down = (x) => x.kids.forEach((k) => {
    const i = find(x.d.name, k.d.name);
    const link = i >= 0 ? type.links[i] : null;
    const path = `M${x.x} ${x.y + 12}V${(x.y + k.y) / 2 + 6}H${k.x}V${k.y - 12}`;
    const wire = s('path', { class: `wire${link ? load.linkStep(host.name, link) : ''}`, d: path });
    items.push(link ? item(`link/${host.name}/${i}`, title(link, host, load), [k.x, (x.y + k.y) / 2 + 6], 'cable', s('path', { class: 'hit', d: path }), wire) : wire);
    down(k);
  });
  kept.forEach(down);
}

// between are links between sockets.
function between(items, type, byName, host, load) {
  (type.links || []).forEach((l, i) => {
    const a = byName.get(l.a), b = byName.get(l.b);
    if (!a || !b || a.depth === undefined || b.depth === undefined || a.kids.includes(b) || b.kids.includes(a) || shown.has(a.d.kind) || shown.has(b.d.kind) || a.y !== b.y) return;
    const d = `M${a.x} ${a.y - 12}V${a.y - 22}H${b.x}V${b.y - 12}`;
    items.push(item(`link/${host.name}/${i}`, title(l, host, load), [(a.x + b.x) / 2, a.y - 22], 'cable', s('path', { class: 'hit', d }), s('path', { class: `wire${load.linkStep(host.name, l)}`, d })));
  });
}

// joins are links between GPUs: a bar for a switch, arcs for direct ones.
function joins(items, type, byName, host, load, { bottom, width }) {
  const links = (type.links || []).map((l, i) => ({ l, i, a: byName.get(l.a), b: byName.get(l.b) })).filter((x) => x.a && x.b && (x.l.kind === 'nvlink' || x.l.kind === 'xgmi' || (x.a.d.kind === 'gpu' && x.b.d.kind === 'gpu')));
  const switched = links.filter((x) => x.a.d.kind === 'nvswitch' || x.b.d.kind === 'nvswitch');
  let end = bottom + 30;
  if (switched.length) {
    const y = bottom + 58;
    const sw = switched[0].a.d.kind === 'nvswitch' ? switched[0].a.d : switched[0].b.d;
    for (const x of switched) {
      const g = x.a.d.kind === 'gpu' ? x.a : x.b;
      const d = `M${g.x} ${bottom + 18}V${y}`;
      items.push(item(`link/${host.name}/${x.i}`, title(x.l, host, load), [g.x, y - 12], 'cable', s('path', { class: 'hit', d }), s('path', { class: `wire thick${load.linkStep(host.name, x.l)}`, d })));
    }
    items.push(item(`device/${host.name}/${sw.name}`, `${sw.name}${sw.count ? ` ×${sw.count}` : ''}`, [width / 2, y + 14], 'switch', s('rect', { x: 20, y, width: width - 40, height: 28, rx: 6 }), s('text', { x: width / 2, y: y + 19, 'text-anchor': 'middle', class: 'little' }, 'NVSwitch')));
    end = y + 34;
  }
  for (const x of links) {
    if (switched.includes(x)) continue;
    const [a, b] = x.a.x < x.b.x ? [x.a, x.b] : [x.b, x.a];
    const dip = 16 + (b.x - a.x) * 0.16;
    const d = `M${a.x} ${bottom + 18}C${a.x} ${bottom + 18 + dip} ${b.x} ${bottom + 18 + dip} ${b.x} ${bottom + 18}`;
    items.push(item(`link/${host.name}/${x.i}`, title(x.l, host, load), [(a.x + b.x) / 2, bottom + 18 + dip * 0.75], 'cable', s('path', { class: 'hit', d }), s('path', { class: `wire thick${load.linkStep(host.name, x.l)}`, d })));
    end = Math.max(end, bottom + 30 + dip);
  }
  return end;
}

// cables say to which switch each NIC goes.
function cables(items, byName, host, load, bottom, step) {
  let i = 0;
  for (const x of byName.values()) {
    if (x.d.kind !== 'nic' || x.depth === undefined) continue;
    const leaf = host.leaves.get(i);
    i++;
    if (!leaf) continue;
    const d = `M${x.x} ${bottom + 18}v14`;
    items.push(item(`port/${host.name}/${i - 1}`, [`cable ${x.d.label || x.d.name} to ${leaf.at.name}`, load.short(load.port(host.name, x.d.name))].filter(Boolean).join('; '), [x.x, bottom + 30], 'cable', s('path', { class: 'hit', d }), s('path', { class: `wire${load.portStep(host.name, x.d.name)}`, d }),
      step > 50 && s('text', { x: x.x, y: bottom + 44, 'text-anchor': 'middle', class: 'tiny dim' }, leaf.at.name)));
  }
}
