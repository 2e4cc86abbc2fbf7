import { h, s } from './dom.js';
import { Health } from './health.js';
import { groupsOf, Table } from './fleetscale.js';
import { percent, plural } from './units.js';

// Measured is the health of a fleet with its links: a node's link is as good as the slower of its two directions, in the
// middle of its pairs, against their peers; the uplinks of a group as the pairs that lead out of it.
export class Measured extends Health {
  constructor(nodes, findings, pairs, topo) {
    super(nodes, findings);
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

  step(key, mark) {
    const [what, name] = key.split('/');
    switch (what) {
      case 'port': case 'ports': return step(this.links.get(name));
      case 'cables': return step(this.trunks.get(name));
      case 'trunk': return step(this.behind(name));
      default: return super.step(key, mark);
    }
  }

  // behind is how the groups behind a switch do that are measured worst.
  behind(name) {
    const mine = this.boxed(name);
    const list = this.topo.pods.filter((p) => p.leaves.some((x) => mine.includes(x))).map((p) => this.trunks.get(p.id)).filter((x) => x !== undefined);
    return list.length ? Math.min(...list) : undefined;
  }

  said(host) {
    const x = this.links.get(host);
    return [x !== undefined && h('p', {}, `Its link was measured at ${percent(x)} of its peers.`), super.said(host)];
  }

  legend() {
    if (!this.links.size) return super.legend();
    const steps = ['as their peers, 95% or more', 'from 85%', 'from 70%', 'from 55%', 'below'];
    return h('div', {}, super.legend(), h('ul', { class: 'legend', 'aria-label': 'measured rate of links against their peers' },
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
