import { hosts, bytes, micros, percent, rate } from './units.js';

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

  group(list) {
    let worst = null;
    const seen = new Set();
    for (const host of list) {
      const of = this.byHost.get(host.name);
      if (!of || seen.has(of)) continue;
      seen.add(of);
      const u = this.most(host.name);
      if (u && (!worst || u.share > worst.use.share)) worst = { host: host.name, use: u };
    }
    return worst;
  }

  // step is the class of uses' colour: five steps, and a mark for the bottleneck. Nothing where nothing passes.
  step(uses) {
    const u = this.worst(uses);
    if (!u) return '';
    const x = u.share;
    return ` load load${x < 0.25 ? 0 : x < 0.5 ? 1 : x < 0.75 ? 2 : x < 0.9 ? 3 : 4}${uses.some((w) => w.bottleneck) ? ' tight' : ''}`;
  }

  linkStep(host, l) { return this.step(this.link(host, l)); }

  portStep(host, nic) { return this.step(this.port(host, nic)); }

  deviceStep(host, d, links) { return this.step(this.device(host, d, d.kind === 'gpu' ? peers(links) || links : links)); }

  nodeStep(host) { return this.step(this.node(host)); }

  podStep(pod) { const w = this.group(pod.hosts); return w ? this.step([w.use]) : ''; }

  trunkStep(pod) { return this.step(this.uplinks(pod.leaves)); }

  risers(pods) { return this.step(this.uplinks(pods.flatMap((p) => p.leaves))); }

  tierStep(list) { return this.step(this.uplinks(list)); }

  switchStep(x) { return this.uplinks([x]).some((u) => u.bottleneck) || (!this.each && this.where === x.name) ? ' tight' : ''; }

  // bus is what joins the GPUs of a node, as one line.
  busStep(host, links) { return this.step((peers(links) || []).flatMap((l) => this.link(host, l))); }

  mark() { return ''; }

  // short says in a few words how busy the busiest of uses is; about a group also who that is.
  short(uses, who = '') {
    const u = this.worst(uses);
    if (!this.row) return '';
    return u ? `most loaded: ${[who, this.say(u.way || u.which[0] || u.kind, u.host)].filter(Boolean).join(' ')}, busy ${percent(u.share)}` : 'carries nothing of the collective';
  }

  // words are rows of facts about uses: what goes each way, how long that keeps the link busy, whether the run waits for it.
  words(uses) {
    if (!this.row) return [];
    if (!uses.length) return [['load of the collective', 'carries nothing of it']];
    const took = this.row.time_us;
    const seen = new Set();
    const list = [];
    for (const u of uses) {
      const name = `load${u.way ? `, ${this.say(u.way, u.host)}` : ''}${u.kind === 'host' && u.way?.includes('network') ? ', copied through host memory' : ''}`;
      if (seen.has(name)) continue;
      seen.add(name);
      list.push([name, u.bytes === undefined ? `busiest of its kind: ${percent(u.share)} of ${micros(took)}` :
        `${bytes(u.bytes)}${u.cables > 1 ? ` over ${u.cables} cables` : ''}, ${rate(u.bytes / took / 1e3)} on average; busy ${percent(u.share)} of ${micros(took)}`]);
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

// peers are the links between GPUs, where there are any.
function peers(links) {
  const list = (links || []).filter((l) => ['nvlink', 'xgmi', 'gaudi'].includes(l.kind));
  return list.length ? list : null;
}

function index(list) {
  const by = new Map();
  for (const u of list) for (const w of u.which) { if (by.has(w)) by.get(w).push(u); else by.set(w, [u]); }
  return by;
}
