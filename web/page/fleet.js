import { h, put, say, strange } from './dom.js';
import { Share } from './share.js';
import { Fleet } from './fleetdata.js';
import { about, over } from './fleetover.js';
import { pairs } from './fleetpairs.js';
import { nodes } from './fleetnodes.js';
import { findings } from './fleetfindings.js';
import { orders } from './fleetorders.js';
import { move } from './fleetwords.js';

// Parts of the fleet, each a function of {state, api, fleet, share} that gives {controls, cards, start, changed, end}.
const parts = [['', 'Overview', over], ['pairs', 'Pairs', pairs], ['nodes', 'Nodes', nodes], ['findings', 'Findings', findings], ['orders', 'Orders', orders]];

const known = ['show', 'by', 'q', 'from', 'to', 'rail', 'figure', 'least', 'sort', 'order', 'node', 'is', 'page', 'nodes', 'measure', 'every', 'id'];

// The measurements of a fleet: who is there, how fast every pair is, what is wrong, and what is being measured.
export async function show(root, state, api) {
  const share = new Share(state);
  const said = h('p', { 'aria-live': 'polite' });
  const tabs = h('nav', { class: 'parts', 'aria-label': 'Parts of the fleet' });
  const controls = h('section', { class: 'controls', 'aria-label': 'what is shown' });
  const cards = h('section', { class: 'cards', 'aria-label': 'answer' });
  const lost = h('div', { class: 'wide' });
  const view = h('div', { class: 'view fleet' }, h('header', {}, h('div', {}, h('h1', {}, 'Fleet'), said), share.root), strange(state, known), lost, tabs, controls, cards);
  put(root, view);
  if (!(await api.me).fleet) {
    put(cards, h('div', { class: 'card' }, h('p', { class: 'empty' }, 'This server runs without a fleet. Nodes are shown when it is started without --no-fleet, on Linux or macOS.')));
    return null;
  }
  const fleet = new Fleet(api);
  await fleet.start((text) => {
    if (said.textContent !== text) said.textContent = text;
    return view.isConnected;
  });
  let now = null, name = null;

  async function turn() {
    name = state.get('show');
    const part = parts.find(([n]) => n === name) || parts[0];
    put(lost, part[0] !== name && h('p', { class: 'note' }, `The fleet has no part “${name}”; this is its overview.`));
    lost.hidden = part[0] === name;
    now?.end();
    now = part[2]({ state, api, fleet, share });
    const mine = now;
    put(tabs, parts.map(([n, title]) => h('a', { href: n ? `/fleet?show=${n}` : '/fleet', 'aria-current': part[0] === n ? 'true' : undefined, onclick: (e) => go(e, n) }, title)));
    put(controls, mine.controls);
    controls.hidden = !mine.controls.length;
    put(cards, mine.cards);
    view.removeAttribute('data-shown');
    await mine.start();
    if (mine === now) view.dataset.shown = part[0] || 'overview';
  }

  function go(e, n) {
    if (e.button || e.metaKey || e.ctrlKey || e.shiftKey) return;
    e.preventDefault();
    e.stopPropagation();
    move(state, n ? { show: n } : {});
    tabs.querySelector('[aria-current]')?.focus();
    say(`${parts.find(([x]) => x === n)[1]} is shown`);
  }

  const tell = () => { const text = about(fleet); if (said.textContent !== text) said.textContent = text; };
  fleet.watchParts({ nodes: tell, orders: tell, findings: tell });
  tell();
  state.watch((changes) => { if (state.get('show') !== name) turn(); else now.changed(changes); });
  await turn();
  return () => { now?.end(); fleet.end(); };
}
