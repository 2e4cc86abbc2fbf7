import { h, put, table, failure } from './dom.js';
import { Latest } from './api.js';
import { Curve } from './curve.js';
import { ago, when, tag, to as go, wayName } from './fleetwords.js';
import { seconds, percent, plural, rate } from './units.js';

// Timed is a curve over time with lines where something began or ended.
class Timed extends Curve {
  draw(series, said, marks) {
    this.marks = marks || [];
    super.draw(series, said);
  }

  redraw() {
    super.redraw();
    if (!this.plot) return;
    const g = this.plot.ctx;
    const css = getComputedStyle(document.documentElement);
    this.plot.hooks.draw = [...(this.plot.hooks.draw || []), (u) => {
      const dpr = window.devicePixelRatio || 1;
      g.save();
      for (const [k, m] of this.marks.entries()) {
        const x = u.valToPos(m.at, 'x', true);
        if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
        g.strokeStyle = g.fillStyle = css.getPropertyValue(m.over ? '--good' : '--bad').trim();
        g.lineWidth = 2 * dpr;
        g.setLineDash([7 * dpr, 4 * dpr]);
        g.beginPath();
        g.moveTo(x, u.bbox.top);
        g.lineTo(x, u.bbox.top + u.bbox.height);
        g.stroke();
        g.font = `600 ${12 * dpr}px ${css.getPropertyValue('--font')}`;
        g.textAlign = 'left';
        g.textBaseline = 'middle';
        g.fillText(String(k + 1), x + 4 * dpr, u.bbox.top + (12 + 14 * (k % 4)) * dpr);
      }
      g.restore();
    }];
    this.plot.redraw(false);
  }
}

function second(time) { return new Date(time).getTime() / 1000; }

function tick(v) {
  const t = new Date(1000 * v);
  const clock = t.toTimeString().slice(0, 5);
  if (clock === '00:00') return t.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' });
  return t.getSeconds() ? t.toTimeString().slice(0, 8) : clock;
}

// history is that of one pair, both directions.
export function history({ state, api, fleet }) {
  const title = h('h2', { tabindex: '-1' });
  const said = h('div', {}), notes = h('div', {}), rows = h('div', {});
  const x = { name: 'time', show: tick, time: true };
  const rates = new Timed({ label: 'rate over time', log: false, height: 270, x, y: { name: 'rate', show: (v) => rate(v) } });
  const delays = new Timed({ label: 'latency over time', log: false, height: 190, x, y: { name: 'latency', show: (v) => seconds(v) } });
  const root = h('section', { class: 'card', hidden: true, 'aria-label': 'history of a link' },
    h('div', { class: 'headline' }, title, h('div', { class: 'row' },
      h('button', { type: 'button', onclick: () => state.set({ from: state.get('to'), to: state.get('from') }) }, 'Reverse'),
      h('button', { type: 'button', onclick: () => state.set({ from: '', to: '' }, { push: true }) }, 'Close'))),
    said, rates.root, notes, delays.root, rows);

  // marks are when findings about these nodes began and ended.
  function marks(from, to) {
    const about = (f) => f.nodes.length <= 2 && f.nodes.every((n) => n === from || n === to);
    const out = [];
    for (const f of [...fleet.findings, ...fleet.past].filter(about)) {
      out.push({ at: second(f.since), text: f.text, severity: f.severity });
      if (f.cleared) out.push({ at: second(f.cleared), over: true, text: `resolved: ${f.text}` });
    }
    return out.sort((a, b) => a.at - b.at);
  }

  function series(doc, key) {
    const one = (name, list) => {
      const good = list.filter((s) => s[key]);
      return { name, xs: good.map((s) => second(s.at)), ys: good.map((s) => s[key]) };
    };
    const out = [one(`${doc.from} → ${doc.to}`, doc.there), { ...one(`${doc.to} → ${doc.from}`, doc.back), dash: [6, 4] }];
    const failed = [...doc.there, ...doc.back].filter((s) => s.failed);
    if (key === 'rate_GBps' && failed.length) out.push({ name: 'failed', points: true, colour: 4, xs: failed.map((s) => second(s.at)), ys: failed.map(() => 0) });
    return out.filter((s) => s.xs.length);
  }

  function summary(name, list) {
    const good = list.map((s) => s.rate_GBps).filter(Boolean);
    if (!good.length) return `${name} was never measured. `;
    const last = good[good.length - 1], middle = [...good].sort((a, b) => a - b)[Math.floor(good.length / 2)];
    if (good.length === 1) return `${name}: ${rate(last)}. `;
    return `${name}: last ${rate(last)}, median ${rate(middle)}${last < 0.85 * middle ? `: now ${percent(last / middle)} of its median` : ''}. `;
  }

  let all = false;
  function samples(doc) {
    const times = new Map();
    for (const [side, list] of [['there', doc.there], ['back', doc.back]]) for (const s of list) {
      if (!times.has(s.sweep)) times.set(s.sweep, { at: s.at });
      times.get(s.sweep)[side] = s;
    }
    const list = [...times.values()].sort((a, b) => second(b.at) - second(a.at));
    const cell = (s, key, show) => (!s ? '' : s.failed ? 'failed' : s[key] ? show(s[key]) : '');
    const some = all ? list : list.slice(0, 12);
    put(rows, h('details', { open: all }, h('summary', {}, `The samples as a table (${list.length})`),
      table('', [{ text: 'when' }, { text: `${doc.from} → ${doc.to}`, n: true }, { text: 'latency', n: true }, { text: `${doc.to} → ${doc.from}`, n: true }, { text: 'latency', n: true }],
        some.map((t) => [when(t.at), cell(t.there, 'rate_GBps', rate), cell(t.there, 'latency_s', seconds), cell(t.back, 'rate_GBps', rate), cell(t.back, 'latency_s', seconds)])),
      some.length < list.length && h('button', { type: 'button', onclick: () => { all = true; samples(doc); } }, `Show all ${list.length}`)));
  }

  const refresh = new Latest(async (focus) => {
    const from = state.get('from'), to = state.get('to');
    root.hidden = !from || !to || from === to;
    if (root.hidden) return;
    title.textContent = `${from} → ${to}`;
    try {
      const { doc } = await api.ask('fleet/link', { from, to, ...(state.get('by') && { by: state.get('by') }), ...(state.get('rail') && { rail: state.get('rail') }) });
      title.textContent = `${from} → ${to}${doc.ways ? `, by ${wayName(doc.way.by, doc.way.rail)}` : ''}`;
      const n = doc.there.length + doc.back.length;
      const times = new Set([...doc.there, ...doc.back].map((x) => x.at)).size;
      rates.root.hidden = delays.root.hidden = times < 2;
      put(said, h('p', {}, n === 0 ? 'These two were never measured together.' : (times < 2 ? 'Measured once; a history needs twice. ' : '') + summary(`${from} → ${to}`, doc.there) + summary(`${to} → ${from}`, doc.back)),
        doc.ways && h('p', { class: 'quiet' }, 'Also by ', doc.ways.filter((w) => w.by !== doc.way.by || w.rail !== doc.way.rail).map((w, k) => [k > 0 && ', ', go(state, { show: 'pairs', from, to, ...(w.by && { by: w.by }), ...(w.rail && { rail: w.rail }) }, wayName(w.by, w.rail))])));
      put(notes);
      put(rows);
      if (n) {
        const list = marks(from, to);
        const words = list.map((m, k) => `${k + 1}: ${m.text}`).join('; ');
        if (times > 1) rates.draw(series(doc, 'rate_GBps'), `${plural(n, 'sample')}, the newest ${ago((doc.there.at(-1) || doc.back.at(-1)).at)}. ${words}`, list);
        const slow = series(doc, 'latency_s');
        delays.root.hidden = times < 2 || !slow.length;
        if (!delays.root.hidden) delays.draw(slow, '', list);
        put(notes, list.length > 0 && h('ol', { class: 'marks' }, list.map((m) => h('li', {}, m.over ? tag('resolved', 'good') : tag(m.severity, m.severity), ` ${when(1000 * m.at)}: ${m.text}`))));
        samples(doc);
      }
      if (focus) { title.focus(); root.scrollIntoView({ block: 'nearest' }); }
    } catch (error) {
      put(said, failure(error));
      rates.root.hidden = delays.root.hidden = true;
    }
  });

  return { root, refresh: (focus) => refresh.go(focus), end() { rates.end(); delays.end(); } };
}
