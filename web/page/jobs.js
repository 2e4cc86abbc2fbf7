import { h, put, say, failure, table, ranged, strange } from './dom.js';
import { Latest } from './api.js';
import { Share, line } from './share.js';
import { Curve } from './curve.js';
import { choice, field } from './pick.js';
import { term } from './terms.js';
import { shown, tag } from './fleetwords.js';
import { bytes, count, percent, plural, rate, seconds } from './units.js';

// How often the server is asked: it makes a new report every five seconds.
const every = 5000;

const verdicts = { 'as expected': 'good', waits: 'warn', 'slow network': 'error', 'slow network, waits': 'error' };

// history is what this page has seen of rows and ranks, at most an hour: the server keeps the last minute, Prometheus more.
const history = new Map();
const hour = 3600, mostRanks = 256;

// remember adds a report to the history.
function remember(doc) {
  const at = Date.now() / 1000;
  const add = (key, p) => history.set(key, [...(history.get(key) || []), { ...p, at }]);
  for (const j of doc.jobs) {
    for (const r of j.rows) add(keyOf(r), { busbw_GBps: r.busbw_GBps, transfer_s: r.transfer_s, wait_s: r.wait_s });
    for (const r of j.ranks.slice(0, mostRanks)) add(rankKey(r), { wait: r.wait });
  }
  for (const [key, list] of history) {
    const kept = list.filter((p) => at - p.at < hour);
    if (kept.length) history.set(key, kept); else history.delete(key);
  }
}

// keyOf is the name of a row in the history, rankKey that of a rank.
function keyOf(r) { return `${r.comm}/${r.op}/${r.class}`; }
function rankKey(r) { return `rank/${r.host}/${r.pid}`; }

function clock(v) { return new Date(1000 * v).toTimeString().slice(0, 8); }

// The collectives of running jobs: how fast, against what is expected of them, and who comes late.
export async function show(root, state, api) {
  const share = new Share(state);
  const said = h('p', { 'aria-live': 'polite' });
  const wrong = h('div', {}), which = h('div', {}), late = h('div', {}), rows = h('div', {}), one = h('div', {}), ranks = h('div', {});
  const x = { name: 'time', show: clock, time: true };
  const speed = new Curve({ label: 'bus bandwidth over time', log: false, height: 260, x, y: { name: 'bus bandwidth', show: (v) => rate(v) } });
  const spent = new Curve({ label: 'transfer and waiting over time', log: false, height: 220, x, y: { name: 'time per call', show: (v) => seconds(v) } });
  const waits = new Curve({ label: 'waiting of ranks over time', log: false, height: 220, x, y: { name: 'share of time waiting', show: (v) => percent(v) } });
  const set = (name) => (v) => state.set({ [name]: v });
  const word = h('input', { type: 'search', value: state.get('q'), placeholder: 'group or operation', spellcheck: 'false', autocomplete: 'off', oninput: (e) => set('q')(e.target.value.trim()) });
  const jobs = h('div', {});
  const curves = h('div', { class: 'card' }, h('h2', { id: 'of' }), one, h('h3', {}, term('Bus bandwidth', 'bus bandwidth')), speed.root, h('h3', {}, 'Transfer and waiting'), spent.root);
  const people = h('div', { class: 'card' }, h('h2', {}, 'Ranks'), ranks, waits.root);
  const view = h('div', { class: 'view fleet jobs' }, h('header', {}, h('div', {}, h('h1', {}, 'Jobs'), said), share.root), strange(state, ['job', 'q', 'row', 'rank']),
    h('section', { class: 'controls', 'aria-label': 'what is shown' }, h('fieldset', {}, h('legend', {}, 'Job'), jobs, field('Filter', word)), which),
    h('section', { class: 'cards', 'aria-label': 'answer' }, wrong, late, rows, curves, people));
  put(root, view);
  curves.hidden = people.hidden = true;
  let doc = null, timer = 0, over = false, drawn = '';

  const nameOf = (j, i) => j.name || `job ${i + 1}`;
  const current = () => doc.jobs[Math.max(0, doc.jobs.findIndex((j, i) => nameOf(j, i) === state.get('job')))];

  function nothing() {
    put(rows, h('div', { class: 'card' }, h('p', {}, 'No job reports its collectives yet. Jobs are shown when their processes are started with busbar’s profiler plugin for NCCL, on nodes whose agent runs:'), line('busbar exec --profile -- python train.py'),
      h('p', { class: 'quiet' }, 'Each process writes a file of fixed size in shared memory, which the agent reads.')));
    put(late);
    put(jobs);
    curves.hidden = people.hidden = true;
  }

  function draw() {
    if (!doc) return;
    said.textContent = doc.jobs.length ? `${plural(doc.jobs.length, 'job')} in the last minute` : 'No job in the last minute';
    if (!doc.jobs.length) { nothing(); view.dataset.shown = 'none'; return; }
    const j = current();
    const names = doc.jobs.map((x, i) => [nameOf(x, i), `${nameOf(x, i)}: ${plural(x.ranks.length, 'rank')}`]);
    if (drawn !== JSON.stringify(names)) { // a list that is open is not replaced
      drawn = JSON.stringify(names);
      put(jobs, field('Name', choice(names, nameOf(j, doc.jobs.indexOf(j)), (v) => state.set({ job: v, row: '', rank: '' }))));
    }
    put(which, h('p', { class: 'quiet' }, doc.predicted_on ? `Expected: by predict on ${doc.predicted_on}, with its error bar.` : doc.unpredicted ? `No expectation: ${doc.unpredicted}.` : ''));
    put(late, summary(j));
    const q = state.get('q').toLowerCase();
    const list = j.rows.filter((r) => !q || r.group.toLowerCase().includes(q) || r.op.includes(q));
    put(rows, rowsCard(j, list));
    const row = list.find((r) => keyOf(r) === state.get('row')) || list.find((r) => r.transfer_s) || list[0];
    curves.hidden = !row;
    if (row) drawRow(j, row);
    drawRanks(j);
    view.dataset.shown = 'job';
  }

  // summary is who is late and what was found.
  function summary(j) {
    const found = doc.findings.filter((f) => !f.nodes?.length || f.nodes.some((n) => j.ranks.some((r) => r.host === n)));
    const l = j.late;
    return h('div', { class: 'card' }, h('dl', { class: 'figures' },
      figure('ranks observed', `${count(j.ranks.length)} of ${count(j.world)}`), figure('waiting, median rank', percent(j.waiting)), figure('observed for', seconds(j.seconds)),
      figure('last rank', l ? `${l.ranks.length === 1 ? `rank ${l.ranks[0]}` : plural(l.ranks.length, 'rank')} on ${l.host}` : 'none')),
    found.length ? h('ul', { class: 'findings' }, found.map((f) => h('li', { class: `finding ${f.severity}` }, h('p', {}, tag(f.severity, f.severity), ' ', h('strong', {}, f.text)),
      f.evidence?.length > 0 && h('ul', {}, f.evidence.map((e) => h('li', {}, typeof e === 'string' ? e : e.text))), f.fix && h('p', {}, h('strong', {}, 'Fix: '), f.fix))))
      : h('p', { class: 'quiet' }, 'No problems found.'));
  }

  function figure(name, value) { return h('div', {}, h('dt', {}, name), h('dd', {}, value)); }

  function rowsCard(j, list) {
    const heads = [{ text: 'communicator' }, { text: 'verdict' }, { text: 'operation' }, { text: 'size', n: true }, { text: 'transfer', n: true }, { text: 'expected', n: true }, { text: 'wait', n: true }, { text: term('busbw'), n: true }, { text: 'last rank' }, { text: 'calls', n: true }, { text: 'algorithm' }];
    const open = keyOf(list.find((r) => keyOf(r) === state.get('row')) || list.find((r) => r.transfer_s) || list[0] || { comm: '' });
    return h('div', { class: 'card' }, h('h2', {}, 'Collectives'), list.length ? table('', heads, list.slice(0, 200).map((r) => [
      h('button', { type: 'button', class: 'link', 'aria-pressed': String(keyOf(r) === open), onclick: () => { state.set({ row: keyOf(r) }, { push: true }); say(`${r.op} on ${r.group} is shown`); } }, r.group),
      r.verdict ? tag(r.verdict, verdicts[r.verdict]) : '–', r.op, bytes(r.bytes), r.transfer_s ? seconds(r.transfer_s) : '–', r.expected ? ranged(seconds(r.expected.time_s), seconds(r.expected.low_s), seconds(r.expected.high_s)) : '–', r.transfer_s ? seconds(r.wait_s || 0) : '–', r.busbw_GBps ? rate(r.busbw_GBps) : '–',
      r.late_rank >= 0 ? `${r.late_rank} (${percent(r.late_share || 0)})` : '–', count(r.count), `${r.algo || ''} ${r.proto || ''}`.trim() || '–']), (i) => keyOf(list[i]) === open) : h('p', { class: 'empty' }, 'No row matches.'),
    list.length > 200 && h('p', { class: 'quiet' }, `… and ${count(list.length - 200)} more: the JSON has all.`));
  }

  function drawRow(j, r) {
    curves.querySelector('#of').textContent = `${r.op} of ${bytes(r.bytes)} on ${r.group}`;
    const e = r.expected;
    put(one, h('p', { class: 'quiet' }, [`${count(r.ranks)} ranks${r.nodes ? ` on ${plural(r.nodes, 'node')}` : ''}, ${count(r.seen)} of them observed`, r.compared && `${count(r.compared)} calls compared between ranks`,
      e && `expected ${rate(e.busbw_GBps)} (${e.algo} ${e.proto})${e.limit ? `, limited by ${e.limit}` : ''}`, r.peers > 0 && `${r.peers.toFixed(2)} times as long as communicators of the same shape`, r.against && `judged by the ${r.against}`].filter(Boolean).join(' · ')));
    const points = history.get(keyOf(r)) || [];
    const xs = points.map((p) => p.at);
    const series = [{ name: 'measured', xs, ys: points.map((p) => p.busbw_GBps || null) }];
    const at = (s) => (s > 0 ? e.busbw_GBps * e.time_s / s : null);
    if (e) series.push({ name: 'predicted', xs, ys: xs.map(() => e.busbw_GBps), low: xs.map(() => at(e.high_s)), high: xs.map(() => at(e.low_s)), dash: [6, 4], colour: 2 });
    speed.draw(series, points.length ? `now ${rate(points[points.length - 1].busbw_GBps || 0)}${e ? `, predicted ${rate(e.busbw_GBps)}` : ''}` : 'no points yet');
    const times = [{ name: 'transfer', xs, ys: points.map((p) => p.transfer_s || null) }, { name: 'wait', xs, ys: points.map((p) => p.wait_s ?? null), colour: 1 }];
    if (e) times.push({ name: 'predicted transfer', xs, ys: xs.map(() => e.time_s), low: xs.map(() => e.low_s), high: xs.map(() => e.high_s), dash: [6, 4], colour: 2 });
    spent.draw(times, points.length ? `transfer ${seconds(points[points.length - 1].transfer_s)}, wait ${seconds(points[points.length - 1].wait_s)}` : 'no points yet');
  }

  // drawRanks lists ranks, those that wait least first, and opens one.
  function drawRanks(j) {
    people.hidden = false;
    const is = (r) => j.late && j.late.host === r.host && j.late.ranks.includes(r.rank);
    const list = [...j.ranks].sort((a, b) => a.wait - b.wait).slice(0, 64);
    const open = j.ranks.find((r) => String(r.rank) === state.get('rank'));
    const heads = [{ text: 'rank', n: true }, { text: 'host' }, { text: 'process', n: true }, { text: 'waiting', n: true }, { text: 'state' }];
    put(ranks, h('p', { class: 'quiet' }, 'The rank that the others wait for waits least itself.'), table('', heads, list.map((r) => [
      h('button', { type: 'button', class: 'link', 'aria-pressed': String(r === open), onclick: () => state.set({ rank: r === open ? '' : String(r.rank) }, { push: true }) }, String(r.rank)), r.host, String(r.pid), percent(r.wait),
      is(r) ? tag('last', 'warn') : r.oldest_s > 30 ? `in ${r.oldest} for ${seconds(r.oldest_s)}` : '']), (i) => list[i] === open), j.ranks.length > list.length && h('p', { class: 'quiet' }, `… and ${plural(j.ranks.length - list.length, 'rank')} that wait longer.`), open && rankCard(open));
    const some = open ? [open, ...list.filter((r) => r !== open).slice(0, 3)] : list.slice(0, 6);
    const series = some.map((r) => ({ r, points: history.get(rankKey(r)) || [] })).filter((s) => s.points.length)
      .map(({ r, points }, i) => ({ name: `rank ${r.rank}`, colour: i, width: r === open ? 3 : 2, xs: points.map((p) => p.at), ys: points.map((p) => p.wait || 0) }));
    waits.root.hidden = !series.length;
    if (series.length) waits.draw(series, some.map((r) => `rank ${r.rank} waits ${percent(r.wait)}`).join(', '));
  }

  // rankCard is what one rank does now.
  function rankCard(r) {
    return h('section', { class: 'one', 'aria-label': `rank ${r.rank}` }, h('h3', {}, `Rank ${r.rank} on ${r.host}, process ${r.pid}`),
      h('p', { class: 'quiet' }, r.open ? `${plural(r.open, 'operation')} not ended; the oldest, ${r.oldest}, was launched ${seconds(r.oldest_s || 0)} ago. busbar hang --pid ${r.pid} says for whom it waits.` : 'All its operations have ended.'));
  }

  const refresh = new Latest(async () => {
    try {
      const answer = await api.ask('fleet/jobs');
      if (over) return;
      doc = answer.doc;
      remember(doc);
      share.of(shown(answer));
      put(wrong);
      draw();
    } catch (error) { put(wrong, failure(error)); }
  });
  if (!(await api.me).fleet) {
    put(rows, h('div', { class: 'card' }, h('p', { class: 'empty' }, 'This server runs without a fleet. Jobs are shown when it is started without --no-fleet, on Linux or macOS.')));
    return null;
  }
  state.watch(draw);
  await refresh.go();
  timer = setInterval(() => { if (!document.hidden) refresh.go(); }, every);
  return () => { over = true; clearInterval(timer); for (const c of [speed, spent, waits]) c.end(); };
}
