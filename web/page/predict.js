import { h, put, table, ranged, failure, say, plain, fork } from './dom.js';
import { Latest, send } from './api.js';
import { Share } from './share.js';
import { clusterPicker, clusterWord, hardware, layouts, asFields, refused, entry, option, group, field } from './pick.js';
import { sideBySide } from './bars.js';
import { slider } from './slider.js';
import { Curve } from './curve.js';
import { Topology } from './topology.js';
import { Load, kindNames } from './load.js';
import { Picture } from './picture.js';
import { facts } from './facts.js';
import { rounds } from './rounds.js';
import { ops, loadLegend } from './cluster.js';
import { term } from './terms.js';
import { bytes, seconds, rate, percent } from './units.js';

// How long a collective takes: layouts and algorithms side by side, measured points over predicted ones.
export async function show(root, state, api) {
  asFields(state);
  const share = new Share(state);
  const about = h('p', { 'aria-live': 'polite' });
  const said = h('div', { class: 'said' });
  const cards = h('section', { class: 'cards', 'aria-label': 'answer' });
  const curve = new Curve({ label: 'bus bandwidth over size', x: { name: 'size', show: bytes }, y: { name: 'bus bandwidth', show: (v) => rate(v) } });
  const detail = h('div', {});
  let seen = null; // what the picture shows: {topo, scene, load}
  const picture = new Picture({ onchoose: (key) => put(detail, facts(seen.topo, key, seen.load, seen.scene.marks.find((m) => m.key === key))), onopen: () => {} });
  const compared = h('div', {}), verdict = h('div', { class: 'cards' }), rows = h('div', {}), where = h('div', {}), fit = h('div', {}), colours = h('div', {}), played = h('div', {});
  const measured = h('input', { type: 'file', onchange: async () => {
    try { state.set({ measured: (await send(measured.files[0])).id }); } catch (error) { put(said, failure(error)); }
  } });
  const away = h('button', { type: 'button', hidden: !state.get('measured'), onclick: () => { measured.value = ''; state.set({ measured: '' }); } }, 'Remove');

  put(root, h('div', { class: 'view' },
    h('header', {}, h('div', {}, h('h1', {}, 'Predict'), about), share.root), said,
    h('section', { class: 'controls', 'aria-label': 'question' }, await clusterPicker(api, state, { here: false }),
      h('fieldset', {}, h('legend', {}, 'Collective'), option(state, 'op', 'Operation', ops, 'all_reduce'),
        entry(state, 'l', 'Layouts', { placeholder: 'all GPUs; or 1x8,2x4' }, 'NODESxGPUS; several with commas are compared.')),
      group('Sizes', h('div', { class: 'row' }, entry(state, 'b', 'From, bytes', { otherwise: '1K' }), entry(state, 'e', 'To, bytes', { otherwise: '4G' })),
        option(state, 'd', 'Data type', ['float', 'half', 'bfloat16', 'int8', 'f8e4m3'], 'float')),
      group('NCCL', option(state, 'algo', 'Algorithms', [['auto', "NCCL's choice"], ['each', 'every algorithm of NCCL'], ['best', 'the fastest']], 'each'),
        entry(state, 'nccl', 'Release', { placeholder: 'newest known' })),
      group('Measured', field('Output of nccl-tests, or a result file', measured), away)),
    cards));
  put(cards, compared, h('div', { class: 'card' }, h('h2', {}, term('Bus bandwidth', 'bus bandwidth'), ' over size'), curve.root, fit), verdict,
    h('div', { class: 'card' }, h('h2', {}, 'Bottleneck'), where, picture.root, colours, played, detail), rows);

  const refresh = new Latest(async () => {
    cards.classList.add('busy');
    away.hidden = !state.get('measured');
    const c = clusterWord(state);
    const question = {
      ...state.rest('l', 'measured', 'o'),
      c, op: state.get('op', 'all_reduce'), ...(state.get('size') ? {} : { b: state.get('b', '1K'), e: state.get('e', '4G'), f: state.get('f', '4') }), d: state.get('d'), nccl: state.get('nccl'), algo: state.get('algo', 'each'),
      ...layouts(state.get('l')),
    };
    try {
      const answer = await api.ask('predict', question);
      refused(said);
      cards.hidden = false;
      let held = null;
      if (state.get('measured')) {
        try { held = await api.ask('measured', { file: state.get('measured'), c, l: question.l, op: state.get('op') }); } catch (error) { put(said, failure(error)); }
      }
      share.of(answer, held);
      draw(answer.doc, held?.doc, answer.notes);
      if (!refresh.stale) await place(c, answer.doc);
    } catch (error) {
      refused(said, error);
      cards.hidden = true; // what is there answers another question
      about.textContent = '';
      share.none();
    }
    cards.classList.remove('busy');
  });

  function draw(doc, held, notes) {
    const groups = new Map();
    const choice = { auto: "NCCL's choice", best: 'the fastest' }[state.get('algo', 'each')];
    const several = new Set(doc.rows.map((r) => r.layout)).size > 1;
    for (const r of doc.rows) {
      const name = `${several || choice ? r.layout : ''} ${choice ? `${choice}` : r.algo}`.trim();
      if (!groups.has(name)) groups.set(name, []);
      const list = groups.get(name);
      const old = list.findIndex((x) => x.size_bytes === r.size_bytes);
      if (old < 0) list.push(r); else if (r.time_s < list[old].time_s) list[old] = r;
    }
    const one = Boolean(choice) && groups.size <= 3;
    const series = [...groups].map(([name, list]) => ({
      name, xs: list.map((r) => r.size_bytes), ys: list.map((r) => r.busbw_GBps),
      low: one ? list.map((r) => r.busbw_GBps * r.time_s / r.high_s) : undefined, high: one ? list.map((r) => r.busbw_GBps * r.time_s / r.low_s) : undefined,
    }));
    if (!choice) { // what NCCL chooses of these, with its error band, over the others
      for (const layout of new Set(doc.rows.map((r) => r.layout))) {
        const list = doc.rows.filter((r) => r.chosen && r.layout === layout).sort((a, b) => a.size_bytes - b.size_bytes);
        if (list.length) series.push({ name: `${several ? `${layout} ` : ''}NCCL's choice`, dash: [8, 5], width: 4, xs: list.map((r) => r.size_bytes), ys: list.map((r) => r.busbw_GBps),
          low: list.map((r) => r.busbw_GBps * r.time_s / r.high_s), high: list.map((r) => r.busbw_GBps * r.time_s / r.low_s) });
      }
    }
    for (const sweep of held?.sweeps || []) {
      const points = sweep.points || sweep.rows || [];
      series.push({ name: `measured ${sweep.layout || ''}`, points: true, xs: points.map((p) => p.size_bytes), ys: points.map((p) => p.measured_busbw_GBps ?? p.busbw_GBps) });
    }
    const top = doc.rows[doc.rows.length - 1];
    put(compared, several && compare(doc));
    about.textContent = `${doc.op.replaceAll('_', ' ')} on ${doc.cluster}, NCCL ${doc.nccl}`;
    curve.draw(series, `${series.length} curves from ${bytes(doc.rows[0].size_bytes)} to ${bytes(top.size_bytes)}; the table below has the values.`);
    put(fit, series.some((x) => x.low) && h('p', { class: 'quiet' }, 'The band is the expected error: about 90% of measurements on similar hardware are within it.'), notes.length > 0 && h('p', { class: 'quiet' }, notes.join(' ')));
    curve.root.parentNode.hidden = doc.rows[0].asked_bytes === top.asked_bytes; // a curve of one size is a point
    put(verdict, h('div', { class: 'card' }, h('h2', {}, 'What to do'), !several && fork(doc.rows.findLast((r) => r.chosen) || top, seconds),
      doc.compare?.length > 0 && h('p', {}, `${bytes(doc.compare.at(-1).size_bytes)}: ${doc.compare.at(-1).text}.`),
      doc.compare?.length > 1 && h('details', {}, h('summary', {}, 'At other sizes'), h('ul', {}, doc.compare.slice(0, -1).map((v) => h('li', {}, `${bytes(v.size_bytes)}: ${v.text}`)))),
      doc.advice?.length ? h('ul', {}, doc.advice.map((a) => h('li', {}, plain(a.text), a.setting && [' ', h('code', {}, a.setting)]))) : h('p', {}, "NCCL's choices are the fastest here; no setting would help."),
      [...(doc.caveats || []), ...(doc.skipped || [])].map((x) => h('p', { class: 'quiet' }, plain(x)))), findings(held));
    const chosen = doc.rows.filter((r) => r.chosen);
    const others = chosen.length > 0 && chosen.length < doc.rows.length;
    const shown = figures(others ? chosen : doc.rows);
    put(rows, h('div', { class: 'card' }, h('h2', {}, 'Results'), several ? h('details', {}, h('summary', {}, 'Every size and layout'), shown) : shown,
      others && h('details', {}, h('summary', {}, `Every algorithm (${doc.rows.length} rows)`), figures(doc.rows), h('p', { class: 'quiet' }, '✓ marks NCCL’s choice.'))));
    say(`${doc.rows.length} rows; at ${bytes(top.size_bytes)}: ${rate(top.busbw_GBps)}, ${top.bottleneck.text}`);
  }

  // compare is the layouts side by side: what NCCL chooses for each at a size, and what limits it.
  function compare(doc) {
    const sizes = [...new Set(doc.rows.map((r) => r.asked_bytes))].sort((a, b) => a - b);
    const holder = h('div', {});
    const at = (size) => {
      const list = [...new Set(doc.rows.map((r) => r.layout))].map((l) => doc.rows.filter((r) => r.layout === l && r.asked_bytes === size).sort((a, b) => Boolean(b.chosen) - Boolean(a.chosen) || a.time_s - b.time_s)[0]).filter(Boolean);
      put(holder, sideBySide('time of a call', list.map((r) => ({ name: r.layout, total: r.time_s, range: `${seconds(r.low_s)} – ${seconds(r.high_s)}`, parts: [{ name: 'time', value: r.time_s, colour: 1 }],
        text: [`${rate(r.busbw_GBps)} by ${r.algo}: ${r.bottleneck.text}`, r.busy?.length > 0 && h('span', {}, '. Busiest: ', busiest(new Load(r))), fork(r, seconds)] })), seconds));
    };
    at(sizes.at(-1));
    return h('div', { class: 'card' }, h('h2', {}, 'Layouts side by side'), sizes.length > 1 && slider('Size', sizes.map((x) => [x, bytes(x)]), sizes.at(-1), at), holder);
  }

  let mapped = null;
  async function place(c, doc) {
    const row = [...doc.rows].reverse().find((r) => r.chosen) || doc.rows[doc.rows.length - 1];
    const l = row.layout === 'all' ? '' : row.layout;
    const at = { c, ...hardware(state) }, key = JSON.stringify(at), old = mapped?.key === key;
    const [map, drawn, links] = await Promise.all([old ? null : api.ask('map', at), old ? null : api.ask('scene', at),
      api.ask('predict', { ...at, l, op: doc.op, size: row.asked_bytes, d: state.get('d'), nccl: state.get('nccl'), algo: row.chosen ? 'auto' : row.algo, links: true }).catch(() => null)]);
    if (map) mapped = { key, scene: drawn.doc, topo: new Topology(map.doc, drawn.doc) };
    const load = new Load(links?.doc.rows[0] || row);
    load.over(mapped.topo, mapped.scene);
    put(where, h('p', {}, `At ${bytes(row.size_bytes)} by ${row.algo}: `, h('strong', {}, row.bottleneck.text), row.bottleneck.where && ` (${row.bottleneck.where})`),
      h('p', { class: 'quiet' }, 'Busiest: ', busiest(load), ' · ', h('a', { href: `/cluster?${new URLSearchParams(at)}${l ? `&l=${l}` : ''}&op=${doc.op}&size=${row.asked_bytes || row.size_bytes}` }, 'open in the Cluster view')));
    seen = { ...mapped, load };
    put(detail);
    put(colours, loadLegend(load));
    picture.draw(mapped.scene, load);
    const ways = new Map(doc.rows.filter((r) => r.asked_bytes === row.asked_bytes).map((r) => [`${r.layout} ${r.algo}`, { ...at, l: r.layout === 'all' ? '' : r.layout, op: doc.op, size: r.asked_bytes, algo: r.algo, nccl: state.get('nccl') }]));
    put(played, rounds(api, [...ways.values()], mapped, picture));
  }

  state.watch(() => refresh.go());
  await refresh.go();
  return () => curve.end();
}

// busiest are the kinds of links with the share of the time in which they are busy.
function busiest(load) { return Object.entries(load.kinds).map(([k, x]) => `${kindNames[k] || k} ${percent(x)}`).join(' · '); }

// figures is a table of predicted calls, what people look for first.
function figures(list) {
  const several = new Set(list.map((r) => r.layout)).size > 1;
  const all = list.every((r) => r.chosen); // then none of them stands out
  const columns = [
    several && [{ text: 'layout' }, (r) => r.layout],
    [{ text: 'size', n: true }, (r) => bytes(r.size_bytes)],
    [{ text: 'time', n: true }, (r) => ranged(seconds(r.time_s), seconds(r.low_s), seconds(r.high_s))],
    [{ text: term('busbw'), n: true }, (r) => rate(r.busbw_GBps)],
    [{ text: all ? "NCCL's choice" : 'algorithm' }, (r) => (r.chosen && !all ? `${r.algo} ✓` : r.algo)],
    [{ text: 'protocol' }, (r) => r.proto],
    [{ text: 'channels', n: true }, (r) => String(r.channels)],
    [{ text: 'limited by', w: true }, (r) => r.bottleneck.text],
  ].filter(Boolean);
  return table('Time of one call; below it, the range that holds about 90% of measurements on similar hardware', columns.map(([head]) => head),
    list.map((r) => columns.map(([, cell]) => cell(r))), (i) => !all && list[i].chosen);
}

function findings(held) {
  if (!held) return null;
  return h('div', { class: 'card' }, h('h2', {}, 'Measured against predicted'), held.findings?.length
    ? h('ul', { class: 'findings' }, held.findings.map((f) => h('li', { class: `finding ${f.severity}` }, h('p', {}, h('span', { class: `tag ${f.severity}` }, f.severity), ' ', h('strong', {}, f.title)), h('p', {}, f.cause), f.fix && h('p', { class: 'quiet' }, f.fix))))
    : h('p', {}, 'The measured sweep is as fast as predicted.'));
}
