import { h, put, failure } from './dom.js';
import { choice, field } from './pick.js';
import { Fleet } from './fleetdata.js';
import { fold, drain } from './fleethosts.js';
import { copier, line } from './share.js';
import { ago, busbar, shown, tag, to } from './fleetwords.js';
import { nodeCard } from './fleetnode.js';
import { Topology } from './topology.js';
import { hosts, number, plural } from './units.js';

const perPage = 100;
const stateTags = { up: 'good', silent: 'error', left: '', expected: 'note' };
export const stateWords = { silent: 'unreachable', expected: 'starting' }; // as people say it
const stateRank = { silent: 0, expected: 1, up: 2, left: 3 };

// has is a node's devices in a few words.
export function has(host) {
  if (!host?.type) return '';
  const words = [];
  for (const [kind, name] of [['gpu', 'GPU'], ['nic', 'NIC']]) {
    const list = Topology.devices(host.type, kind);
    if (list.length) words.push(list[0].model ? `${list.length} × ${list[0].model.value}` : plural(list.length, name));
  }
  return words.join(', ') || 'no GPU';
}

function doing(n) {
  if (!n.doing) return 'idle';
  const d = n.doing;
  return `${d.text || 'measures'}${d.of ? ` ${d.done}/${d.of}` : ''}`;
}

function traffic(n) { return `${number(n.receive_GBps || 0)} in, ${number(n.send_GBps || 0)} out`; }

// columns are [key, head, number?, text or node of a cell, what it is sorted by].
function columns(state, topo) {
  return [
    ['name', 'node', false, (n) => n.name, null],
    ['state', 'state', false, (n) => Fleet.state(n), (n) => stateRank[Fleet.state(n)]],
    ['findings', 'findings', false, (n) => (n.findings ? `${n.findings.length}${n.bad ? ', unhealthy' : ''}` : ''), (n) => (n.bad ? -1000 : 0) - (n.findings?.length || 0)],
    ['beat', 'last heartbeat', true, (n) => (n.beatAt ? ago(n.beatAt) : 'none yet'), (n) => n.beatAt || 0],
    ['doing', 'activity', false, doing, doing],
    ['load', 'load', true, (n) => `${number(n.load || 0)}${n.cpus ? ` of ${n.cpus}` : ''}`, (n) => -(n.load || 0)],
    ['traffic', 'traffic, GB/s', true, traffic, (n) => -((n.receive_GBps || 0) + (n.send_GBps || 0))],
    ['waiting', 'queued messages', true, (n) => String(n.waiting || 0), (n) => -(n.waiting || 0)],
    ['has', 'devices', false, (n) => has(topo.byName.get(n.name)), (n) => has(topo.byName.get(n.name))],
  ];
}

// badCard names the nodes to keep jobs off, and how.
export function badCard(fleet) {
  const bad = fleet.bad();
  if (!bad.length) return null;
  const why = [...new Set(fleet.worst().filter((f) => f.nodes.some((n) => bad.includes(n))).map((f) => f.kind))].join(', ');
  return h('div', { class: 'card' }, h('h2', {}, `Keep jobs off ${plural(bad.length, 'node')}`),
    h('p', {}, h('code', {}, fold(bad)), ' ', copier('Copy as hostlist', fold(bad))),
    line(drain(bad, why), 'Slurm: drain these nodes'),
    line(busbar('nodes --bad'), 'print this list'),
    h('p', { class: 'quiet' }, 'Listed are nodes with an error of their own that is at least 90% certain. Slow pairs, leaves and rails drain no node.'));
}

// nodes shows who is there.
export function nodes({ state, api, fleet, share }) {
  const body = h('tbody', {});
  const head = h('tr', {});
  const said = h('p', { class: 'quiet', 'aria-live': 'polite' });
  const pager = h('nav', { class: 'row pager', 'aria-label': 'pages of nodes' });
  const bad = h('div', {}), one = h('div', {}), empty = h('div', {});
  const rows = new Map();
  let topo = new Topology({}), cols = columns(state, topo), page = [];

  const set = (name) => (v) => state.set({ [name]: v, page: '' });
  const word = h('input', { type: 'search', value: state.get('q'), placeholder: 'part of a name, or gpu[1-8]', spellcheck: 'false', autocomplete: 'off', oninput: (e) => set('q')(e.target.value.trim()) });
  const controls = [h('fieldset', {}, h('legend', {}, 'Which nodes'), field('Name', word),
    field('State', choice([['', 'any'], ['up', 'up'], ['silent', 'unreachable'], ['left', 'left'], ['bad', 'unhealthy'], ['findings', 'with findings']], state.get('is'), set('is'))),
    h('div', {}, copier('Copy these as hostlist', () => fold(filtered().map((n) => n.name)))))];
  const card = h('div', { class: 'card' }, h('h2', {}, 'Nodes'), said,
    h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'nodes' }, h('table', { class: 'nodes' }, h('thead', {}, head), body)), empty, pager);

  function filtered() {
    const q = state.get('q').toLowerCase(), is = state.get('is');
    const names = /[[,]/.test(q) ? new Set(hosts(q)) : null;
    return fleet.list().filter((n) => {
      if (q && !(names ? names.has(n.name.toLowerCase()) : n.name.toLowerCase().includes(q))) return false;
      if (is === 'bad') return n.bad;
      if (is === 'findings') return Boolean(n.findings);
      return !is || Fleet.state(n) === is;
    });
  }

  function sorted(list) {
    const key = state.get('sort').replace(/^-/, '');
    const by = cols.find((c) => c[0] === key)?.[4];
    if (by) list.sort((a, b) => { const x = by(a), y = by(b); return x < y ? -1 : x > y ? 1 : 0; });
    return state.get('sort').startsWith('-') ? list.reverse() : list;
  }

  function drawHead() {
    const now = state.get('sort', 'name');
    put(head, cols.map(([key, text, n]) => h('th', { scope: 'col', class: n && 'n', 'aria-sort': now === key ? 'ascending' : now === `-${key}` ? 'descending' : undefined },
      h('button', { type: 'button', class: 'sort', onclick: () => state.set({ sort: now === key ? `-${key}` : key === 'name' ? '' : key, page: '' }) }, text, h('span', { 'aria-hidden': 'true' }, now === key ? ' ▴' : now === `-${key}` ? ' ▾' : '')))));
  }

  // row keeps a node's row while it is on the page, so that what is chosen in it stays chosen.
  function row(n) {
    if (!rows.has(n.name)) {
      const cells = cols.map(([, , num]) => h('td', { class: num && 'n' }));
      put(cells[0], h('button', { type: 'button', class: 'link', onclick: () => state.set({ node: n.name }, { push: true }) }, n.name));
      rows.set(n.name, { root: h('tr', {}, cells), cells, was: [] });
    }
    const r = rows.get(n.name);
    cols.forEach(([key, , , text], k) => {
      const now = text(n);
      if (k === 0 || r.was[k] === now) return;
      r.was[k] = now;
      if (key === 'state') put(r.cells[k], tag(stateWords[now] || now, stateTags[now]));
      else if (key === 'findings' && now) put(r.cells[k], to(state, { show: 'findings', q: n.name }, now));
      else r.cells[k].textContent = now;
    });
    r.root.classList.toggle('best', state.get('node') === n.name);
    return r.root;
  }

  function draw() {
    const list = sorted(filtered());
    const pages = Math.max(1, Math.ceil(list.length / perPage));
    const at = Math.min(pages, Math.max(1, state.number('page', 1)));
    page = list.slice((at - 1) * perPage, at * perPage);
    const keep = new Set(page.map((n) => n.name));
    for (const name of rows.keys()) if (!keep.has(name)) rows.delete(name);
    const want = page.map(row);
    if (want.length !== body.children.length || want.some((r, k) => body.children[k] !== r)) body.replaceChildren(...want);
    const text = list.length === fleet.nodes.size ? plural(list.length, 'node') : `${list.length} of ${plural(fleet.nodes.size, 'node')}`;
    if (said.textContent !== text) said.textContent = text;
    put(empty, !list.length && h('p', { class: 'empty' }, fleet.nodes.size ? 'No node matches.' : ['No node has joined. ', to(state, {}, 'How nodes join'), '.']));
    if (pager.dataset.now !== `${at}/${pages}`) {
      pager.dataset.now = `${at}/${pages}`;
      const turn = (name, n) => h('button', { type: 'button', disabled: n < 1 || n > pages, onclick: () => state.set({ page: n > 1 ? n : '' }) }, name);
      put(pager, pages > 1 && [turn('Before', at - 1), h('span', {}, `${(at - 1) * perPage + 1} – ${Math.min(list.length, at * perPage)} of ${list.length}`), turn('Next', at + 1)]);
    }
    const now = JSON.stringify(fleet.bad());
    if (bad.dataset.now !== now) { bad.dataset.now = now; put(bad, badCard(fleet)); }
  }

  async function detail(focus) {
    const name = state.get('node');
    if (!name) { put(one); return; }
    try {
      put(one, await nodeCard({ state, api, fleet, topo }, name));
      if (focus) one.querySelector('h2')?.focus();
    } catch (error) { put(one, failure(error)); }
  }

  const stopped = fleet.watchParts({ nodes: draw });
  const timer = setInterval(draw, 1000); // how long ago beats were
  return {
    controls,
    cards: [one, bad, card],
    async start() {
      topo = await fleet.map();
      cols = columns(state, topo);
      drawHead();
      draw();
      share.of(shown(fleet.answers.nodes, 'nodes --json'));
      await detail();
    },
    changed(c) {
      if ('sort' in c) drawHead();
      draw();
      if ('node' in c) detail(true);
    },
    end() { clearInterval(timer); stopped(); },
  };
}
