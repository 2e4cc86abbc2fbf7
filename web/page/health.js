import { h } from './dom.js';
import { Load } from './load.js';

// Health is what the fleet's measurements say about nodes and switches, in the place of a load.
export class Health extends Load {
  constructor(nodes, findings) {
    super(null);
    this.findings = findings;
    this.nodes = new Map(nodes.map((n) => [n.name, n]));
    this.of = new Map();
    for (const f of findings) for (const n of f.nodes || []) this.of.set(n, [...(this.of.get(n) || []), f]);
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

  // said are the findings about a node, for its facts.
  said(host) {
    const list = this.of.get(host) || [];
    return list.length > 0 && h('ul', {}, list.map((f) => h('li', {}, f.text)));
  }

  legend() {
    const count = { good: 0, watch: 0, bad: 0, silent: 0 };
    for (const n of this.nodes.keys()) count[this.state(n)]++;
    return h('ul', { class: 'legend', 'aria-label': 'health of nodes' },
      [['good', 'healthy', 1], ['watch', '? with findings', 2], ['bad', '! unhealthy', 4], ['silent', '– unreachable', '']].map(([k, text, i]) =>
        h('li', {}, h('span', { class: `swatch health health${i}` }), `${text}: ${count[k]}`)));
  }
}
