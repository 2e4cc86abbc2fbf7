import { s } from './dom.js';
import { item } from './picture.js';
import { plural, rate } from './units.js';
import { Topology } from './topology.js';

// The whole cluster: tiers of switches as bars above, pods below, hung on trunks like feeders on a busbar. Few nodes are
// drawn with their GPUs and NICs, many as small cells.

const gutter = 26;

function form(hosts, pods) {
  if (hosts <= 16 && pods <= 8) return 'large';
  if (hosts > 3000 && pods > 16) return 'folded'; // a group is a box; opened, it shows its nodes
  return hosts <= 96 ? 'middle' : 'small';
}

// cell is the size of a node.
function cell(how, type) {
  if (how === 'middle') return { w: 78, h: 30, gap: 6 };
  if (how === 'folded') return { w: 15, h: 0, gap: 0 };
  if (how === 'small') return { w: 15, h: 15, gap: 4 };
  const gpus = Topology.devices(type, 'gpu').length, nics = Topology.devices(type, 'nic').length;
  const n = Math.max(gpus, nics, 4);
  return { w: Math.min(n, 18) * 26 + 18, h: 64 + 22 * (Math.ceil(nics / 18) + Math.ceil(gpus / 18)), gap: 14 };
}

// heading is the room above a pod's nodes: its name, its leaves, and for few nodes the cables.
function heading(how, leaves, type) {
  if (!leaves) return 30;
  return how === 'large' && Topology.devices(type, 'nic').length <= 18 ? 128 : 58;
}

// columns is how many pods stand side by side, so that the whole is about as wide as a screen.
function columns(pods, pod, how) {
  if (how === 'large') return Math.max(1, Math.min(pods, Math.floor(1250 / (pod.w + gutter)) || 1));
  let best = 1, least = Infinity;
  for (let n = 1; n <= pods; n++) {
    const off = Math.abs(Math.log((n * (pod.w + gutter)) / (Math.ceil(pods / n) * (pod.h + 22) + 80) / 1.55));
    if (off < least) { least = off; best = n; }
  }
  return best;
}

export function clusterScene(topo, load) {
  const how = form(topo.hosts.length, topo.pods.length);
  const size = cell(how, topo.hosts[0]?.type);
  const most = Math.max(1, ...topo.pods.map((p) => p.hosts.length));
  const cols = how === 'folded' ? 8 : how === 'large' ? Math.min(most, Math.max(1, Math.floor(1150 / (size.w + size.gap)))) : Math.max(1, Math.min(most, Math.ceil(Math.sqrt(most * (how === 'small' ? 2.2 : 0.8)))));
  const rows = how === 'folded' ? 0 : Math.ceil(most / cols);
  const leaves = topo.pods.some((p) => p.leaves.length);
  const head = heading(how, leaves, topo.hosts[0]?.type);
  const pod = { w: Math.max(cols * (size.w + size.gap) + 14, 150), h: head + rows * (size.h + size.gap) + 10 };
  const across = columns(topo.pods.length, pod, how);
  const width = across * (pod.w + gutter) + gutter;
  const items = [];
  let y = 12;
  const tiers = topo.above.slice().reverse();
  tiers.forEach((tier, i) => {
    items.push(...tierBar(tier, y, width, load));
    y += 34;
    if (i < tiers.length - 1) {
      items.push(s('path', { class: `wire${load.tierStep(tiers[i + 1].list)}`, d: `M${width * 0.3} ${y}v18M${width * 0.5} ${y}v18M${width * 0.7} ${y}v18` }));
      y += 18;
    }
  });
  const top = y + (tiers.length ? 26 : 0);
  const lines = Math.ceil(topo.pods.length / across);
  const place = topo.pods.map((_, i) => ({ x: gutter + (i % across) * (pod.w + gutter), y: top + Math.floor(i / across) * (pod.h + 22) }));
  if (tiers.length && leaves) for (let c = 0; c < across; c++) {
    const x = gutter / 2 + c * (pod.w + gutter);
    const last = Math.floor((topo.pods.length - 1 - c) / across);
    const below = topo.pods.filter((_, i) => i % across === c);
    items.push(s('path', { class: `wire${load.risers(below)}`, d: `M${x} ${y}V${top + last * (pod.h + 22) + 36}` }));
  }
  topo.pods.forEach((p, i) => items.push(...podBox(topo, p, place[i], pod, { how, size, cols, leaves, trunks: tiers.length > 0, load })));
  return { width, height: top + lines * (pod.h + 22) + 6, label: `${topo.doc.name}: ${plural(topo.hosts.length, 'node')} in ${plural(topo.pods.length, 'group')}`, items };
}

// tierBar is a tier of switches: each of a few, or all of many in one.
function tierBar(tier, y, width, load) {
  const n = tier.list.reduce((sum, x) => sum + (x.count || 1), 0);
  if (tier.list.length > 16 || tier.list.length === 1) {
    const one = tier.list.length === 1 ? tier.list[0] : null;
    const text = one && !one.count ? one.name : `${tier.name}: ${plural(n, 'switch').replace('switchs', 'switches')}`;
    const key = one ? `switch/${one.name}` : `tier/${tier.name}`;
    return [item(key, `${text}, tier ${tier.name}`, [width / 2, y + 15], `switch${one ? load.switchStep(one) : ''}`,
      s('rect', { x: 12, y, width: width - 24, height: 30, rx: 6 }), s('text', { x: width / 2, y: y + 20, 'text-anchor': 'middle' }, text))];
  }
  const w = (width - 24 - 8 * (tier.list.length - 1)) / tier.list.length;
  return tier.list.map((x, i) => {
    const at = 12 + i * (w + 8);
    const text = x.count > 1 ? `${x.name} ×${x.count}` : x.name;
    return item(`switch/${x.name}`, `${text}, tier ${tier.name}`, [at + w / 2, y + 15], `switch${load.switchStep(x)}`,
      s('rect', { x: at, y, width: w, height: 30, rx: 6 }), s('text', { x: at + w / 2, y: y + 20, 'text-anchor': 'middle' }, w > 50 ? text : ''));
  });
}

// join puts how busy a thing is behind its name.
function join(name, load) { return load ? `${name}; ${load}` : name; }

function podBox(topo, p, at, box, o) {
  const out = [];
  const { load } = o;
  if (o.leaves && o.trunks && p.leaves.length) {
    const t = topo.trunk(p);
    const d = `M${at.x - gutter / 2} ${at.y + 36}H${at.x + 7}`;
    out.push(item(`trunk/${p.id}`, join(`uplinks of ${p.name}: ${t.cables} cables, ${rate(t.rate)}`, load.short(load.uplinks(p.leaves))), [at.x - gutter / 2, at.y + 36], 'cable',
      s('path', { class: 'hit', d }), s('path', { class: `wire${load.trunkStep(p)}`, d })));
  }
  const named = p.hosts.length > 1 || p.leaves.length;
  const folded = o.how === 'folded';
  const worst = load.group(p.hosts);
  out.push(item(`pod/${p.id}`, join(`${p.name}: ${plural(p.hosts.length, 'node')}${p.leaves.length ? ` behind ${plural(p.leaves.length, 'leaf').replace('leafs', 'leaves')}` : ''}`, worst && load.short([worst.use], worst.host)), [at.x + box.w / 2, at.y + 12], `pod${folded ? load.podStep(p) : ''}`,
    s('rect', { x: at.x, y: at.y, width: box.w, height: box.h, rx: 8 }),
    s('text', { x: at.x + 10, y: at.y + 18 }, named ? p.name : ''),
    7 * p.name.length + 76 < box.w && s('text', { x: at.x + box.w - 10, y: at.y + 18, 'text-anchor': 'end', class: 'dim' }, plural(p.hosts.length, 'node'))));
  const spots = new Map();
  const w = p.leaves.length ? (box.w - 14 - 3 * (p.leaves.length - 1)) / p.leaves.length : 0;
  p.leaves.forEach((leaf, i) => {
    const x = at.x + 7 + i * (w + 3);
    spots.set(leaf, x + w / 2);
    out.push(item(`switch/${leaf.name}`, `${leaf.name}, leaf`, [x + w / 2, at.y + 36], `switch${load.switchStep(leaf)}`,
      s('rect', { x, y: at.y + 26, width: w, height: 20, rx: 3 }), s('text', { x: x + w / 2, y: at.y + 40, 'text-anchor': 'middle', class: 'little' }, w > 7 * leaf.name.length ? leaf.name : w > 14 && leaf.rail !== undefined ? `r${leaf.rail}` : '')));
  });
  const head = heading(o.how, o.leaves, p.hosts[0].type);
  if (!folded) p.hosts.forEach((host, i) => {
    const x = at.x + 10 + (i % o.cols) * (o.size.w + o.size.gap), y = at.y + head + Math.floor(i / o.cols) * (o.size.h + o.size.gap);
    out.push(...(o.how === 'large' ? largeNode(host, x, y, o, spots, i < o.cols ? at.y + 46 : 0) : [smallNode(host, x, y, o)]));
  });
  return out;
}

function smallNode(host, x, y, o) {
  const { w, h } = o.size;
  const mark = o.load.mark(host.name);
  const name = host.name.length > 12 ? `…${host.name.slice(-10)}` : host.name;
  const words = o.how === 'middle' ? (mark ? `${mark} ${name}` : name) : mark;
  return item(`node/${host.name}`, join(host.name, o.load.short(o.load.node(host.name))), [x + w / 2, y + h / 2], `node${o.load.nodeStep(host.name)}`,
    s('rect', { x, y, width: w, height: h, rx: 2 }), words && s('text', { x: x + w / 2, y: y + h / 2 + 4, 'text-anchor': 'middle', class: 'little' }, words));
}

// largeNode shows a node's NICs above and its GPUs below; cables go to the leaves.
function largeNode(host, x, y, o, spots, from) {
  const { load, size } = o;
  const out = [];
  const gpus = Topology.devices(host.type, 'gpu'), nics = Topology.devices(host.type, 'nic');
  const spot = (list, i) => x + 8 + (i % 18 + 0.5) * ((size.w - 16) / Math.min(18, list.length));
  nics.forEach((d, i) => {
    const leaf = host.leaves.get(i);
    const to = leaf && spots.get(leaf.at);
    if (to === undefined || nics.length > 18) return;
    const d2 = `M${spot(nics, i)} ${y + 22}V${y - 6}${from ? `L${to} ${from}` : ''}`; // below the first row only its end is drawn
    out.push(item(`port/${host.name}/${i}`, join(`cable ${host.name} ${d.label || d.name} to ${leaf.at.name}`, load.short(load.port(host.name, d.name))), [spot(nics, i), y - 4], 'cable',
      s('path', { class: 'hit', d: d2 }), s('path', { class: `wire${load.portStep(host.name, d.name)}`, d: d2 })));
  });
  out.push(item(`node/${host.name}`, `${host.name}: ${plural(gpus.length, 'GPU')}, ${plural(nics.length, 'NIC')}`, [x + size.w / 2, y + 6], `node${load.row ? '' : load.nodeStep(host.name)}`,
    s('rect', { x, y, width: size.w, height: size.h, rx: 6 }), s('text', { x: x + size.w / 2, y: y + size.h - 6, 'text-anchor': 'middle', class: 'little' }, `${load.mark(host.name)} ${host.name}`.trim())));
  const links = host.type?.links;
  const cells = (list, kind, top) => list.forEach((d, i) => {
    const cx = spot(list, i), cy = top + 22 * Math.floor(i / 18);
    const w = Math.min(24, (size.w - 16) / Math.min(18, list.length) - 2);
    out.push(item(`device/${host.name}/${d.name}`, `${kind.toUpperCase()} ${i} of ${host.name}, ${d.label || d.name}`, [cx, cy + 8], `${kind}${load.deviceStep(host.name, d, links)}`,
      s('rect', { x: cx - w / 2, y: cy, width: w, height: 19, rx: 3 }), w > 13 && s('text', { x: cx, y: cy + 13.5, 'text-anchor': 'middle', class: 'tiny' }, String(i))));
  });
  if (Topology.devices(host.type, 'nvswitch').length || (links || []).some((l) => l.kind === 'nvlink')) {
    out.push(s('path', { class: `wire thick${load.busStep(host.name, links)}`, d: `M${x + 8} ${y + size.h - 24}H${x + size.w - 8}` }));
  }
  cells(nics.slice(0, 144), 'nic', y + 8);
  cells(gpus.slice(0, 144), 'gpu', y + 28 + 22 * Math.ceil(nics.length / 18));
  return out;
}
