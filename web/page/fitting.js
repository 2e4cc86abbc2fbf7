import { clusterWord, cut, hardware, layouts, modelList, presetList } from './pick.js';

// What a page asks at first: a job that the chosen cluster can run. What somebody has set himself stands in the address and stays.

export const degrees = ['tp', 'pp', 'cp', 'ep', 'vpp', 'zero', 'sp'];

// parallel is the word for --parallel, of the degrees that somebody set. The server finds those that nobody did.
export function parallel(state, otherwise = {}) {
  const tp = state.get('tp', otherwise.tp ?? '');
  const list = degrees.map((k) => [k, state.get(k, otherwise[k] ?? '')]).filter(([k, v]) => v !== '' && (k !== 'sp' || Number(tp) > 1));
  return [...list.map(([k, v]) => `${k}=${v}`), state.get('parallel')].filter(Boolean).join(',');
}

// split is the degrees of an answer's job, which names them in a word or one by one.
export function split(p) {
  if (typeof p === 'string') return Object.fromEntries(p.split(',').map((x) => x.split('=')));
  return { ...p, sp: p.sequence_parallel ? '1' : '0' };
}

// splitWords are the degrees that are not 1.
export function splitWords(p) {
  const d = split(p);
  return [...['dp', 'tp', 'pp', 'cp', 'ep', 'vpp', 'zero', 'shard'].filter((k) => d[k] > 1 || (k === 'zero' && d[k] > 0)).map((k) => `${k}=${d[k]}`), d.sp === '1' && 'sp', d.order && d.order !== 'tp-cp-dp-pp' && d.order].filter(Boolean).join(' ') || 'one GPU';
}

// spread takes the degrees out of a --parallel that stands in the address, so that sliders show them.
export function spread(state) {
  const found = {}, rest = [];
  for (const part of state.get('parallel').split(',').filter(Boolean)) {
    const [k, v] = part.split('=');
    if (degrees.includes(k)) found[k] = v;
    else rest.push(part);
  }
  if (Object.keys(found).length) state.set({ ...found, parallel: rest.join(',') }, { quiet: true });
}

// sizes are the nodes of a cluster, and the GPUs and NICs of each; wrong is why they are not known.
export async function sizes(api, state, here) {
  const word = clusterWord(state, here), { name, nodes } = cut(word);
  const preset = (await presetList(api)).find((p) => p.name === name);
  if (preset && !state.get('nic')) return { nodes: nodes || preset.nodes || 1, gpus: preset.gpus_per_node, nics: preset.nics_per_node };
  let wrong = null;
  const sum = await api.ask('map', { c: word, ...hardware(state) }).then((a) => a.doc.summary, (error) => { wrong = error; });
  return sum ? { nodes: sum.nodes, gpus: sum.gpus_per_node || Math.floor(sum.gpus / sum.nodes), nics: Math.floor(sum.nics / sum.nodes) } : { nodes: nodes || 1, gpus: 1, nics: 0, wrong };
}

// widest is the most tensor-parallel ranks that divide a node's GPUs and the model's heads, at most 8.
async function widest(api, state, name, has) {
  const heads = (await modelList(api)).find((m) => m.name === name)?.heads;
  const [nodes, gpus] = /^(\d+)x(\d+)$/.exec(state.get('l'))?.slice(1).map(Number) || [has.nodes, has.gpus];
  const others = state.number('pp', 1) * state.number('cp', 1);
  return [8, 4, 2].find((tp) => heads && heads % tp === 0 && gpus % tp === 0 && nodes * gpus % (tp * others) === 0) || 1;
}

// splits are those to try: first that of the server, then the simplest.
function splits(state, tp) {
  const framework = state.get('framework');
  if (/^(ddp|fsdp|hf|unsloth|llm-foundry)\b/.test(framework)) return [{ zero: '' }];
  if (framework) return [{ zero: '' }, { tp, zero: '' }];
  return [{ zero: '' }, { tp: 1, zero: 1 }, { tp, zero: 1 }, { tp, zero: 2 }, { tp, zero: 3 }, { tp: 1, zero: 3 }];
}

// fitting is the model and the split that are asked about where nobody says: the first that fits into memory, else the last that runs.
export async function fitting(api, state, here, has) {
  const c = clusterWord(state, here);
  let found = null;
  for (const m of state.get('m') ? [state.get('m')] : ['llama3-70b', 'llama3-8b', 'gpt2-large']) {
    const tried = new Set();
    for (const { tp, zero } of splits(state, await widest(api, state, m, has))) {
      const job = { m, tp: state.get('tp', String(tp ?? '')), zero: state.get('zero', String(zero)), sp: tp ? '1' : '' };
      const key = `${job.tp} ${job.zero}`;
      if (tried.has(key)) continue;
      tried.add(key);
      const q = { c, m, parallel: parallel(state, job), ...hardware(state), ...layouts(state.get('l')), ...state.pick('framework', 'micro-batch', 'global-batch', 'seq', 'precision', 'recompute', 'offload', 'kernels', 'lora') };
      const answer = await api.ask('step', q).catch((error) => error);
      if (answer.doc?.rows[0].fits) return job;
      if (answer.doc || !found) found = job;
      if (!answer.doc && (['gpu', 'nic'].includes(answer.field) || state.get('m'))) return found; // another split would not help
    }
  }
  return found;
}
