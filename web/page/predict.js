import { h, put, table, ranged, failure, say, plain } from './dom.js';
import { Latest, send } from './api.js';
import { Share } from './share.js';
import { clusterPicker, clusterWord, hardware, refused, choice, field, text } from './pick.js';
import { Curve } from './curve.js';
import { Topology } from './topology.js';
import { Load, kindNames } from './load.js';
import { Picture } from './picture.js';
import { facts } from './facts.js';
import { ops, loadLegend } from './cluster.js';
import { term } from './terms.js';
import { bytes, micros, rate, percent } from './units.js';

// How long a collective takes: layouts and algorithms side by side, measured points over predicted ones.
export async function show(root, state, api) {
  const share = new Share(state);
  const about = h('p', { 'aria-live': 'polite' });
  const said = h('div', { class: 'said' });
  const cards = h('section', { class: 'cards', 'aria-label': 'answer' });
  const curve = new Curve({ label: 'bus bandwidth over size', x: { name: 'size', show: bytes }, y: { name: 'bus bandwidth', show: (v) => rate(v) } });
  const detail = h('div', {});
  let seen = null; // what the picture shows: {topo, scene, load}
  const picture = new Picture({ onchoose: (key) => put(detail, facts(seen.topo, key, seen.load, seen.scene.marks.find((m) => m.key === key))), onopen: () => {} });
  const verdict = h('div', { class: 'cards' }), rows = h('div', {}), where = h('div', {}), fit = h('div', {}), colours = h('div', {});
  const measured = h('input', { type: 'file', onchange: async () => {
    try { state.set({ measured: (await send(measured.files[0])).id }); } catch (error) { put(said, failure(error)); }
  } });
  const away = h('button', { type: 'button', hidden: !state.get('measured'), onclick: () => { measured.value = ''; state.set({ measured: '' }); } }, 'Remove');
  const set = (name) => (v) => state.set({ [name]: v });

  put(root, h('div', { class: 'view' },
    h('header', {}, h('div', {}, h('h1', {}, 'Predict'), about), share.root), said,
    h('section', { class: 'controls', 'aria-label': 'question' }, await clusterPicker(api, state, { here: false }),
      h('fieldset', {}, h('legend', {}, 'Collective'), field('Operation', choice(ops, state.get('op', 'all_reduce'), set('op'))),
        h('div', { class: 'row' }, field('From, bytes', text(state.get('b', '1K'), set('b'))), field('To, bytes', text(state.get('e', '4G'), set('e')))),
        field('Data type', choice(['float', 'half', 'bfloat16', 'int8', 'f8e4m3'].map((x) => [x, x]), state.get('d', 'float'), set('d')))),
      h('fieldset', {}, h('legend', {}, 'Compare'),
        field('Layouts', text(state.get('layouts'), set('layouts'), { placeholder: 'all GPUs; or 1x8,2x4' }), 'NODESxGPUS, one or several with commas'),
        field('Algorithms', choice([['auto', "NCCL's choice"], ['each', 'every algorithm of NCCL'], ['best', 'the fastest']], state.get('algo', 'each'), set('algo'))),
        field('NCCL', text(state.get('nccl'), set('nccl'), { placeholder: 'newest known' }))),
      h('fieldset', {}, h('legend', {}, 'Measured'), field('Output of nccl-tests, or a result file', measured),
        away)),
    cards));
  put(cards, h('div', { class: 'card' }, h('h2', {}, term('Bus bandwidth', 'bus bandwidth'), ' over size'), curve.root, fit), verdict,
    h('div', { class: 'card' }, h('h2', {}, 'Bottleneck'), where, picture.root, colours, detail), rows);

  const refresh = new Latest(async () => {
    cards.classList.add('busy');
    away.hidden = !state.get('measured');
    const c = clusterWord(state);
    const layouts = (state.get('layouts') || state.get('l')).replaceAll(' ', '');
    const question = {
      ...state.rest('layouts', 'measured', 'o'),
      c, op: state.get('op', 'all_reduce'), b: state.get('b', '1K'), e: state.get('e', '4G'), f: state.get('f', '4'), d: state.get('d'), nccl: state.get('nccl'), algo: state.get('algo', 'each'),
      l: layouts.includes(',') ? '' : layouts, compare: layouts.includes(',') ? layouts : '',
    };
    try {
      const answer = await api.ask('predict', question);
      put(said);
      cards.hidden = false;
      let held = null;
      if (state.get('measured')) {
        try { held = await api.ask('measured', { file: state.get('measured'), c, l: question.l, op: state.get('op') }); } catch (error) { put(said, failure(error)); }
      }
      share.of(answer, held);
      draw(answer.doc, held?.doc, answer.notes);
      if (!refresh.stale) await place(c, answer.doc);
    } catch (error) {
      put(said, refused(error));
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
      if (old < 0) list.push(r); else if (r.time_us < list[old].time_us) list[old] = r;
    }
    const one = Boolean(choice) && groups.size <= 3;
    const series = [...groups].map(([name, list]) => ({
      name, xs: list.map((r) => r.size_bytes), ys: list.map((r) => r.busbw_GBps),
      low: one ? list.map((r) => r.busbw_GBps * r.time_us / r.high_us) : undefined, high: one ? list.map((r) => r.busbw_GBps * r.time_us / r.low_us) : undefined,
    }));
    if (!choice) { // what NCCL chooses of these, with its error band, over the others
      for (const layout of new Set(doc.rows.map((r) => r.layout))) {
        const list = doc.rows.filter((r) => r.chosen && r.layout === layout).sort((a, b) => a.size_bytes - b.size_bytes);
        if (list.length) series.push({ name: `${several ? `${layout} ` : ''}NCCL's choice`, dash: [8, 5], width: 4, xs: list.map((r) => r.size_bytes), ys: list.map((r) => r.busbw_GBps),
          low: list.map((r) => r.busbw_GBps * r.time_us / r.high_us), high: list.map((r) => r.busbw_GBps * r.time_us / r.low_us) });
      }
    }
    for (const sweep of held?.sweeps || []) {
      const points = sweep.points || sweep.rows || [];
      series.push({ name: `measured ${sweep.layout || ''}`, points: true, xs: points.map((p) => p.size_bytes), ys: points.map((p) => p.measured_busbw_GBps ?? p.busbw_GBps) });
    }
    const top = doc.rows[doc.rows.length - 1];
    about.textContent = `${doc.op.replaceAll('_', ' ')} on ${doc.cluster}, NCCL ${doc.nccl}`;
    curve.draw(series, `${series.length} curves from ${bytes(doc.rows[0].size_bytes)} to ${bytes(top.size_bytes)}; the table below has the values.`);
    put(fit, series.some((x) => x.low) && h('p', { class: 'quiet' }, 'The band is the expected error: about 90% of measurements on similar hardware are within it.'), notes.length > 0 && h('p', { class: 'quiet' }, notes.join(' ')));
    put(verdict, h('div', { class: 'card' }, h('h2', {}, 'What to do'),
      doc.compare?.length > 0 && h('p', {}, `${bytes(doc.compare.at(-1).size_bytes)}: ${doc.compare.at(-1).text}.`),
      doc.compare?.length > 1 && h('details', {}, h('summary', {}, 'At other sizes'), h('ul', {}, doc.compare.slice(0, -1).map((v) => h('li', {}, `${bytes(v.size_bytes)}: ${v.text}`)))),
      doc.advice?.length ? h('ul', {}, doc.advice.map((a) => h('li', {}, plain(a.text), a.setting && [' ', h('code', {}, a.setting)]))) : h('p', {}, "NCCL's choices are the fastest here; no setting would help."),
      [...(doc.caveats || []), ...(doc.skipped || [])].map((x) => h('p', { class: 'quiet' }, plain(x)))), findings(held));
    const chosen = doc.rows.filter((r) => r.chosen);
    const others = chosen.length > 0 && chosen.length < doc.rows.length;
    put(rows, h('div', { class: 'card' }, h('h2', {}, 'Results'), figures(others ? chosen : doc.rows),
      others && h('details', {}, h('summary', {}, `Every algorithm (${doc.rows.length} rows)`), figures(doc.rows), h('p', { class: 'quiet' }, '✓ marks NCCL’s choice.'))));
    say(`${doc.rows.length} rows; at ${bytes(top.size_bytes)}: ${rate(top.busbw_GBps)}, ${top.bottleneck.text}`);
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
      h('p', { class: 'quiet' }, 'Busiest: ', Object.entries(load.kinds).map(([k, x]) => `${kindNames[k] || k} ${percent(x)}`).join(' · '), ' · ', h('a', { href: `/cluster?${new URLSearchParams(at)}${l ? `&l=${l}` : ''}&op=${doc.op}&size=${row.asked_bytes || row.size_bytes}` }, 'open in the Cluster view')));
    seen = { ...mapped, load };
    put(detail);
    put(colours, loadLegend(load));
    picture.draw(mapped.scene, load);
  }

  state.watch(() => refresh.go());
  await refresh.go();
  return () => curve.end();
}

// figures is a table of predicted calls, what people look for first.
function figures(list) {
  const several = new Set(list.map((r) => r.layout)).size > 1;
  const all = list.every((r) => r.chosen); // then none of them stands out
  const columns = [
    several && [{ text: 'layout' }, (r) => r.layout],
    [{ text: 'size', n: true }, (r) => bytes(r.size_bytes)],
    [{ text: 'time', n: true }, (r) => ranged(micros(r.time_us), micros(r.low_us), micros(r.high_us))],
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
