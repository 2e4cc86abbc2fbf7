import { clusterWord, cut, hardware, layouts, presetList } from './pick.js';

// What a page asks at first: a job that the chosen cluster can run. What somebody has set himself stands in the address and stays.

export const degrees = ['tp', 'pp', 'cp', 'ep', 'vpp', 'zero', 'sp'];

// parallel is the word for --parallel, of the degrees that somebody set. The server finds those that nobody did.
export function parallel(state) {
  const list = degrees.filter((k) => state.get(k) && (k !== 'sp' || state.get('tp') !== '1')).map((k) => `${k}=${state.get(k)}`);
  return [...list, state.get('parallel')].filter(Boolean).join(',');
}

// splitWords are the degrees that are not 1.
export function splitWords(d) {
  return [...['dp', 'tp', 'pp', 'cp', 'ep', 'vpp', 'zero', 'shard'].filter((k) => d[k] > 1 || (k === 'zero' && d[k] > 0)).map((k) => `${k}=${d[k]}`), d.sequence_parallel && 'sp', d.order && d.order !== 'tp-cp-dp-pp' && d.order].filter(Boolean).join(' ') || 'one GPU';
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

// settingsOf are the flags of a text such as --parallel tp=8 --recompute full, by their names.
export function settingsOf(text) { return Object.fromEntries([...text.matchAll(/--([a-z-]+) (\S+)/g)].map((x) => x.slice(1))); }

// fitting is the model that is asked about where nobody names one: the first that the cluster holds. The server finds the rest.
export async function fitting(api, state, here) {
  const models = state.get('m') ? [state.get('m')] : ['llama3-70b', 'llama3-8b', 'gpt2-large'];
  for (const m of models.slice(0, -1)) {
    const q = { c: clusterWord(state, here), m, parallel: parallel(state), ...hardware(state), ...layouts(state.get('l')), ...state.pick('framework', 'micro-batch', 'global-batch', 'seq', 'precision', 'recompute', 'offload', 'kernels', 'lora') };
    if (await api.ask('step', q).then((a) => a.doc.rows[0].fits, () => false)) return m;
  }
  return models.at(-1);
}
