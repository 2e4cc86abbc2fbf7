import { hosts } from './units.js';

// Topology is the document of busbar map --json, made ready for drawing: hosts in pods (those behind the same leaves),
// switches in tiers, cables between them.
export class Topology {
  constructor(doc) {
    this.doc = doc;
    this.types = new Map((doc.types || []).map((t) => [t.name, t]));
    this.hosts = [];
    for (const group of doc.nodes || []) for (const name of hosts(group.hosts)) this.hosts.push({ name, type: this.types.get(group.type), leaves: new Map() });
    this.byName = new Map(this.hosts.map((x) => [x.name, x]));
    const net = doc.network || {};
    this.network = net;
    this.switches = new Map((net.switches || []).map((x) => [x.name, { ...x, down: [], up: [], hosts: 0 }]));
    this.cables = [];
    for (const link of net.links || []) this.wire(link);
    this.tiers = this.rank();
    this.pods = this.group();
  }

  wire(link) {
    const a = this.switches.get(link.a.switch), b = this.switches.get(link.b.switch);
    const at = a || b;
    const end = a ? link.b : link.a;
    if (a && b) {
      a.down.push({ to: b, link });
      b.up.push({ to: a, link });
      return;
    }
    if (!at) return;
    for (const name of hosts(end.hosts || '')) {
      const host = this.byName.get(name);
      if (!host) continue;
      host.leaves.set(end.nic, { at, link });
      at.hosts++;
    }
  }

  // rank puts switches without hosts into tiers above those with.
  rank() {
    const order = ['leaf', 'spine', 'core'];
    const tiers = new Map();
    for (const x of this.switches.values()) {
      const tier = x.tier || (x.hosts ? 'leaf' : 'spine');
      if (!tiers.has(tier)) tiers.set(tier, []);
      tiers.get(tier).push(x);
    }
    return [...tiers].map(([name, list]) => ({ name, list })).sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
  }

  // group puts hosts behind the same leaves together.
  group() {
    const pods = new Map();
    for (const host of this.hosts) {
      const leaves = [...new Set([...host.leaves.values()].map((x) => x.at))];
      const key = leaves.length ? leaves.map((x) => x.name).join(' ') : `type ${host.type?.name}`;
      if (!pods.has(key)) pods.set(key, { hosts: [], leaves });
      pods.get(key).hosts.push(host);
    }
    return [...pods.values()].map((p, i) => ({ ...p, id: `pod${i}`, name: span(p.hosts) }));
  }

  // count is how many devices of a kind a host has.
  static devices(type, kind) { return (type?.devices || []).filter((d) => d.kind === kind); }

  // above are the switches of the tiers over the leaves.
  get above() { return this.tiers.filter((t) => t.name !== 'leaf' || !t.list.some((x) => x.hosts)); }

  // trunk sums what goes up from a pod's leaves.
  trunk(pod) {
    let cables = 0, rate = 0;
    let sample = null;
    for (const leaf of pod.leaves) {
      for (const up of leaf.up) {
        const n = up.link.count || 1;
        cables += n;
        rate += n * (up.link.rate_GBps?.value || 0);
        sample = sample || up.link;
      }
    }
    return { cables, rate, sample };
  }
}

// span names the first and last host.
function span(list) {
  const first = list[0].name, last = list[list.length - 1].name;
  if (list.length === 1) return first;
  const m = /^(.*?)(\d+)$/.exec(first), n = /^(.*?)(\d+)$/.exec(last);
  if (m && n && m[1] === n[1] && Number(n[2]) - Number(m[2]) === list.length - 1) return `${m[1]}[${m[2]}-${n[2]}]`;
  return `${first} … ${last}`;
}

// Load is what a prediction says about how full links are: by kind of link, and where it is tightest.
export class Load {
  constructor(row) {
    this.row = row;
    this.share = {};
    for (const u of row?.busy || []) this.share[u.kind] = Math.max(this.share[u.kind] || 0, u.share);
    // What is staged in host memory on its way shows at the NIC too.
    const port = Math.max(this.share.nic ?? -1, this.share.host ?? -1);
    if (port >= 0) this.port = port;
    this.where = row?.bottleneck?.where || '';
    this.kind = row?.bottleneck?.kind || '';
    this.text = row?.bottleneck?.text || '';
  }

  // step is the class of a kind's colour, 0 to 4, or '' where nothing is said. Where each link has its own, a name says
  // which: that of a node for nic, of a group for fabric.
  step(kind) {
    const x = kind === 'port' ? this.port : this.share[kind];
    if (x === undefined) return '';
    return ` load load${x < 0.25 ? 0 : x < 0.5 ? 1 : x < 0.75 ? 2 : x < 0.9 ? 3 : 4}`;
  }

  // node is the class of a node as a whole, and mark a sign that stands in it.
  node(host) { return this.step('port') + (this.where.startsWith(`${host}/`) ? ' tight' : ''); }

  mark() { return ''; }

  // tight reports whether a device of a host is named as the bottleneck: node0/mlx5_0, node0/gpu0→gpu1, leaf0.
  tight(host, ...names) {
    const at = this.where.split('/');
    if (at.length === 1) return !host && names.includes(at[0]);
    return at[0] === host && names.some((n) => n && at[1].split('→').includes(n));
  }
}
