import { h, put, table, failure } from './dom.js';
import { Latest, address } from './api.js';
import { choice, field } from './pick.js';
import { Heat } from './fleetheat.js';
import { groupsOf, Table, scaleOf } from './fleetscale.js';
import { history as historyOf } from './fleetlink.js';
import { ago, shown, to, wayName } from './fleetwords.js';
import { count, percent, plural, rate } from './units.js';

export const figures = [['rate', 'rate, one direction'], ['both', 'rate, both directions at once'], ['latency', 'latency'], ['peers', 'against its peers']];
const fieldOf = { rate: 'rate_GBps', both: 'both_GBps', latency: 'latency_s', peers: 'rate_GBps' };

// pairs shows every pair as a picture, the worst as a table, and the history of the one that is chosen.
export function pairs({ state, api, fleet, share }) {
  const card = h('div', { class: 'card' });
  const worst = h('div', {});
  const said = h('div', {});
  const history = historyOf({ state, api, fleet });
  const link = (from, to) => ({ show: 'pairs', ...(state.get('figure') && { figure: state.get('figure') }), ...(state.get('by') && { by: state.get('by') }), from, to });
  const open = (from, to) => state.set({ from, to, rail: '' }, { push: true });
  const heat = new Heat({ label: 'Every pair of nodes: rows send, columns receive', onopen: open });
  const holder = h('div', { class: 'heatbox' }, heat.box, h('div', { class: 'heatside' }, heat.said, heat.buttons, heat.legend, worst));
  const names = h('datalist', { id: 'fleet-names' });
  const end = (which) => h('input', { list: names.id, value: state.get(which), spellcheck: 'false', autocomplete: 'off', onchange: (e) => state.set({ [which]: e.target.value.trim() }) });
  const ends = { from: end('from'), to: end('to') };
  const heading = h('h2', {}, 'Every pair'), ways = h('div', {}); // ways: by what pairs were measured, where that is not TCP alone
  put(card, heading, said, holder);
  const controls = [h('fieldset', {}, h('legend', {}, 'What is coloured'), field('Figure', choice(figures, state.get('figure', 'rate'), (v) => state.set({ figure: v }))), ways),
    h('fieldset', {}, h('legend', {}, 'History of a link'), names, h('div', { class: 'row' }, field('From', ends.from), field('To', ends.to)),
      h('small', { class: 'quiet' }, 'or choose a cell of the picture')),
    h('p', { class: 'quiet keys' }, 'In the picture: ', h('kbd', {}, '← ↑ → ↓'), ' walk, ', h('kbd', {}, 'Enter'), ' opens a link, ', h('kbd', {}, 'n'), ' goes to the next worst, ', h('kbd', {}, '+ − 0'), ' zoom.')];

  let base = null, answer = null;
  function draw() {
    const started = performance.now();
    const figure = state.get('figure', 'rate');
    const shownTable = figure === 'peers' ? base.relative() : base;
    const scale = scaleOf(figure, shownTable.values);
    heat.show(shownTable, scale, (i, j) => describe(shownTable, scale, i, j));
    holder.dataset.drawn = String(Math.round(performance.now() - started));
    drawWorst(shownTable, scale);
  }

  function describe(t, scale, i, j) {
    if (i === j) return `${t.names[i]}: a node with itself is not measured`;
    const v = t.at(i, j), back = t.at(j, i);
    const place = (k) => (t.groups.length > 1 ? ` (${t.groups[t.group[k]].name})` : '');
    const name = `${t.names[i]}${place(i)} → ${t.names[j]}${place(j)}`;
    if (Number.isNaN(v)) return `${name}: not measured`;
    const more = t.figure === 'peers' ? `, ${rate(base.at(i, j))}` : t.figure === 'latency' ? '' : `, ${percent(v / base.peers()(i, j))} of its peers`;
    return `${name}: ${scale.show(v)}${more}${Number.isNaN(back) ? '' : `; back ${scale.show(back)}`}`;
  }

  function drawWorst(t, scale) {
    const list = t.worst(scale, 10);
    if (!list.length) { put(worst); return; }
    put(worst, table('The worst', [{ text: 'from → to' }, { text: scale.unit, n: true }],
      list.map((x) => [to(state, link(t.names[x.i], t.names[x.j]), `${t.names[x.i]} → ${t.names[x.j]}`), scale.short(x.v)])));
  }

  const refresh = new Latest(async () => {
    holder.classList.add('busy');
    try {
      const figure = state.get('figure', 'rate');
      const [a, topo] = await Promise.all([api.ask('fleet/pairs', { figure: figure === 'peers' ? 'rate' : figure, ...(state.get('by') && { by: state.get('by') }) }), fleet.map()]);
      answer = a;
      heading.textContent = `Every pair${a.doc.ways ? `, by ${wayName(a.doc.by)}` : ''}`;
      put(ways, a.doc.ways && field('Measured by', choice(a.doc.ways.map((w) => [w, wayName(w)]), a.doc.by || '', (v) => state.set({ by: v, rail: '' }))));
      base = new Table(a.doc, groupsOf(topo));
      const n = a.doc.names.length;
      const known = base.known, all = n * (n - 1);
      put(names, n <= 2000 && a.doc.names.map((x) => h('option', { value: x })));
      put(said, h('p', { class: 'quiet' }, n < 2 ? ['Pairs are measured between two nodes or more. ', to(state, {}, 'How nodes join'), '.'] : known === 0 ? ['Nothing is measured yet. ', to(state, { show: 'orders' }, 'Order a measurement'), '.']
        : `${plural(n, 'node')}, ${count(known)} of ${count(all)} directions measured; the newest ${ago(a.doc.newest)}, the oldest ${ago(a.doc.oldest)}. Rows send, columns receive.${base.groups.length > 1 ? ` ${base.groups.length} groups of nodes.` : ''}`));
      holder.hidden = known === 0;
      if (known) draw(); else put(worst);
      tellShare();
    } catch (error) { put(said, failure(error)); }
    holder.classList.remove('busy');
  });

  function tellShare() {
    const from = state.get('from'), other = state.get('to');
    if (from && other) share.of(shown({ url: address('fleet/link', { from, to: other, ...(state.get('by') && { by: state.get('by') }), ...(state.get('rail') && { rail: state.get('rail') }) }) }));
    else if (answer) share.of(shown(answer));
  }

  // New figures are put into the table as they come, and drawn a few times a second at most.
  let later = 0;
  const stopped = fleet.watchParts({ missed: () => { refresh.go(); history.refresh(); }, pairs: (all) => {
    const list = all.filter((p) => p.by === state.get('by', ''));
    if (all.length && !list.length) return;
    const key = fieldOf[state.get('figure', 'rate')];
    let any = false;
    if (base) for (const p of list) any = (!p.rail && base.set(p.from, p.to, p[key])) || any; // the server knows the slowest rail
    const mine = list.some((p) => [p.from, p.to].includes(state.get('from')) && [p.from, p.to].includes(state.get('to')));
    if (mine) history.refresh();
    if (!base || (!any && list.length)) { later = later || setTimeout(() => { later = 0; refresh.go(); }, 2000); return; }
    if (!later) later = setTimeout(() => { later = 0; holder.hidden = false; draw(); }, base.n > 300 ? 1500 : 400);
  } });

  return {
    controls,
    cards: [history.root, card],
    async start() { await Promise.all([refresh.go(), history.refresh()]); },
    changed(c) {
      if ('from' in c || 'to' in c || 'by' in c || 'rail' in c) {
        ends.from.value = state.get('from');
        ends.to.value = state.get('to');
        history.refresh(true);
        tellShare();
      }
      if ('figure' in c || 'by' in c) refresh.go();
    },
    end() { clearTimeout(later); stopped(); heat.end(); history.end(); },
  };
}
