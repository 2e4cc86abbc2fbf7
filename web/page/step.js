import { h, put, table, say, changes, plain, fork } from './dom.js';
import { Latest, address } from './api.js';
import { Share } from './share.js';
import { clusterPicker, clusterWord, modelPicker, frameworkPicker, adapting, refused, entry, option, group, check, layouts, asFields, cut } from './pick.js';
import { degrees, parallel, settingsOf, splitWords, spread, sizes, fitting } from './fitting.js';
import { slider, powers } from './slider.js';
import { term } from './terms.js';
import { allReduces, sideBySide, stacked } from './bars.js';
import { Curve } from './curve.js';
import { seconds, memory, percent, short, count, counted, plural, bytes } from './units.js';

const here = 'dgx-h100:8';
const own = ['c', 'm', 'l', 'parallel', 'set', 'gbps', 'nics', 'o', ...degrees]; // parameters of the view; others are the question's
let focused = ''; // the control that a view shown again goes back to

// A training step, with sliders for what can be changed; answers come while they are dragged.
export async function show(root, state, api) {
  const share = new Share(state);
  const about = h('p', { 'aria-live': 'polite' });
  const said = h('div', { class: 'said' }), compared = h('div', {}), figures = h('div', {}), time = h('div', {}), room = h('div', {}), why = h('h2', {}), limits = h('div', {}), knee = h('div', {}), ends = h('p', { class: 'quiet' }), line = h('div', { class: 'paper timeline', tabindex: '0', role: 'region', 'aria-label': 'timeline' });
  const curve = new Curve({ label: 'efficiency over nodes', x: { name: 'nodes', show: count }, y: { name: 'efficiency', show: (v) => percent(v) }, height: 260 });
  const set = (name) => (v) => state.set({ [name]: v });
  spread(state);
  asFields(state);
  const has = await sizes(api, state, here);
  const model = await fitting(api, state, here);
  const sequence = check('Sequence parallel', false, (on) => state.set({ sp: on ? '1' : '0' }));
  const framework = frameworkPicker(state, 'none named');
  const precision = option(state, 'precision', 'Precision', [['', "the framework's"], 'bf16', 'fp16', 'fp8', 'fp32', 'tf32', 'amp-bf16']);
  const degree = (k, label, values) => slider(term(label), values, state.get(k, '1'), set(k), k === 'tp' ? 'parallel' : k);
  const sliders = {
    tp: degree('tp', 'Tensor parallel', powers(Math.max(2, has.gpus))), pp: degree('pp', 'Pipeline stages', powers(64)), cp: degree('cp', 'Context parallel', powers(32)),
    ep: degree('ep', 'Expert parallel', powers(64)), vpp: degree('vpp', 'Virtual stages', powers(16)),
    zero: slider(term('ZeRO'), [['0', 'none'], ['1', '1: optimizer'], ['2', '2: and gradients'], ['3', '3: and parameters']], state.get('zero', '0'), set('zero'), 'zero'),
  };

  // follow shows the degrees that were found where nobody set them; sequence parallelism is among tensor-parallel ranks.
  function follow(found) {
    for (const [k, s] of Object.entries(sliders)) if (!state.get(k)) s.moveTo(found[k] || (k === 'zero' ? '0' : '1'));
    const box = sequence.firstChild;
    box.disabled = Number(found.tp) === 1;
    box.checked = !box.disabled && found.sequence_parallel;
  }
  const cards = h('section', { class: 'cards', 'aria-label': 'answer' },
    compared, h('div', { class: 'card' }, figures, time), h('div', { class: 'two' }, h('div', { class: 'card' }, h('h2', {}, 'Memory per GPU'), room), h('div', { class: 'card' }, why, limits)),
    h('div', { class: 'card' }, h('h2', {}, 'Timeline of the step'), ends, line), h('div', { class: 'card' }, h('h2', {}, 'Scaling to more nodes'), knee, curve.root));

  put(root, h('div', { class: 'view' },
    h('header', {}, h('div', {}, h('h1', {}, 'Step'), about), share.root), said,
    h('section', { class: 'controls', 'aria-label': 'the job' },
      await modelPicker(api, state, model), await clusterPicker(api, state, { here: false, otherwise: here, count: false }),
      h('fieldset', {}, h('legend', {}, 'Machine'),
        slider('Nodes', powers(4096, count), String(cut(clusterWord(state, here)).nodes || has.nodes), (v) => state.set({ c: `${cut(clusterWord(state, here)).name}:${v}` })),
        has.nics > 0 && [slider('Network, per NIC', [['', 'as it is'], ...[10, 25, 50, 100, 200, 400, 800, 1600].map((x) => [String(x), `${x} Gb/s`])], state.get('gbps'), set('gbps'), 'set'),
          slider('NICs per node', [...powers(has.nics).filter(([n]) => n < has.nics).map(([n]) => [String(n), String(n)]), ['', String(has.nics)]], state.get('nics'), set('nics'))]),
      group('Software', framework, adapting(state, 'none')),
      group('Parallelism', sliders.tp, sequence, sliders.pp, sliders.cp, sliders.ep, sliders.vpp, sliders.zero,
        entry(state, 'l', 'Layout', { placeholder: 'all GPUs; or 1x4,2x2' }, 'NODESxGPUS; several with commas are compared.')),
      group('Batch',
        slider(term('Global batch, sequences', 'global batch'), [['', 'default'], ...powers(16384, count).map(([v, t]) => [String(v), t])], state.get('global-batch'), set('global-batch'), 'global-batch'),
        slider(term('Micro-batch, sequences', 'micro-batch'), [['', 'default'], ...powers(64).map(([v, t]) => [String(v), t])], state.get('micro-batch'), set('micro-batch'), 'micro-batch'),
        slider('Sequence length, tokens', [['', "the model's"], ...[1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072].map((x) => [String(x), count(x)])], state.get('seq'), set('seq'), 'seq')),
      group('Compute', precision, option(state, 'recompute', 'Recompute', [['', 'default'], 'none', 'selective', 'full']))),
    cards));

  function question() {
    const q = {
      c: clusterWord(state, here), m: state.get('m', model), ...layouts(state.get('l')), parallel: parallel(state), ...state.rest(...own),
    };
    q.set = [...state.all('set'), state.get('gbps') && `network.gbps=${state.get('gbps')}`, state.get('nics') && `nics_per_node=${state.get('nics')}`].filter(Boolean);
    return q;
  }

  let moved = 0;
  const refresh = new Latest(async () => {
    const began = moved || performance.now();
    moved = 0;
    try {
      const answer = await api.ask('step', question());
      refused(said);
      cards.hidden = false;
      share.of(answer);
      draw(answer.doc);
      cards.dataset.answered = String(Math.round(performance.now() - began));
    } catch (error) {
      refused(said, error, has.wrong);
      cards.hidden = true; // what is there answers another question
      about.textContent = '';
      share.none();
      cards.dataset.answered = 'error';
    }
    clearTimeout(later);
    later = setTimeout(() => rest.go(), 180);
  });
  let later = 0;

  // rest is what may come a moment after: the timeline and the scaling curve.
  let going = null;
  const rest = new Latest(async () => {
    going = new AbortController();
    if (cards.hidden) return;
    const q = question();
    if (!line.parentNode.hidden) put(line, h('img', { src: address('step', { ...q, compare: '', l: q.l || best.layout, o: 'svg' }), alt: `timeline of the step: ${about.textContent}`, onerror: () => put(line, h('p', { class: 'quiet' }, 'The timeline is too long to be drawn; a smaller global batch has one.')) }));
    const now = cut(q.c);
    curve.root.hidden = true;
    if (!has.nics) {
      put(knee, h('p', { class: 'quiet' }, 'The nodes have no NICs, so the job stays on one. Enter NICs under Cluster to see more.'));
      cards.dataset.rested = '1';
      return;
    }
    try {
      const answer = await api.ask('scale', { ...q, l: '', compare: '', c: now.name, nodes: Math.max(64, 8 * (now.nodes || 1)) }, { signal: going.signal });
      scaling(answer.doc);
    } catch (error) {
      if (error.name === 'AbortError') return;
      put(knee, h('p', { class: 'quiet' }, error.message));
    }
    cards.dataset.rested = '1';
  });

  let unit = 'tokens', best = null; // what rates count, and the row that is shown: of several layouts the fastest that fits
  const timeParts = (r) => [
    { name: 'compute', value: r.compute_s, colour: 1 }, { name: 'exposed communication', value: r.exposed_comm_s, colour: 2 }, { name: 'bubble', value: r.bubble_s, colour: 3 },
    { name: 'optimizer', value: r.optimizer_s, colour: 4 }, { name: 'host', value: r.host_s, colour: 6 }];

  // compare is the layouts side by side, where there are several.
  function compare(doc) {
    const list = doc.rows.filter((r) => r.fits).map((r) => ({ name: r.layout, total: r.step_s, range: `${seconds(r.low_s)} – ${seconds(r.high_s)}`, parts: timeParts(r), text: [`${short(r.tokens_per_s)} ${unit}/s, ${splitWords(r.job.parallel)}: ${plain(r.bottleneck.text)}`, fork(r, seconds)] }));
    put(compared, (doc.rows.length > 1 || doc.skipped) && h('div', { class: 'card' }, h('h2', {}, 'Layouts side by side'), list.length > 0 && sideBySide('time of a step', list, seconds),
      doc.rows.some((r) => r.all_reduces) && [h('h3', {}, 'All gradients in one all-reduce'), allReduces(doc.rows)],
      doc.rows.filter((r) => !r.fits).map((r) => h('p', { class: 'quiet' }, h('strong', {}, r.layout), ` ${plain(r.bottleneck.text)}`)),
      (doc.skipped || []).map((x) => h('p', { class: 'quiet' }, plain(x))), h('p', { class: 'quiet' }, `Below: ${best.layout}.`)));
  }

  function draw(doc) {
    best = doc.rows.reduce((a, b) => (b.fits > a.fits || (b.fits === a.fits && b.tokens_per_s > a.tokens_per_s) ? b : a));
    const r = best, job = r.job;
    unit = counted(job);
    follow(job.parallel);
    if (job.framework && !state.get('framework')) framework.querySelector('option').textContent = `none named: ${job.framework}`;
    precision.querySelector('option').textContent = `the framework's${state.get('precision') ? '' : ` (${job.precision})`}`;
    about.textContent = `${r.fits ? '' : 'does not fit: '}${job.model} on ${doc.cluster} ${r.layout}${job.framework ? ` with ${job.framework}` : ''}, ${splitWords(job.parallel)}, global batch ${job.seq === 1 ? plural(job.global_batch, 'sample') : `${plural(job.global_batch, 'sequence')} of ${count(job.seq)} tokens`}`;
    about.title = job.framework_reason || '';
    compare(doc);
    const one = (name, value, small) => h('div', {}, h('dt', {}, name), h('dd', {}, value, small && [' ', h('small', {}, small)]));
    figures.parentNode.hidden = !r.fits; // what does not fit has no time
    line.parentNode.hidden = !r.fits || doc.rows.length > 1; // it is drawn for one layout, by the framework that suits it alone
    if (r.fits) put(figures, h('dl', { class: 'figures' }, one('step time', seconds(r.step_s), r.low_s && `${seconds(r.low_s)} – ${seconds(r.high_s)}`), one(`${unit}/s`, short(r.tokens_per_s)), one(`${unit}/s/GPU`, short(r.tokens_per_s_per_gpu)), one(term('MFU'), percent(r.mfu)), one('TFLOPS/GPU', r.tflops_per_gpu.toFixed(0)),
      one('GPUs', count(r.gpus)), one('fits', r.fits ? 'yes' : 'no', `${memory(r.memory_bytes.total)} of ${memory(r.gpu_memory_bytes)}`)));
    put(time, stacked('where the time of a step goes', timeParts(r), seconds));
    const m = r.memory_bytes;
    put(room, stacked('memory per GPU', [
      { name: 'parameters', value: m.params, colour: 1 }, { name: 'gradients', value: m.grads, colour: 2 }, { name: 'optimizer', value: m.optimizer, colour: 4 },
      { name: 'activations', value: m.activations, colour: 3 }, { name: 'other', value: m.other, colour: 6 }], memory, { name: 'the GPU has', value: r.gpu_memory_bytes }),
    !r.fits && h('p', {}, h('span', { class: 'tag error' }, 'does not fit'), m.total > r.gpu_memory_bytes ? ` ${memory(m.total - r.gpu_memory_bytes)} too much` : ' into the memory of the hosts'));
    put(why, r.fits ? 'What limits it' : 'Why it does not fit');
    put(limits, h('p', {}, plain(r.bottleneck.text)), fork(r, seconds), r.would_fit?.gpus === r.gpus && fits(r.would_fit, r), changes(r.advice?.slice(0, 4), unit, percent),
      r.traffic?.length > 0 && h('details', {}, h('summary', {}, 'Traffic of the step'), table('', [{ text: 'group' }, { text: 'what' }, { text: 'calls', n: true }, { text: 'size per call', n: true }, { text: 'time', n: true }, { text: 'exposed', n: true }],
        r.traffic.map((t) => [t.group, t.what, count(t.calls), bytes(t.bytes_per_call), seconds(t.comm_s), seconds(t.exposed_s)]))));
    put(ends, `The dashed line marks the end of the step, after ${seconds(r.step_s)}.`, h('span', { class: 'narrow' }, ' The picture scrolls sideways.'));
    say(r.fits ? `a step takes ${seconds(r.step_s)}; ${r.bottleneck.text}` : r.bottleneck.text);
  }

  // fits is a form of the job that has enough memory; its button asks about it.
  function fits(f, r) {
    const use = () => {
      state.set({ ...Object.fromEntries(degrees.map((k) => [k, ''])), ...settingsOf(f.settings.replace(/\bdp=\d+,/, '')) }, { push: true, quiet: true });
      window.dispatchEvent(new PopStateEvent('popstate'));
    };
    return h('p', { class: 'fits' }, 'This fits: ', h('code', {}, plain(f.settings.replaceAll(' --', ', --'))), `: ${memory(f.memory_bytes)} of ${memory(r.gpu_memory_bytes)}. `, h('button', { type: 'button', onclick: use }, 'Use these settings'));
  }

  function scaling(doc) {
    const fits = doc.rows.filter((r) => r.fits);
    put(knee, h('p', {}, term(doc.strong ? 'Strong scaling' : 'Weak scaling'), doc.knee_nodes ? `: good up to ${plural(doc.knee_nodes, 'node')}; beyond that, doubling the nodes gives less than 1.6 times the ${unit}/s.` : `: good up to ${plural(doc.rows.at(-1).nodes, 'node')}; doubling the nodes gives at least 1.6 times the ${unit}/s.`,
      fits.length ? '' : ' The job fits on none of them.'));
    curve.root.hidden = !fits.length; // what does not fit has no time
    const line = { name: 'efficiency', xs: fits.map((r) => r.nodes), ys: fits.map((r) => r.efficiency) };
    const mark = fits.filter((r) => r.knee);
    if (fits.length && fits.length < doc.rows.length) knee.append(h('p', { class: 'quiet' }, `Not drawn: ${doc.rows.filter((r) => !r.fits).map((r) => count(r.nodes)).join(', ')} nodes, where the job does not fit into GPU memory.`));
    if (fits.some((r) => r.efficiency > 1.005)) knee.append(h('p', { class: 'quiet' }, `Efficiency is ${unit}/s per node, relative to ${plural(fits.find((r) => Math.abs(r.efficiency - 1) < 1e-9)?.nodes || fits[0].nodes, 'node')}. Above 100%: with more nodes shards are smaller, or NCCL chooses a faster algorithm.`));
    curve.draw([line, ...(mark.length ? [{ name: 'good up to here', points: true, colour: 4, xs: mark.map((r) => r.nodes), ys: mark.map((r) => r.efficiency) }] : [])],
      fits.map((r) => `${r.nodes} nodes: ${percent(r.efficiency)}`).join(', '));
    knee.append(h('details', {}, h('summary', {}, 'As a table'), table('', [{ text: 'nodes', n: true }, { text: 'step', n: true }, { text: `${unit}/s`, n: true }, { text: 'efficiency', n: true }, { text: 'fits' }, { text: 'limited by' }],
      doc.rows.map((r) => [count(r.nodes), r.fits ? seconds(r.step_s) : '', r.fits ? short(r.tokens_per_s) : '', r.fits ? percent(r.efficiency) : '', r.fits ? 'yes' : 'no', r.bottleneck]), (i) => doc.rows[i].knee)));
  }

  const kind = cut(clusterWord(state, here)).name;
  state.watch((changes) => {
    if (cut(clusterWord(state, here)).name !== kind || ['m', 'l', 'gpu', 'nic', 'framework'].some((k) => k in changes)) { // other sliders, and other values where nobody set them
      focused = document.activeElement?.labels?.[0]?.textContent || '';
      window.dispatchEvent(new PopStateEvent('popstate'));
      return;
    }
    moved = moved || performance.now();
    delete cards.dataset.rested;
    clearTimeout(later);
    going?.abort(); // what may come later does not hold up what is dragged
    refresh.go();
  });
  const back = focused && [...root.querySelectorAll('.controls input, .controls select')].find((x) => x.labels?.[0]?.textContent === focused);
  focused = '';
  if (back) back.focus();
  await refresh.go();
  return () => { clearTimeout(later); curve.end(); };
}
