import { h, put, say, table, failure } from './dom.js';
import { orderForm } from './fleetorderform.js';
import { fold } from './fleethosts.js';
import { address } from './api.js';
import { copier } from './share.js';
import { ago, nanos, shown, span, tag, to, when } from './fleetwords.js';
import { bytes, seconds, plural, rate } from './units.js';

const tags = { waiting: 'note', running: 'good', done: 'good', cancelled: '', failed: 'error' };
export function final(o) { return ['done', 'cancelled', 'failed'].includes(o.state); }

// what is an order in a few words.
export function what(o) {
  const who = o.nodes ? fold(o.nodes) : 'all nodes';
  const kind = o.what.measure === 'pairs' ? 'pairs' : `${(o.what.op || 'all_reduce').replaceAll('_', ' ')} ${o.what.algo || ''}`.trim();
  return `${kind} of ${who.length > 60 ? `${who.slice(0, 57)}…` : who}`;
}

// progress is how far a sweep is, in words and as a part of 1.
export function progress(o, doing) {
  const done = o.parts_good + o.parts_failed + (o.parts_left_out || 0);
  const failed = (o.parts_failed ? `, ${o.parts_failed} failed` : '') + (o.parts_left_out ? `, ${o.parts_left_out} left out` : '');
  if (o.state === 'waiting' && o.next) return { words: `${o.sweep ? `sweep ${o.sweep} is over (${o.parts_good} measured${failed}); ` : ''}the next begins ${new Date(o.next) > Date.now() ? `in ${span((new Date(o.next) - Date.now()) / 1000)}` : 'now'}` };
  if (o.state !== 'running') return { words: `${plural(o.parts_good, o.what.measure === 'pairs' ? 'pair' : 'run')} measured${failed}` };
  if (o.what.measure === 'pairs') return { of: o.parts || 1, at: done, words: `${done} of ${plural(o.parts || 0, 'pair')}${failed}` };
  const at = [...doing.values()].filter((d) => d.order === o.id && d.of).map((d) => [d.done, d.of]);
  const [k, n] = at.length ? at.reduce((a, b) => (a[0] / a[1] < b[0] / b[1] ? a : b)) : [0, 1];
  return { of: n, at: k, words: at.length ? `${k} of ${n} sizes${failed}` : 'begins' };
}

// orders starts measurements, shows those that run, and keeps those that ended.
export function orders({ state, api, fleet, share }) {
  const running = h('div', { class: 'cards' }), past = h('div', {}), one = h('div', {}), said = h('div', {});
  const live = new Map();
  const form = orderForm({ state, api, fleet, given: (o) => { fleet.orders.set(o.id, o); draw(); say(`ordered: ${what(o)}`); state.set({ order: o.id }, { push: true }); } });

  async function cancel(o, button) {
    button.disabled = true;
    try {
      const answer = await api.request(address(`fleet/orders/${encodeURIComponent(o.id)}`), { method: 'DELETE' });
      fleet.orders.set(o.id, answer.doc);
      put(said);
      say('cancelled');
      draw();
    } catch (error) {
      button.disabled = false;
      put(said, failure(error));
    }
  }

  // liveCard keeps its elements while the order runs; only their words change.
  function liveCard(o) {
    if (!live.has(o.id)) {
      const bar = h('progress', { 'aria-label': `progress of ${what(o)}` });
      const words = h('p', { class: 'progress' });
      const state1 = h('span', {});
      const stop = h('button', { type: 'button', onclick: () => cancel(fleet.orders.get(o.id), stop) }, 'Cancel');
      const root = h('div', { class: 'card' }, h('div', { class: 'headline' }, h('h2', {}, what(o), ' ', state1), h('div', { class: 'row' }, h('button', { type: 'button', class: 'details', onclick: () => state.set({ order: o.id }, { push: true }) }, 'Details'), form.may && stop)), bar, words,
        h('p', { class: 'quiet' }, describe(o)));
      live.set(o.id, { root, bar, words, state: state1, step: -1 });
    }
    const c = live.get(o.id);
    const p = progress(o, fleet.doing);
    put(c.state, tag(o.state, tags[o.state]));
    c.bar.hidden = p.of === undefined;
    c.root.querySelector('.details').hidden = o.state === 'running' || !o.sweep;
    if (p.of !== undefined) { c.bar.max = p.of; c.bar.value = p.at; }
    if (c.words.textContent !== p.words) c.words.textContent = p.words;
    const step = p.of ? Math.floor(10 * p.at / p.of) : -1;
    if (step !== c.step && o.state === 'running') { c.step = step; say(`${what(o)}: ${p.words}`); }
    return c.root;
  }

  function describe(o) {
    const w = o.what, c = o.caps || {};
    return [w.measure === 'pairs' ? `messages of ${bytes(w.small_bytes)} and ${bytes(w.large_bytes)}` : `sizes ${(w.sizes_bytes || []).map(bytes).join(', ')}`, `${w.iters} times`,
      c.rate_GBps ? `at most ${rate(c.rate_GBps)} per node` : 'no rate limit', `at most ${c.time_ns ? nanos(c.time_ns) : '20 s'} per part`, c.always ? 'of busy nodes too' : c.busy_GBps ? `of nodes with less traffic than ${rate(c.busy_GBps)}` : '', o.rounds ? plural(o.rounds, 'round') : '', o.at_once ? `${plural(o.at_once, 'pair')} at once` : '', o.every_ns ? `every ${nanos(o.every_ns)}` : 'once', o.from ? `from ${when(o.from)}` : '', o.job && `before job ${o.job}`, `by ${o.by}, ${ago(o.given)}`].filter(Boolean).join(' · ');
  }

  function draw() {
    const all = [...fleet.orders.values()];
    const open = all.filter((o) => !final(o)).reverse();
    for (const id of live.keys()) {
      if (open.some((o) => o.id === id)) continue;
      live.delete(id);
      const o = fleet.orders.get(id);
      if (o) say(`${what(o)}: ${o.state}, ${progress(o, fleet.doing).words}`);
    }
    const want = open.slice(0, 50).map(liveCard);
    if (!want.length) { if (!running.querySelector(':scope > .empty')) put(running, h('p', { class: 'card empty small' }, 'No order is waiting or running. Choose in the form what to measure: its progress is shown here, its result among the pairs.')); } else if (want.length !== running.children.length || want.some((r, k) => running.children[k] !== r)) running.replaceChildren(...want);
    const over = all.filter(final).reverse();
    const now = over.map((o) => o.id + o.state).join();
    if (past.dataset.now === now) return;
    past.dataset.now = now;
    put(past, over.length > 0 && h('div', { class: 'card past' }, h('h2', {}, 'Past orders'), table('', [{ text: 'what' }, { text: 'outcome' }, { text: 'measured' }, { text: 'by' }, { text: 'when' }, { text: 'details' }],
      over.slice(0, 200).map((o) => [what(o), tag(o.state, tags[o.state]), [progress(o, fleet.doing).words, o.why ? `; ${o.why}` : '', o.out?.length ? `; without ${fold(o.out.map((x) => x.node))}` : ''].join(''), o.by, when(o.given),
        to(state, { show: 'orders', order: o.id }, 'details', h('span', { class: 'unseen' }, ` of ${what(o)}`))]))));
  }

  async function detail(focus) {
    const id = state.get('order');
    if (!id) { put(one); share.of(shown(fleet.answers.orders, 'order list --json')); return; }
    try {
      const answer = await api.ask(`fleet/orders/${encodeURIComponent(id)}`);
      const o = answer.doc;
      share.of(shown(answer, `order watch ${o.id}`));
      if (o.state === 'running') { put(one); return; } // its card says all there is
      put(one, h('section', { class: 'card', 'aria-label': 'one order' },
        h('div', { class: 'headline' }, h('h2', { tabindex: '-1' }, what(o), ' ', tag(o.state, tags[o.state])), h('button', { type: 'button', onclick: () => state.set({ order: '' }, { push: true }) }, 'Close')),
        h('p', {}, progress(o, fleet.doing).words, o.why ? `; ${o.why}` : ''), h('p', { class: 'quiet' }, `order ${o.id}: ${describe(o)}`),
        o.out?.length > 0 && table('Left out', [{ text: 'node' }, { text: 'why' }], o.out.map((x) => [x.node, x.why])),
        o.reasons?.length > 0 && table('Not measured', [{ text: 'parts', n: true }, { text: 'nodes' }, { text: 'why' }], o.reasons.map((x) => [String(x.parts), fold(x.nodes || []), `${x.left_out ? 'left out' : 'failed'}: ${x.why}`])),
        verdict(o), results(o),
        o.what.measure === 'pairs' && o.parts_good > 0 && h('p', {}, to(state, { show: 'pairs' }, 'heat map of the pairs'))));
      if (focus) one.querySelector('h2').focus();
    } catch (error) { put(one, failure(error)); }
  }

  function verdict(o) {
    const v = o.verdict;
    if (!v || o.state === 'running') return null; // the rest may say otherwise
    return [h('h3', {}, `Healthy: ${plural(v.good.length, 'node')}`), v.unmeasured?.length > 0 && h('p', {}, 'Not measured, state unknown: ', h('code', {}, fold(v.unmeasured))), v.good.length > 0 && h('p', {}, h('code', {}, fold(v.good)), ' ', copier('Copy as hostlist', fold(v.good))),
      v.bad.length > 0 && table('Not good', [{ text: 'node' }, { text: 'why' }], v.bad.map((x) => [x.node, x.why])), (v.notes || []).map((x) => h('p', { class: 'note' }, x))];
  }

  function results(o) {
    const mine = fleet.kept.filter((k) => k.order === o.id);
    if (!mine.length) return null;
    return records(`Measured ${ago(mine.at(-1).at)}`, mine.at(-1).records);
  }

  let asked = 0, drawn = 0;
  const soon = () => { if (!drawn) drawn = setTimeout(() => { drawn = 0; draw(); }, 200); };
  const again = () => { if (!asked) asked = setTimeout(() => { asked = 0; detail(); }, 500); };
  const stopped = fleet.watchParts({ orders: (id) => { soon(); if (id === true || id === state.get('order')) again(); }, doing: soon, kept: again });
  const timer = setInterval(draw, 5000);
  return {
    controls: [form.root],
    cards: [said, one, running, past],
    async start() { await form.start(); draw(); await detail(); },
    changed(c) { if ('order' in c) detail(true); },
    end() { clearInterval(timer); clearTimeout(asked); clearTimeout(drawn); stopped(); },
  };
}

// records is a collective as a table.
function records(caption, list) {
  return table(caption, [{ text: 'collective' }, { text: 'size', n: true }, { text: 'time', n: true }, { text: 'bandwidth', n: true }, { text: 'ranks', n: true }, { text: 'algorithm' }, { text: 'transport' }],
    list.map((r) => {
      const t = r.time_s.median || r.time_s.mean;
      const speed = r.size_bytes / t / 1e9; // GB/s
      return [r.op.replaceAll('_', ' ') + (r.in_place ? ', in place' : ''), bytes(r.size_bytes), seconds(t), rate(speed), String(r.ranks), (r.algo || '').replaceAll('_', ' '), r.transport];
    }));
}
