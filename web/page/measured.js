import { h, s } from './dom.js';
import { Load } from './topology.js';
import { groupsOf, Table } from './fleetscale.js';
import { percent, plural } from './units.js';

// Measured colours a topology by what its nodes showed when they were measured: it stands where a Load does. A node is as
// good as the slower of its two directions, in the middle of its pairs, against their peers.
export class Measured extends Load {
  constructor(pairs, findings, topo) {
    super(null);
    const t = new Table(pairs, groupsOf(topo)).relative();
    this.nodes = new Map();
    for (let i = 0; i < t.n; i++) {
      const out = [], into = [];
      for (let j = 0; j < t.n; j++) {
        if (!Number.isNaN(t.at(i, j))) out.push(t.at(i, j));
        if (!Number.isNaN(t.at(j, i))) into.push(t.at(j, i));
      }
      const both = [middle(out), middle(into)].filter((x) => x !== undefined);
      if (both.length) this.nodes.set(t.names[i], Math.min(...both));
    }
    this.groups = new Map();
    for (const pod of topo.pods) {
      const mine = new Set(pod.hosts.map((x) => x.name)), list = [];
      for (const x of mine) {
        const i = t.place.get(x);
        if (i === undefined) continue;
        for (let j = 0; j < t.n; j++) if (!mine.has(t.names[j]) && !Number.isNaN(t.at(i, j))) list.push(t.at(i, j));
      }
      if (list.length) this.groups.set(pod.id, middle(list));
    }
    this.blamed = new Map();
    for (const f of findings) {
      for (const n of f.nodes) this.blamed.set(n, f.text);
      if (f.where) this.blamed.set(f.where, f.text);
    }
  }

  of(kind, name) {
    if (kind === 'fabric') return this.groups.get(name);
    return kind === 'nic' || kind === 'port' ? this.nodes.get(name) : undefined;
  }

  step(kind, name) {
    const x = this.of(kind, name);
    if (x === undefined) return '';
    return ` load load${x >= 0.95 ? 0 : x >= 0.85 ? 1 : x >= 0.7 ? 2 : x >= 0.55 ? 3 : 4}`;
  }

  tight(host, ...names) { return !host && names.some((n) => this.blamed.has(n)); }

  // says is what is known of a node in a few words.
  says(name) {
    const x = this.nodes.get(name), f = this.blamed.get(name);
    return [x === undefined ? 'not measured' : `${percent(x)} of its peers`, f].filter(Boolean).join('; ');
  }

  legend() {
    const steps = ['as its peers, 95 % or more', 'from 85 %', 'from 70 %', 'from 55 %', 'below'];
    return h('ul', { class: 'legend', 'aria-label': 'measured rate of nodes against their peers' }, steps.map((text, i) => h('li', {}, s('svg', { viewBox: '0 0 30 12', 'aria-hidden': 'true' }, s('path', { class: `wire load load${i}`, d: 'M0 6H30' })), text)),
      h('li', {}, `${plural(this.nodes.size, 'node')} measured; without colour: not measured`));
  }
}

function middle(list) {
  return list.length ? Float32Array.from(list).sort()[Math.floor(list.length / 2)] : undefined;
}

// measured asks for what the fleet showed.
export async function measured(api, topo) {
  const [pairs, found] = await Promise.all([api.ask('fleet/pairs', { figure: 'rate' }), api.ask('fleet/findings')]);
  return [new Measured(pairs.doc, found.doc.findings, topo), pairs];
}
