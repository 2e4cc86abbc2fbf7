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
