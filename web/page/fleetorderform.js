import { h, put, failure } from './dom.js';
import { choice, field } from './pick.js';
import { fold } from './fleethosts.js';
import { busbar, copier } from './fleetwords.js';
import { hosts } from './units.js';

const ops = ['all_reduce', 'reduce_scatter', 'all_gather', 'broadcast', 'reduce', 'all_to_all'].map((x) => [x, x.replaceAll('_', ' ')]);

// size reads 4M, 64K, 1MiB or a number of bytes; NaN for anything else.
export function size(text) {
  const m = /^(\d+(?:\.\d+)?)\s*([kmg]?)(i?b)?$/i.exec(text.trim());
  return m ? Math.round(Number(m[1]) * 1024 ** ['', 'k', 'm', 'g'].indexOf(m[2].toLowerCase())) : NaN;
}

// span reads 10m, 1h, 1d or 30s as seconds; 0 for nothing or once, NaN for anything else.
export function span(text) {
  const m = /^(\d+(?:\.\d+)?)\s*(s|m|min|h|d)$/i.exec(text.trim());
  if (m) return Number(m[1]) * { s: 1, m: 60, min: 60, h: 3600, d: 86400 }[m[2].toLowerCase()];
  return ['', 'once'].includes(text.trim().toLowerCase()) ? 0 : NaN;
}

// orderForm asks for a measurement. Who may only read sees why there is nothing to press.
export function orderForm({ state, api, fleet, given }) {
  const root = h('div', {});
  const form = { root, may: false };
  const said = h('div', { 'aria-live': 'polite' });
  const text = (value, attrs) => h('input', { type: 'text', value, spellcheck: 'false', autocomplete: 'off', ...attrs });
  const nodes = text(state.get('nodes'), { placeholder: 'all that are up' });
  const large = text('4M'), op = choice(ops, 'all_reduce', () => {}), sizes = text('1M, 16M');
  const cap = text('', { inputmode: 'decimal', placeholder: 'no cap' }), time = text('20', { inputmode: 'numeric' }), rounds = text('', { inputmode: 'numeric', placeholder: 'all' });
  const every = text(state.get('every'), { placeholder: 'once; or 10m, 1h, 1d' });
  const ofPairs = h('div', { class: 'cards' }, field('Large message', large), field('Rounds of a sweep', rounds, 'The next sweep goes on where the last one ended.'));
  const ofColl = h('div', { class: 'cards' }, field('Collective', op), field('Sizes', sizes));
  const measure = choice([['pairs', 'every pair, in rounds'], ['collective', 'a collective over all of them']], state.get('measure', 'pairs'), () => turn());
  function turn() {
    ofPairs.hidden = measure.value !== 'pairs';
    ofColl.hidden = !ofPairs.hidden;
  }

  // order is what the form says, as the server takes it.
  function order() {
    const bad = (what) => { throw new Error(what); };
    const number = (input, name, least) => {
      if (!input.value.trim()) return 0;
      const x = Number(input.value);
      return Number.isFinite(x) && x >= least ? x : bad(`${name}: ${input.value} is not a number of ${least} or more`);
    };
    const bytes = (one) => { const n = size(one); return Number.isNaN(n) ? bad(`size ${one}: expected something like 4M or 64K`) : n; };
    const o = { what: { measure: measure.value }, caps: { time_ns: Math.round(1e9 * number(time, 'time', 1)) } };
    if (nodes.value.trim()) o.nodes = hosts(nodes.value.replaceAll(' ', ''));
    for (const n of o.nodes || []) if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(n)) bad(`nodes: ${n} is no name of a node`);
    if (o.nodes && new Set(o.nodes).size < 2) bad('nodes: a measurement needs two at least');
    const most = number(cap, 'rate', 0);
    if (most) o.caps.rate_GBps = most;
    if (measure.value === 'pairs') {
      o.what.large_bytes = bytes(large.value);
      const r = number(rounds, 'rounds', 1);
      if (r) o.rounds = Math.round(r);
    } else {
      o.what.op = op.value;
      o.what.sizes_bytes = sizes.value.split(',').map(bytes);
    }
    const again = span(every.value);
    if (Number.isNaN(again) || (again && again < 10)) bad(`every ${every.value}: expected once, or something like 10m, 1h or 1d, 10s at least`);
    if (again) o.every_ns = Math.round(again * 1e9);
    return o;
  }

  const start = h('button', { type: 'submit', class: 'main' }, 'Measure');
  async function submit(e) {
    e.preventDefault();
    put(said);
    start.disabled = true;
    try {
      const answer = await api.request('/api/fleet/orders', { method: 'POST', headers: { 'Content-Type': 'application/json', Accept: 'application/json' }, body: JSON.stringify(order()) });
      given(answer.doc);
    } catch (error) { put(said, failure(error)); }
    start.disabled = false;
  }
  function command() {
    try {
      const o = order(), w = o.what;
      return busbar([`order ${w.measure}`, o.nodes && `--nodes '${fold(o.nodes)}'`, w.measure === 'pairs' ? `--size ${large.value.replaceAll(' ', '')}` : `--op ${w.op} --size ${sizes.value.replaceAll(' ', '')}`,
        o.rounds && `--rounds ${o.rounds}`, o.caps.rate_GBps && `--max-rate ${o.caps.rate_GBps}GB/s`, o.caps.time_ns && `--max-time ${o.caps.time_ns / 1e9}s`, o.every_ns && `--every ${o.every_ns / 1e9}s`].filter(Boolean).join(' '));
    } catch (error) { return `# ${error.message}`; }
  }

  form.start = async () => {
    const me = api.me || (await api.request('/api/me')).doc;
    form.may = me.role === 'order';
    turn();
    const up = fleet.list().filter((n) => n.state === 'up').map((n) => n.name);
    put(root, h('form', { class: 'cards', onsubmit: submit, 'aria-label': 'order a measurement' },
      !form.may && h('p', { class: 'note' }, `Your token (${me.name}) may read, not order. Who runs the server gives one that may: `, h('code', {}, 'busbar serve token add NAME --role order')),
      h('fieldset', { disabled: !form.may }, h('legend', {}, 'Order a measurement'),
        field('Measure', measure), field('Nodes', nodes, up.length ? `A hostlist; up are ${fold(up).slice(0, 60)}` : 'A hostlist; no node is up.'), ofPairs, ofColl,
        h('div', { class: 'row' }, field('At most, GB/s a node', cap), field('At most, s a part', time)),
        field('Every', every), h('p', { class: 'quiet' }, 'A node that carries a job’s traffic refuses, and is asked again later.'),
        form.may && h('div', { class: 'row' }, start, copier('Copy as command', command)), said)));
  };
  return form;
}
