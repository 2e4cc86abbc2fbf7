import { h, put, table, ranged, failure, say, changes } from './dom.js';
import { Latest, address } from './api.js';
import { Share } from './share.js';
import { clusterPicker, clusterWord, modelPicker, frameworkPicker, adapting, refused, entry, option, group, cut } from './pick.js';
import { sizes, fitting, splitWords } from './fitting.js';
import { term } from './terms.js';
import { seconds, memory, percent, short, count, counted } from './units.js';

const here = 'dgx-h100:8';

// The best ways to run a model on a cluster, and the files that start one.
export async function show(root, state, api) {
  const share = new Share(state);
  const about = h('p', { 'aria-live': 'polite' });
  const said = h('div', { class: 'said' }), cards = h('section', { class: 'cards', 'aria-label': 'answer' });
  const model = await fitting(api, state, here);
  const price = entry(state, 'price', 'Price', { placeholder: '2.50/gpu-hour' }, 'Per GPU and hour.');
  const priced = () => { price.hidden = state.get('objective') !== 'cost'; }; // nothing else asks for it
  priced();
  put(root, h('div', { class: 'view' },
    h('header', {}, h('div', {}, h('h1', {}, 'Plan'), about), share.root), said,
    h('section', { class: 'controls', 'aria-label': 'the job' }, await modelPicker(api, state, model), await clusterPicker(api, state, { here: false, otherwise: here }),
      group('Job',
        h('div', { class: 'row' }, entry(state, 'global-batch', 'Global batch, sequences', { placeholder: 'default', inputmode: 'numeric' }), entry(state, 'seq', 'Sequence length, tokens', { placeholder: "model's" })),
        option(state, 'precision', 'Precision', [['', "the framework's"], 'bf16', 'fp16', 'fp8', 'fp32', 'amp-bf16'])),
      group('Software', frameworkPicker(state, 'the best'), adapting(state, 'the best')),
      group('Goal', option(state, 'objective', 'Minimize', ['time', 'cost'], 'time'), price),
      group('Fixed',
        entry(state, 'parallel', 'Parallel degrees', { placeholder: 'nothing; or tp=8,zero=1' }),
        entry(state, 'hosts', 'Hosts', { placeholder: 'gpu[01-08]' }, 'Names for the launch files.'),
        option(state, 'top', 'Plans to show', ['3', '5', '10', '20'], '5'))),
    cards));

  function question() {
    const q = { c: clusterWord(state, here), m: state.get('m', model), top: '5', ...state.rest('c', 'm', 'price', 'o') };
    return price.hidden ? q : { ...q, price: state.get('price') };
  }

  const refresh = new Latest(async () => {
    const done = searching();
    try {
      const q = question();
      const answer = await api.ask('plan', q);
      refused(said);
      share.of(answer);
      draw(answer.doc, q, answer.notes);
    } catch (error) {
      about.textContent = '';
      refused(said, error, (await sizes(api, state, here)).wrong);
      cards.hidden = true; // what is there answers another question
      share.none();
    }
    done();
  });

  // searching shows, where the answer will be, that it is looked for and for how long; it gives what ends that.
  function searching() {
    const began = Date.now(), passed = h('span', {});
    const tick = () => put(passed, `${Math.round((Date.now() - began) / 1000)} s`);
    tick();
    refused(said);
    about.textContent = 'searching';
    say('searching');
    cards.hidden = false;
    put(cards, h('div', { class: 'card', 'aria-busy': 'true' }, h('h2', {}, 'Searching the best plan'), h('progress', { 'aria-label': 'search' }),
      h('p', {}, 'Degrees, batches, recomputation and schedules are priced for this cluster: ', passed, ' so far. Large clusters take up to a minute; then the best that was found is shown.')));
    const timer = setInterval(tick, 1000);
    return () => clearInterval(timer);
  }

  function draw(doc, q, notes) {
    const best = doc.plans[0];
    about.textContent = `${count(doc.considered)} settings compared; step time of the best: ${seconds(best.step_s)}`;
    put(cards,
      h('div', { class: 'card' }, h('h2', {}, 'The best plan'), h('p', {}, h('strong', {}, words(best)), ' – ', best.why),
        best.row && h('dl', { class: 'figures' }, [['step time', ranged(seconds(best.step_s), seconds(best.low_s), seconds(best.high_s))], [`${counted(best.row?.job)}/s`, short(best.row.tokens_per_s)], [`${counted(best.row?.job)}/s/GPU`, short(best.tokens_per_s_per_gpu)], [term('MFU'), percent(best.mfu)], ['memory per GPU', [memory(best.row.memory_bytes.total), h('small', {}, `of ${memory(best.row.gpu_memory_bytes)}`)]], ['GPUs', count(best.row.gpus)]].map(([a, b]) => h('div', {}, h('dt', {}, a), h('dd', {}, b)))),
        changes(best.row?.advice, counted(best.row?.job), percent),
        doc.tie && h('p', {}, `Plans 1 to ${doc.tie.plans.at(-1)} cannot be told apart: they are within ${percent(doc.tie.margin - 1)}. `),
        doc.framework && h('p', {}, `Framework: ${doc.framework}`, doc.framework_reason ? ` (${doc.framework_reason})` : '', (doc.other_frameworks || []).map((o) => `; with ${o.framework} ${percent(o.gain)} better`)),
        notes.map((x) => h('p', { class: 'quiet' }, x))),
      h('div', { class: 'card' }, h('h2', {}, 'Ranking'), table('Best first; = marks plans that cannot be told apart; the expected range is below the step time',
        [{ text: '#', n: true }, { text: 'plan, and why', w: true }, { text: 'step', n: true }, { text: `${counted(best.row?.job)}/s/GPU`, n: true }, { text: term('MFU'), n: true }, { text: 'memory per GPU', n: true }],
        doc.plans.map((p) => [`${p.rank}${p.tied ? '=' : ''}`, reason(p, q), ranged(seconds(p.step_s), seconds(p.low_s), seconds(p.high_s)), short(p.tokens_per_s_per_gpu), percent(p.mfu), p.row ? `${memory(p.row.memory_bytes.total)} of ${memory(p.row.gpu_memory_bytes)}` : '']), (i) => i === 0)),
      holder);
    say(about.textContent);
    files(1, q);
  }

  // What a plan is, why, and its files share the first cell: columns further right are out of sight on small screens.
  const reason = (p, q) => [words(p), h('p', { class: 'why' }, `${p.reason}: ${p.why.replace(/^[\d.]+% slower: /, '')}`), h('button', { type: 'button', 'aria-label': `files of plan ${p.rank}`, onclick: () => files(p.rank, q) }, 'Files')];

  const holder = h('div', { class: 'card', id: 'files' });
  async function files(rank, q) {
    put(holder, h('h2', {}, `Files of plan ${rank}`), h('p', { class: 'quiet' }, 'writing …'));
    try {
      const answer = await api.ask('plan/files', { ...q, pick: rank, list: 1 });
      put(holder, h('h2', {}, `Files of plan ${rank}`),
        h('p', {}, h('a', { class: 'button', href: address('plan/files', { ...q, pick: rank }), download: 'plan.tar.gz' }, 'Download all (plan.tar.gz)')),
        answer.doc.files.map((f) => h('details', {}, h('summary', {}, f.name, h('span', { class: 'quiet' }, ` ${f.executable ? 'program, ' : ''}${count(f.text.split('\n').length)} lines`)), h('pre', { class: 'command', tabindex: '0', 'aria-label': f.name }, f.text.length > 20000 ? `${f.text.slice(0, 20000)}\n…` : f.text))));
    } catch (error) { put(holder, h('h2', {}, `Files of plan ${rank}`), failure(error)); }
  }

  const kind = cut(clusterWord(state, here)).name;
  state.watch(() => {
    priced();
    if (!state.get('m') && cut(clusterWord(state, here)).name !== kind) window.dispatchEvent(new PopStateEvent('popstate')); // another model may fit
    else refresh.go();
  });
  await refresh.go();
}

// words are a plan's degrees that are not 1, and its other settings.
function words(p) {
  return [splitWords(p.parallel || {}), p.micro_batch && `micro-batch ${p.micro_batch}`, p.recompute && p.recompute !== 'none' && `recompute ${p.recompute}`, p.schedule].filter(Boolean).join(' ');
}
