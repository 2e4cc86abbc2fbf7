import { h, table } from './dom.js';
import { Fleet } from './fleetdata.js';
import { ago, tag, to, when } from './fleetwords.js';
import { number, rate } from './units.js';
import { drain } from './fleethosts.js';
import { line } from './share.js';
import { has, stateWords } from './fleetnodes.js';

// nodeCard is all that is known of one node: its ports are asked for now.
export async function nodeCard({ state, api, fleet, topo }, name) {
  const { doc } = await api.ask('fleet/nodes', { nodes: name });
  const n = doc.nodes.find((x) => x.name === name);
  const close = h('button', { type: 'button', onclick: () => state.set({ node: '' }, { push: true }) }, 'Close');
  if (!n) return h('section', { class: 'card', 'aria-label': name }, h('div', { class: 'headline' }, h('h2', { tabindex: '-1' }, name), close), h('p', {}, 'No node of this name ever joined.'));
  const facts = [['state', stateWords[Fleet.state(n)] || Fleet.state(n)], ['joined', n.joined && when(n.joined)], ['last heartbeat', n.heard && ago(n.heard)], ['agent', n.version], ['measured at', n.meet], ['interface', n.bind],
    ['devices', has(topo.byName.get(name))], ['processors', n.cpus], ['load', number(n.load || 0)],
    ['last failure', n.last_failure && `${n.last_failure} (${ago(n.last_failure_at)})`]].filter(([, v]) => v);
  const found = fleet.worst().filter((f) => f.nodes.includes(name));
  return h('section', { class: 'card', 'aria-label': name }, h('div', { class: 'headline' }, h('h2', { tabindex: '-1' }, name), close),
    h('dl', { class: 'facts' }, facts.map(([k, v]) => [h('dt', {}, k), h('dd', {}, String(v))])),
    found.length > 0 && h('ul', {}, found.map((f) => h('li', {}, tag(f.severity, f.severity), ' ', f.text, ' ', to(state, { show: 'findings', id: f.id }, 'more')))),
    n.bad && line(drain([name], found[0]?.kind || 'bad'), 'Slurm: drain this node'),
    n.ports?.length > 0 && table('Ports', [{ text: 'port' }, { text: 'state' }, { text: 'rate', n: true }, { text: 'since' }],
      n.ports.map((p) => [p.port, tag(p.state || (p.up ? 'up' : 'down'), p.up ? 'good' : 'error'), p.rate_GBps ? rate(p.rate_GBps) : '', when(p.since)])));
}
