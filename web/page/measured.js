import { h, s } from './dom.js';
import { Load } from './load.js';
import { groupsOf, Table } from './fleetscale.js';
import { percent, plural } from './units.js';

// Measured is what the fleet's measurements say about nodes, switches and links, in the place of a load: a node's link is as
// good as the slower of its two directions, the median of its pairs against their peers; the uplinks of a group as the
// pairs that lead out of it.
class Measured extends Load {
  constructor(nodes, findings, pairs, topo) {
    super(null);
    this.findings = findings;
    this.nodes = new Map(nodes.map((n) => [n.name, n]));
    this.of = new Map();
    for (const f of findings) for (const n of f.nodes || []) this.of.set(n, [...(this.of.get(n) || []), f]);
    const t = new Table(pairs, groupsOf(topo)).relative();
    this.links = new Map();
    this.trunks = new Map();
    for (let i = 0; i < t.n; i++) {
      const out = [], into = [];
      for (let j = 0; j < t.n; j++) {
        if (!Number.isNaN(t.at(i, j))) out.push(t.at(i, j));
        if (!Number.isNaN(t.at(j, i))) into.push(t.at(j, i));
      }
      const both = [middle(out), middle(into)].filter((x) => x !== undefined);
      if (both.length) this.links.set(t.names[i], Math.min(...both));
    }
    for (const pod of topo.pods) {
      const mine = new Set(pod.hosts.map((x) => t.place.get(x.name))), list = [];
      for (const i of mine) for (let j = 0; i !== undefined && j < t.n; j++) if (!mine.has(j) && !Number.isNaN(t.at(i, j))) list.push(t.at(i, j));
      if (list.length) this.trunks.set(pod.id, middle(list));
    }
  }

  // state is how a node is: bad, watch (something was found), silent, good, or '' for one that never joined.
  state(host) {
    const n = this.nodes.get(host);
    if (!n) return '';
    if (n.bad) return 'bad';
    if (n.state !== 'up') return 'silent';
    return this.of.has(host) ? 'watch' : 'good';
  }

  // step is the class of a thing: nodes by their state, devices and switches where a finding names them. Inside a node
  // nothing is measured link by link.
  step(key, mark) {
    const [what, name, device] = key.split('/');
    switch (what) {
      case 'node': return { bad: ' load load4 tight', watch: ' load load2', silent: ' silent', good: ' load load1', '': '' }[this.state(name)];
      case 'pod': return mark?.closed ? this.groupStep(this.topo.podOf.get(name).hosts) : '';
      case 'device': return this.named(name, device, this.topo.byName.get(name)?.type?.devices.find((d) => d.name === device)?.label) ? ' tight' : '';
      case 'switch': return (mark?.names || [name]).some((n) => this.named('', n)) ? ' tight' : '';
      case 'port': case 'ports': return step(this.links.get(name));
      case 'cables': return step(this.trunks.get(name));
      case 'trunk': return step(this.behind(name));
      default: return '';
    }
  }

  // groupStep is that of the worst node of a group that is closed.
  groupStep(list) {
    const worst = ['bad', 'watch', 'silent', 'good'].find((s) => list.some((x) => this.state(x.name) === s));
    return { bad: ' load load4 tight', watch: ' load load2', silent: ' silent', good: ' load load1' }[worst] || '';
  }

  mark(host) { return { bad: '!', watch: '?', silent: '–' }[this.state(host)] || ''; }

  named(host, ...names) {
    const list = host ? this.of.get(host) || [] : this.findings;
    return list.some((f) => f.where && names.includes(f.where));
  }

  // behind is how the groups behind a switch do that are measured worst.
  behind(name) {
    const mine = this.boxed(name);
    const list = this.topo.pods.filter((p) => p.leaves.some((x) => mine.includes(x))).map((p) => this.trunks.get(p.id)).filter((x) => x !== undefined);
    return list.length ? Math.min(...list) : undefined;
  }

  // said is what was measured of a node and found about it, for its facts.
  said(host) {
    const x = this.links.get(host), list = this.of.get(host) || [];
    return [x !== undefined && h('p', {}, `Its link was measured at ${percent(x)} of its peers.`), list.length > 0 && h('ul', {}, list.map((f) => h('li', {}, f.text)))];
  }

  legend() {
    const count = { good: 0, watch: 0, bad: 0, silent: 0 };
    for (const n of this.nodes.keys()) count[this.state(n)]++;
    const steps = ['as their peers, 95% or more', 'from 85%', 'from 70%', 'from 55%', 'below'];
    return h('div', {}, h('ul', { class: 'legend', 'aria-label': 'health of nodes' },
      [['good', 'healthy', 1], ['watch', '? with findings', 2], ['bad', '! unhealthy', 4], ['silent', '– unreachable', '']].map(([k, text, i]) => h('li', {}, h('span', { class: `swatch health health${i}` }), `${text}: ${count[k]}`))),
    this.links.size > 0 && h('ul', { class: 'legend', 'aria-label': 'measured rate of links against their peers' },
      h('li', {}, `links, of ${plural(this.links.size, 'node')}:`), steps.map((text, i) => h('li', {}, s('svg', { viewBox: '0 0 30 12', 'aria-hidden': 'true' }, s('path', { class: `wire load load${i}`, d: 'M0 6H30' })), text))));
  }
}

function step(x) {
  if (x === undefined) return '';
  return ` load load${x >= 0.95 ? 0 : x >= 0.85 ? 1 : x >= 0.7 ? 2 : x >= 0.55 ? 3 : 4}`;
}

function middle(list) { return list.length ? Float32Array.from(list).sort()[Math.floor(list.length / 2)] : undefined; }

// measured asks for what the fleet showed.
export async function measured(api, topo) {
  const [nodes, found, pairs] = await Promise.all([api.ask('fleet/nodes', { brief: true }), api.ask('fleet/findings'), api.ask('fleet/pairs', { figure: 'rate' })]);
  return new Measured(nodes.doc.nodes, found.doc.findings, pairs.doc, topo);
}
