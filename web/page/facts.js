import { h, plain } from './dom.js';
import { rate, memory, number, count, plural, seconds } from './units.js';
import { Topology } from './topology.js';

// What is known about a thing that was chosen, with who says so.

const words = {
  rate_GBps: 'rate, one direction', max_GBps: 'most it can', hbm_GBps: 'memory rate', memory_bytes: 'memory', latency_s: 'latency', mtu_bytes: 'MTU', pci: 'PCI address',
  dense_peak_TFLOPS: 'dense peak', gdr: 'GPUDirect RDMA', duplex_GBps: 'rate, both directions', sm: 'compute capability', nvlinks: 'NVLinks', pci_id: 'PCI id', numa: 'NUMA domain', share_GBps: 'share per GPU',
};

function named(key) { return words[key] || key.replaceAll('_', ' '); }

// shown is a value with the unit that its name says.
function shown(key, v) {
  if (typeof v === 'number') {
    if (/GBps$/.test(key)) return rate(v);
    if (/TFLOPS$/.test(key)) return `${number(v)} TFLOPS`;
    if (key === 'memory_bytes') return memory(v);
    if (/_bytes$/.test(key)) return `${count(v)} B`;
    if (/_s$/.test(key)) return seconds(v);
    if (key === 'sm') return `${Math.floor(v / 10)}.${v % 10}`;
    return Number.isInteger(v) ? String(v) : number(v);
  }
  return String(v);
}

function isFact(v) { return v && typeof v === 'object' && 'value' in v && 'from' in v; }

// rows walks an object; a fact has a source.
function rows(obj, prefix, out) {
  for (const [key, v] of Object.entries(obj || {})) {
    if (v === null || v === undefined || ['down', 'up', 'hosts', 'kind', 'name', 'parent', 'list'].includes(key)) continue;
    const name = prefix ? `${prefix} ${named(key)}` : named(key);
    const unit = prefix === 'dense peak' ? 'x_TFLOPS' : key;
    if (isFact(v)) out.push([name, shown(unit, v.value), v.from, v.source]);
    else if (Array.isArray(v)) {
      if (v.every((x) => typeof x !== 'object')) out.push([name, v.join(', ')]);
      else v.forEach((x, i) => rows(x, v.length > 1 ? `${name} ${i + 1}` : name.replace(/s$/, ''), out));
    } else if (typeof v === 'object') rows(v, key === 'gpu' || key === 'nic' || key === 'cpu' ? prefix : name, out);
    else out.push([name, shown(unit, v)]);
  }
  return out;
}

// card lists facts; who says each is a number into the list of sources below.
export function card(title, kind, list) {
  const sources = [];
  const cite = (from, source) => {
    const text = plain(source || from);
    if (!sources.includes(text)) sources.push(text);
    return h('small', {}, ' ', h('span', { class: `from ${from}` }, from), ` [${sources.indexOf(text) + 1}]`);
  };
  return h('div', {}, h('h2', {}, title), h('p', { class: 'quiet' }, kind),
    h('dl', { class: 'facts' }, list.map(([name, value, from, source]) => [h('dt', {}, name), h('dd', {}, value, from && cite(from, source))])),
    sources.length > 0 && h('ol', { class: 'sources', 'aria-label': 'sources' }, sources.map((x) => h('li', {}, x))));
}

// facts describes the thing with a key of the picture.
export function facts(topo, key, load, mark) {
  const [what, name, extra] = key.split('/');
  const host = topo.byName.get(name);
  switch (what) {
    case 'device': {
      const d = host.type.devices.find((x) => x.name === extra);
      const list = rows(d, '', mark?.names ? [['one of', mark.names.join(', ')]] : []);
      const near = (host.type.nearest || []).find((x) => x.gpu === d.name);
      if (near) list.push(['nearest NICs', `${(near.nics || []).join(', ')} (${near.class})`]);
      if (d.kind !== 'nvswitch') list.unshift(...load.words(load.about(key, mark)));
      return card(`${host.name} ${d.label || d.name}`, { gpu: 'GPU', nic: 'NIC', pci: 'PCIe switch', root: 'PCIe root', numa: 'memory domain', socket: 'processor', nvswitch: 'NVSwitch' }[d.kind] || d.kind, list);
    }
    case 'link': {
      const l = host.type.links[Number(extra)];
      return card(`${host.name} ${l.a} – ${l.b}`, `link, ${l.kind}`, rows({ ...l, a: undefined, b: undefined }, '', load.words(load.about(key))));
    }
    case 'port': {
      const at = host.leaves.get(Number(extra));
      return card(`${host.name} NIC ${extra}${at ? ` – ${at.at.name}` : ''}`, 'cable', rows({ ...at?.link, a: undefined, b: undefined }, '', load.words(load.about(key, mark))));
    }
    case 'ports': {
      const list = [...host.leaves.values()].filter((x) => x.at.name === extra);
      return card(`${host.name} – ${extra}`, plural(list.length, 'cable'), rows({ ...list[0]?.link, a: undefined, b: undefined }, '', load.words(load.about(key))));
    }
    case 'bus': return card(`${name} GPUs`, 'what joins them', load.words(load.about(key)));
    case 'switch': {
      const list = load.boxed(name, mark);
      return list.length > 1 ? boxFacts(list, load) : switchFacts(topo.switches.get(name), load);
    }
    case 'trunk': return trunkFacts(`uplinks of ${names(load.boxed(name))}`, load.boxed(name), load);
    case 'cables': {
      const pod = topo.podOf.get(name), list = (pod ? pod.hosts : topo.hosts).flatMap((x) => [...x.leaves.values()]);
      return card(`cables of ${pod ? pod.name : 'all nodes'}`, plural(list.length, 'cable'), rows({ ...list[0]?.link, a: undefined, b: undefined }, '', pod ? load.words(load.about(key)) : []));
    }
    case 'pod': {
      const pod = topo.podOf.get(name);
      return card(pod.name, plural(pod.hosts.length, 'node'), [...most(load, pod.hosts), ['leaves', pod.leaves.length <= 16 ? pod.leaves.map((x) => x.name).join(', ') : count(pod.leaves.length)], ['kind of node', [...new Set(pod.hosts.map((x) => x.type?.name))].join(', ')]]);
    }
    case 'node': return nodeFacts(host, load);
    default: return null;
  }
}

// busiest are the uplinks of the switch that has the most to carry, of several which it is.
function busiest(load, switches) {
  const all = switches.map((x) => ({ x, uses: load.uplinks([x]) })).filter((one) => one.uses.length);
  if (!all.length) return load.words([]);
  const top = all.reduce((a, b) => (load.worst(b.uses).share > load.worst(a.uses).share ? b : a));
  return [...(switches.length > 1 && load.each ? [['most loaded', `${top.x.name}, of ${switches.length}`]] : []), ...load.words(top.uses)];
}

// most is the busiest link of nodes.
function most(load, list) {
  const w = load.group(list);
  if (!w) return load.each ? load.words([]) : [];
  return [['most loaded link', `${list.length > 1 ? `${w.host}, ` : ''}${load.say(w.use.which[0], w.host)}${w.use.which.length > 1 ? ` and ${w.use.which.length - 1} like it` : ''}`], ...load.words([w.use])];
}

// names are those of a few switches, or how many there are.
function names(list) { return list.length <= 3 ? list.map((x) => x.name).join(', ') : `${list[0].name} and ${plural(list.length - 1, 'more')}`.replace('mores', 'more'); }

// trunkFacts sums the cables up from switches.
function trunkFacts(title, list, load) {
  const t = Topology.trunk(list);
  return card(title, plural(t.cables, 'cable'), [['together, one direction', rate(t.rate)], ...busiest(load, list), ...rows({ ...t.sample, a: undefined, b: undefined, count: undefined }, '', [])]);
}

// boxFacts is about switches that are drawn as one.
function boxFacts(list, load) {
  const n = list.reduce((sum, x) => sum + (x.count || 1), 0);
  return card(names(list), `${count(n)} switches`, [...rows({ model: list[0].model, tier: list[0].tier, ports: list[0].ports, latency_s: list[0].latency_s }, '', []), ...(list.some((x) => x.up.length) ? busiest(load, list) : [])]);
}

function switchFacts(x, load) {
  const list = rows({ model: x.model, tier: x.tier, rail: x.rail, ports: x.ports, count: x.count, latency_s: x.latency_s }, '', x.up.length ? load.words(load.uplinks([x])) : []);
  if (x.hosts) list.push(['ports to nodes', count(x.hosts)]);
  const ups = x.up.reduce((n, u) => n + (u.link.count || 1), 0);
  if (ups) list.push(['cables up', count(ups)]);
  const downs = x.down.reduce((n, u) => n + (u.link.count || 1), 0);
  if (downs) list.push(['cables down', count(downs)]);
  return card(x.name, 'switch', list);
}

function nodeFacts(host, load) {
  const t = host.type;
  const list = [...most(load, [host]), ['kind', t.name], ['topology from', t.tree_from || 'unknown']];
  for (const [kind, text] of [['gpu', 'GPUs'], ['nic', 'NICs'], ['socket', 'processors']]) {
    const all = Topology.devices(t, kind);
    if (!all.length) continue;
    const model = all[0].model;
    list.push([text, `${all.length}${model ? ` × ${model.value}` : ''}`, model?.from, model?.source]);
  }
  const leaves = [...new Set([...host.leaves.values()].map((x) => x.at.name))];
  if (leaves.length) list.push(['leaves', leaves.join(', ')]);
  return card(host.name, 'node', list);
}
