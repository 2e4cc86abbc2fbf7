import { hosts, bytes, seconds, percent, rate } from './units.js';

export const kindNames = { nvlink: 'NVLink', pcie: 'PCIe', host: 'host memory or sockets', nic: 'NIC', fabric: 'uplinks' };

// Load is what a prediction says about every link: the uses of busbar predict --links, found by the link that they are
// about. Where the answer tells no links apart, all of a kind show the busiest of it.
export class Load {
  constructor(row) {
    this.row = row;
    this.kinds = {}; // the busiest share of each kind
    for (const u of row?.busy || []) this.kinds[u.kind] = Math.max(this.kinds[u.kind] || 0, u.share);
    this.where = row?.bottleneck?.where || '';
    this.text = row?.bottleneck?.text || '';
    this.each = Boolean(row?.links?.length);
    this.byHost = new Map(); // of a host: what its links do, shared by hosts on which the same happens
    this.net = new Map();
    for (const g of row?.links || []) {
      const of = { list: g.links, by: index(g.links) };
      if (!g.hosts) this.net = of.by;
      else for (const name of hosts(g.hosts)) this.byHost.set(name, of);
    }
  }

  // say is a way as people know its ends: NICs by their labels.
  say(way, host) {
    const type = this.topo?.byName.get(host)?.type;
    return way.split('→').map((n) => (type?.devices || []).find((d) => d.kind === 'nic' && d.name === n)?.label || n).join(' → ');
  }

  // of are the uses that go by names on a host.
  of(host, ...names) {
    const by = this.byHost.get(host)?.by;
    return by ? names.flatMap((n) => (by.get(n) || []).map((u) => ({ ...u, way: n, host }))) : [];
  }

  // kind are uses as they are known where links are not told apart.
  kind(...kinds) {
    if (!this.row || this.each) return [];
    return kinds.filter((k) => this.kinds[k] !== undefined).map((k) => ({ kind: k, share: this.kinds[k], which: [] }));
  }

  // The uses of a link inside a node, of a NIC's cable with what is copied for it, of a device, of everything in a node.
  link(host, l) {
    if (!this.each) return this.kind({ nvlink: 'nvlink', xgmi: 'nvlink', gaudi: 'nvlink', pcie: 'pcie' }[l.kind] || 'none');
    return this.of(host, `${l.a}→${l.b}`, `${l.b}→${l.a}`);
  }

  port(host, nic) { return this.each ? this.of(host, `${nic}→network`, `network→${nic}`) : this.kind('nic', 'host'); }

  device(host, d, links) {
    if (d.kind === 'nic') return this.port(host, d.name);
    if (!this.each) return this.kind(d.kind === 'gpu' ? 'nvlink' : 'none');
    return [...this.of(host, d.name), ...(links || []).filter((l) => l.a === d.name || l.b === d.name).flatMap((l) => this.link(host, l))];
  }

  node(host) { return this.each ? [this.most(host)].filter(Boolean) : this.kind('nic', 'host', 'nvlink', 'pcie'); }

  // uplinks are those of switches, all cables of one together.
  uplinks(list) {
    if (!this.each) return this.kind('fabric');
    return list.flatMap((x) => [`${x.name}→above`, `above→${x.name}`].flatMap((n) => (this.net.get(n) || []).map((u) => ({ ...u, way: n }))));
  }

  // worst is the busiest of uses, of a group the node that it belongs to.
  worst(uses) { return uses.reduce((a, u) => (!a || u.share > a.share ? u : a), null); }

  // most is the busiest of a node's uses, looked for once for all nodes that are alike.
  most(host) {
    const of = this.byHost.get(host);
    if (of && of.most === undefined) of.most = this.worst(of.list);
    return of?.most ? { ...of.most, host } : null;
  }

  // group is the busiest of the nodes of a group, by all their links or by those that uses gives; nodes on which the same
  // happens are looked at one time.
  group(list, uses) {
    let worst = null;
    const seen = new Set();
    for (const host of list) {
      const of = this.byHost.get(host.name);
      if (!of || seen.has(of)) continue;
      seen.add(of);
      const all = uses ? uses(host) : [this.most(host.name)].filter(Boolean);
      const u = this.worst(all);
      if (u && (!worst || u.share > worst.use.share)) worst = { host: host.name, use: u, uses: all };
    }
    return worst;
  }

  // about are the uses of a thing of the picture, by its key; a mark may stand for several devices or switches.
  about(key, mark) {
    const [what, name, extra] = key.split('/');
    const host = this.topo?.byName.get(name), pod = this.topo?.podOf.get(name);
    switch (what) {
      case 'device': return (mark?.names || [extra]).flatMap((n) => this.device(name, host.type.devices.find((d) => d.name === n), host.type.links));
      case 'link': return this.link(name, host.type.links[Number(extra)]);
      case 'port': return (mark?.names || [nics(host)[Number(extra)]?.name]).flatMap((n) => this.port(name, n));
      case 'ports': return [...(host?.leaves || [])].filter(([, x]) => x.at.name === extra).flatMap(([i]) => this.port(name, nics(host)[i]?.name));
      case 'bus': return peers(host.type.links).flatMap((l) => this.link(name, l));
      case 'node': return this.node(name);
      case 'pod': { const w = this.group(pod.hosts); return w ? [w.use] : []; }
      case 'cables': return pod ? this.group(pod.hosts, (h) => nics(h).flatMap((d) => this.port(h.name, d.name)))?.uses || [] : [];
      case 'switch': return this.uplinks(this.boxed(name, mark));
      case 'trunk': return this.uplinks(this.boxed(name));
      default: return [];
    }
  }

  // boxed are the switches that are drawn in the box of one.
  boxed(name, mark) {
    const names = mark?.names || this.boxes?.get(name) || [name];
    return names.map((n) => this.topo?.switches.get(n)).filter(Boolean);
  }

  // over takes what it is drawn over.
  over(topo, scene) {
    this.topo = topo;
    this.boxes = new Map(scene.marks.filter((m) => m.names && m.key?.startsWith('switch/')).map((m) => [m.key.slice(7), m.names]));
    this.known = new Map();
    return this;
  }

  // step is the class of a thing's colour: five steps, and a mark for the bottleneck. Nothing where nothing passes. A box
  // of switches has no load of its own, and a node that shows its devices none but theirs.
  step(key, mark) {
    if (!this.row || mark?.class?.includes('devices')) return '';
    if (key.startsWith('device/') && !/^(gpu|nic)\b/.test(mark?.class)) return '';
    if (key.startsWith('switch/') && !mark?.cells) return this.switchStep(this.boxed(key.slice(7), mark));
    if (key.startsWith('pod/') && !mark?.closed) return '';
    return this.stepOf(mark?.class === 'gpu' ? this.between(key) : this.about(key, mark));
  }

  stepOf(uses) {
    const u = this.worst(uses);
    if (!u) return '';
    const x = u.share;
    return ` load load${x < 0.25 ? 0 : x < 0.5 ? 1 : x < 0.75 ? 2 : x < 0.9 ? 3 : 4}${uses.some((w) => w.bottleneck) ? ' tight' : ''}`;
  }

  // between are the uses of a GPU's links to other GPUs, where it has any.
  between(key) {
    const [, name, device] = key.split('/');
    const { type } = this.topo.byName.get(name);
    return this.device(name, type.devices.find((d) => d.name === device), peers(type.links).length ? peers(type.links) : type.links);
  }

  switchStep(list) { return this.uplinks(list).some((u) => u.bottleneck) || (!this.each && list.some((x) => this.where === x.name)) ? ' tight' : ''; }

  mark() { return ''; }

  // short says in a few words how busy the busiest link of a thing is; of a group also whose it is.
  short(key, mark) {
    if (!this.row || /^(switch|device)\//.test(key) && !mark?.cells) return '';
    const who = key.startsWith('pod/') ? this.group(this.topo.podOf.get(key.slice(4)).hosts)?.host : '';
    const u = this.worst(this.about(key, mark));
    return u ? `most loaded: ${[who, this.say(u.way || u.which[0] || u.kind, u.host)].filter(Boolean).join(' ')}, busy ${percent(u.share)}` : 'carries nothing of the collective';
  }

  // words are rows of facts about uses: what goes each way, how long that keeps the link busy, whether the run waits for it.
  words(uses) {
    if (!this.row) return [];
    if (!uses.length) return [['load of the collective', 'carries nothing of it']];
    const took = this.row.time_s;
    const seen = new Set();
    const list = [];
    for (const u of uses) {
      const name = `load${u.way ? `, ${this.say(u.way, u.host)}` : ''}${u.kind === 'host' && u.way?.includes('network') ? ', copied through host memory' : ''}`;
      if (seen.has(name)) continue;
      seen.add(name);
      list.push([name, u.bytes === undefined ? `busiest of its kind: ${percent(u.share)} of ${seconds(took)}` :
        `${bytes(u.bytes)}${u.cables > 1 ? ` over ${u.cables} cables` : ''}, ${rate(u.bytes / took / 1e9)} on average; busy ${percent(u.share)} of ${seconds(took)}`]);
    }
    return [...list, this.verdict(uses)];
  }

  verdict(uses) {
    const b = this.row.bottleneck || {};
    if (uses.some((u) => u.bottleneck)) return ['bottleneck', `yes: ${b.text}`];
    if (!b.where) return ['bottleneck', `no link is: ${b.text}`];
    return ['bottleneck', this.each ? `no, that is ${b.where}: ${b.text}` : `${b.where}: ${b.text}`];
  }
}

// peers are the links between GPUs.
function peers(links) { return (links || []).filter((l) => ['nvlink', 'xgmi', 'gaudi'].includes(l.kind)); }

function nics(host) { return (host?.type?.devices || []).filter((d) => d.kind === 'nic'); }

function index(list) {
  const by = new Map();
  for (const u of list) for (const w of u.which) { if (by.has(w)) by.get(w).push(u); else by.set(w, [u]); }
  return by;
}
