import { h, put, failure, id } from './dom.js';
import { choice } from './pick.js';
import { fold } from './fleethosts.js';
import { copier } from './share.js';
import { command, first, names, size, span, speed, stamp } from './fleetordertext.js';

const ops = ['all_reduce', 'reduce_scatter', 'all_gather', 'broadcast', 'reduce', 'all_to_all'].map((x) => [x, x.replaceAll('_', ' ')]);
const most = 1024 ** 3; // bytes of a message, as the server has it

// An entry is a labelled control with room for what is wrong about it, and what it says; read throws what is wrong.
function entry(label, control, { help, read } = {}) {
  control.id = control.id || id('f');
  const wrong = h('small', { id: id('wrong'), class: 'wrong' });
  const hint = help && h('small', { id: id('hint'), class: 'quiet' }, help);
  control.setAttribute('aria-describedby', [hint?.id, wrong.id].filter(Boolean).join(' '));
  const e = { control, root: h('div', { class: 'field' }, h('label', { for: control.id }, label), control, wrong, hint) };
  e.say = (text) => {
    wrong.textContent = text;
    if (text) control.setAttribute('aria-invalid', 'true'); else control.removeAttribute('aria-invalid');
  };
  e.read = () => {
    try {
      const value = read ? read(control.value.trim()) : control.value;
      e.say('');
      return { value };
    } catch (error) {
      e.say(error.message);
      return { error };
    }
  };
  control.addEventListener('change', () => e.read());
  return e;
}

function bad(what) { throw new Error(what); }

function whole(least, greatest, otherwise) {
  return (text) => {
    if (!text && otherwise !== undefined) return otherwise;
    const n = Number(text);
    return text && Number.isInteger(n) && n >= least && n <= greatest ? n : bad(`expected a whole number from ${least} to ${greatest.toLocaleString('en')}`);
  };
}

function message(text) {
  const n = size(text);
  if (Number.isNaN(n)) bad('expected a size such as 4M, 64K or 1MB');
  return n >= 1 && n <= most ? n : bad('expected 1 byte to 1 GiB');
}

function bound(text) {
  if (!text) return 0;
  const x = speed(text);
  return Number.isNaN(x) ? bad('expected a rate with its unit, such as 5GB/s or 40Gb/s') : x;
}

function seconds(text) {
  const x = Number(text);
  return text && Number.isFinite(x) && x > 0 && x <= 600 ? x : bad('expected seconds, more than 0 and at most 600');
}

// entries are the fields of the form by name.
function entries(state, up) {
  const text = (value, attrs) => h('input', { type: 'text', value, spellcheck: 'false', autocomplete: 'off', ...attrs });
  const digits = { inputmode: 'numeric' };
  const own = {};
  own.nodes = entry('Nodes', text(state.get('nodes'), { placeholder: 'all that are up' }), {
    help: up.length ? `A hostlist; up are ${fold(up).slice(0, 60)}` : 'A hostlist; no node is up.',
    read: (x) => (x ? names(x) : own.check() ? bad('a check is of the nodes of a job: name them') : undefined),
  });
  own.large = entry('Large message, bytes', text('4M'), { help: 'Bandwidth is measured with it; up to 1G.', read: message });
  own.small = entry('Small message, bytes', text('8'), { help: 'Latency is measured with it.', read: message });
  own.rounds = entry('Rounds of a sweep', text('', { ...digits, placeholder: 'all' }), { help: 'The next sweep goes on where the last one ended.', read: whole(0, 1e6, 0) });
  own.once = entry('Pairs at once', text('', { ...digits, placeholder: 'all of a round' }), { read: whole(0, 1e6, 0) });
  own.op = entry('Collective', choice(ops, 'all_reduce', () => {}));
  own.algo = entry('Algorithm', text('', { placeholder: 'auto' }), { read: (x) => (/^[a-z_]{0,64}$/.test(x) ? x.replace(/^auto$/, '') : bad('expected a name such as ring or tree')) });
  own.sizes = entry('Sizes, bytes', text('1M, 16M'), { help: 'Separated by commas.', read: (x) => x.split(',').map((one) => message(one.trim())) });
  own.job = entry('Job', text('check'), { help: 'Shown in the list of orders.', read: (x) => (x.length <= 256 ? x || 'check' : bad('expected at most 256 characters')) });
  own.cap = entry('Rate limit', text('', { placeholder: 'any; or 5GB/s' }), { read: bound });
  own.time = entry('Seconds per part', text('20', { inputmode: 'decimal' }), { read: seconds });
  own.busy = entry('Refuse above', text('', { placeholder: '50MB/s' }), { help: 'Traffic at which a node refuses because a job runs there (any: never).', read: (x) => (x.toLowerCase() === 'any' ? 'any' : bound(x)) });
  own.every = entry('Repeat every', text(state.get('every'), { placeholder: 'once; or 10m, 1h, 1d' }), { read: again });
  own.from = entry('Start', text('', { placeholder: 'now; or 02:30' }), {
    help: `In this browser’s time zone (${Intl.DateTimeFormat().resolvedOptions().timeZone}), or a date: 2026-12-01T02:30:00Z.`,
    read: (x) => { const at = first(x, span(own.every.control.value) > 0); return at === null ? bad('expected 02:30 or 2026-12-01T02:30:00Z') : at && stamp(at); },
  });
  own.warm = entry('Warm-up runs', text('2', digits), { read: whole(0, 10000) });
  own.iters = entry('Measured runs', text('10', digits), { read: whole(1, 10000) });
  return own;
}

function again(text) {
  const x = span(text);
  return Number.isNaN(x) || (x && (x < 10 || x > 366 * 86400)) ? bad('expected once, or something like 10m, 1h or 1d, 10s at least') : x;
}

// asked are the fields that each kind of measurement has.
const asked = {
  pairs: ['nodes', 'large', 'small', 'rounds', 'once', 'cap', 'time', 'busy', 'every', 'from', 'warm', 'iters'],
  collective: ['nodes', 'op', 'algo', 'sizes', 'cap', 'time', 'busy', 'every', 'from', 'warm', 'iters'],
  check: ['nodes', 'job', 'large', 'rounds', 'cap'],
};

// made is the order that the values of the fields are, as the server takes it.
function made(kind, v) {
  const o = { what: { measure: kind === 'collective' ? kind : 'pairs' }, caps: {} };
  if (v.nodes) o.nodes = v.nodes;
  if (v.cap) o.caps.rate_GBps = v.cap;
  if (kind === 'check') {
    Object.assign(o.what, { by: 'best', small_bytes: 8, large_bytes: v.large, warm: 1, iters: 5 });
    o.caps.time_ns = 5e9;
    return Object.assign(o, { job: v.job, rounds: v.rounds || 3 });
  }
  o.caps.time_ns = Math.round(1e9 * v.time);
  if (v.busy === 'any') o.caps.always = true; else if (v.busy) o.caps.busy_GBps = v.busy;
  if (kind === 'pairs') {
    Object.assign(o.what, { small_bytes: v.small, large_bytes: v.large });
    if (v.rounds) o.rounds = v.rounds;
    if (v.once) o.at_once = v.once;
  } else {
    Object.assign(o.what, { op: v.op, sizes_bytes: v.sizes });
    if (v.algo) o.what.algo = v.algo;
  }
  Object.assign(o.what, { warm: v.warm, iters: v.iters });
  if (v.every) o.every_ns = Math.round(v.every * 1e9);
  if (v.from) o.from = v.from;
  return o;
}

// orderForm asks for a measurement. Who may only read sees why there is nothing to press.
export function orderForm({ state, api, fleet, given }) {
  const root = h('div', {});
  const form = { root, may: false };
  const said = h('div', { 'aria-live': 'polite' });
  let own = null;
  const measure = choice([['pairs', 'every pair, in rounds'], ['collective', 'a collective over all of them'], ['check', 'a brief check before a job']], state.get('measure', 'pairs'), () => turn());
  const line = h('pre', { class: 'command', tabindex: '0', 'aria-label': 'command line of this order' });

  function turn() {
    const kind = measure.value;
    for (const [name, e] of Object.entries(own)) if (e.root) e.root.hidden = !asked[kind].includes(name);
    own.large.control.value = own.large.touched ? own.large.control.value : kind === 'check' ? '1M' : '4M';
    own.rounds.control.placeholder = kind === 'check' ? '3' : 'all';
    for (const part of root.querySelectorAll('[data-part]')) part.hidden = ![...part.querySelectorAll('.field')].some((f) => !f.hidden);
    tell();
  }

  // order is what the form says. Every field says itself what is wrong about it; the first of them is given back.
  function order(quiet) {
    const v = {};
    let wrong = null;
    for (const name of asked[measure.value]) {
      const got = own[name].read();
      if (got.error) wrong = wrong || { name, error: got.error }; else v[name] = got.value;
    }
    if (!wrong && measure.value === 'pairs' && v.small > v.large) {
      wrong = { name: 'small', error: new Error('expected at most as much as the large message') };
      own.small.say(wrong.error.message);
    }
    if (wrong && !quiet) {
      const more = own[wrong.name].control.closest('details');
      if (more) more.open = true;
      own[wrong.name].control.focus();
    }
    return wrong ? null : made(measure.value, v);
  }

  function tell() {
    const o = order(true);
    line.textContent = o ? command(o) : 'a field above says what is wrong';
  }

  const start = h('button', { type: 'submit', class: 'main' }, 'Measure');
  async function submit(e) {
    e.preventDefault();
    put(said);
    const o = order();
    tell();
    if (!o) return;
    start.disabled = true;
    try {
      const answer = await api.request('/api/fleet/orders', { method: 'POST', headers: { 'Content-Type': 'application/json', Accept: 'application/json' }, body: JSON.stringify(o) });
      given(answer.doc);
    } catch (error) { put(said, failure(error)); }
    start.disabled = false;
  }

  form.start = async () => {
    const me = await api.me;
    form.may = me.role === 'order';
    own = entries(state, fleet.list().filter((n) => n.state === 'up').map((n) => n.name));
    own.check = () => measure.value === 'check';
    own.large.control.addEventListener('input', () => { own.large.touched = true; });
    const row = (...list) => h('div', { class: 'row', 'data-part': '' }, list.map((n) => own[n].root));
    put(root, h('form', { class: 'cards', novalidate: true, onsubmit: submit, onchange: tell, 'aria-label': 'order a measurement' },
      !form.may && h('p', { class: 'note' }, 'You may look, not measure. Who runs the server gives you a login that may: ', h('code', {}, 'busbar serve token add NAME --role order')),
      h('fieldset', { disabled: !form.may }, h('legend', {}, 'Order a measurement'),
        entry('Measure', measure).root, own.nodes.root, own.op.root, own.sizes.root, own.job.root, own.large.root, own.every.root, own.from.root, row('cap', 'time'),
        h('details', {}, h('summary', {}, 'More'), h('div', { class: 'cards more' }, own.busy.root, own.rounds.root, own.once.root, own.small.root, own.algo.root, row('warm', 'iters'))),
        h('p', { class: 'quiet' }, 'A node that carries a job’s traffic refuses, and is asked again later.'),
        form.may && h('div', { class: 'row' }, start, copier('Copy as command', () => { const o = order(); return o ? command(o) : ''; })),
        h('details', {}, h('summary', {}, 'The same as a command'), line), said)));
    turn();
  };
  return form;
}
