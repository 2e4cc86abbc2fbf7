import { hosts } from './units.js';

// Topology is the document of busbar map --json with its things found by name: hosts with their cables, switches in tiers,
// and the groups of its scene.
export class Topology {
  constructor(doc, scene) {
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
    this.pods = this.group(scene?.groups);
    this.podOf = new Map(this.pods.map((p) => [p.id, p]));
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

  // group takes the nodes behind the same leaves from the scene, which draws them together.
  group(groups) {
    return (groups || []).map((g) => ({ ...g, hosts: hosts(g.hosts).map((n) => this.byName.get(n)).filter(Boolean), leaves: (g.leaves || []).map((n) => this.switches.get(n)).filter(Boolean) })).filter((g) => g.hosts.length);
  }

  // count is how many devices of a kind a host has.
  static devices(type, kind) { return (type?.devices || []).filter((d) => d.kind === kind); }

  // trunk sums what goes up from switches.
  static trunk(leaves) {
    let cables = 0, rate = 0;
    let sample = null;
    for (const leaf of leaves) {
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
