import { h, put, id, failure } from './dom.js';
import { send } from './api.js';

// Controls that several views have.

// field is a labelled control; help is said below it.
export function field(label, control, help) {
  control.id = control.id || id('f');
  const hint = help && h('small', { id: id('hint'), class: 'quiet' }, help);
  if (hint) control.setAttribute('aria-describedby', hint.id);
  return h('div', { class: 'field' }, h('label', { for: control.id }, label), control, hint);
}

// choice is a select over [value, text] or [group, [[value, text]…]].
export function choice(options, value, onchange) {
  const option = ([v, text]) => h('option', { value: v, selected: v === value }, text);
  return h('select', { onchange: (e) => onchange(e.target.value) },
    options.map((o) => (Array.isArray(o[1]) ? h('optgroup', { label: o[0] }, o[1].map(option)) : option(o))));
}

// text is an input that speaks when it is left or Enter is pressed.
export function text(value, onchange, attrs) {
  return h('input', { type: 'text', value, spellcheck: 'false', autocomplete: 'off', ...attrs, onchange: (e) => onchange(e.target.value.trim()) });
}

// check is a box with its label.
export function check(label, on, onchange) {
  const box = h('input', { type: 'checkbox', id: id('b'), checked: on, onchange: (e) => onchange(e.target.checked) });
  return h('div', { class: 'check' }, box, h('label', { for: box.id }, label));
}

let presets = null;
export async function presetList(api) {
  presets = presets || (await api.ask('presets')).doc.presets;
  return presets;
}

let models = null;
export async function modelList(api) {
  models = models || (await api.ask('models')).doc.models;
  return models;
}

// cut splits dgx-h100:4 and @…:4.
export function cut(word) {
  const m = /^(.*?)(?::(\d+))?$/.exec(word || '');
  return { name: m[1], nodes: m[2] ? Number(m[2]) : 0 };
}

// clusterPicker chooses a preset with a number of nodes, this machine, or a file.
export async function clusterPicker(api, state, { here = true, fleet = false, otherwise = 'dgx-h100:4', count = true } = {}) {
  const all = await presetList(api);
  const word = state.params.has('c') ? state.get('c') : otherwise;
  const now = cut(word === 'this' || word === 'fleet' ? '' : word);
  const names = { };
  const said = h('div', {});
  const groups = [['Machines', []], ['Clouds', []], ['Single GPUs', []]];
  for (const p of all) {
    const g = p.gpus_per_node === 1 && !p.nics_per_node ? 2 : /^(aws|azure|gcp|oci|lambda|coreweave)-/.test(p.name) ? 1 : 0;
    groups[g][1].push([p.name, p.name]);
    names[p.name] = p;
  }
  const options = groups.filter((g) => g[1].length);
  if (here) options.unshift(['this', 'this machine']);
  if (fleet) options.unshift(['fleet', 'the fleet']);
  if (now.name.startsWith('@')) options.unshift([now.name, 'uploaded file']);
  else if (now.name && !names[now.name]) options.unshift([now.name, now.name]);
  const value = word === 'this' || word === 'fleet' ? word : now.name;
  const nodes = h('input', { type: 'number', min: '1', max: '20000', placeholder: 'all', value: value === 'this' || value === 'fleet' || (value.startsWith('@') && !now.nodes) ? '' : String(now.nodes || names[now.name]?.nodes || 1) });
  const about = h('small', { class: 'quiet' });
  const tell = (name) => { about.textContent = name === 'fleet' ? 'The nodes that have joined this server.' : name === 'this' ? 'The machine that this server runs on.' : names[name]?.summary || (name.startsWith('@') ? 'Read from the file.' : ''); };
  const set = () => {
    const name = list.value;
    if (!count) nodes.value = String(cut(state.get('c', otherwise)).nodes || 1);
    nodes.disabled = name === 'this' || name === 'fleet';
    if (nodes.disabled) nodes.value = ''; // what is there is counted elsewhere
    tell(name);
    state.set({ c: nodes.disabled || (name.startsWith('@') && !nodes.value) ? name : `${name}:${Math.max(1, Number(nodes.value) || 1)}` });
  };
  const list = choice(options, value, () => { nodes.value = list.value.startsWith('@') ? '' : String(names[list.value]?.nodes > 1 ? names[list.value].nodes : Math.max(1, Number(nodes.value) || 1)); set(); });
  nodes.addEventListener('change', set);
  nodes.disabled = value === 'this' || value === 'fleet';
  tell(value);
  const file = h('input', { type: 'file', onchange: async () => {
    try {
      const doc = await send(file.files[0]);
      list.prepend(h('option', { value: doc.id }, doc.name));
      list.value = doc.id;
      put(said);
      nodes.value = ''; // as many as the file tells of
      tell(doc.id);
      state.set({ c: doc.id });
    } catch (error) { put(said, failure(error)); }
  } });
  return h('fieldset', {}, h('legend', {}, 'Cluster'),
    h('div', { class: 'row' }, field('Kind', list), count && narrow(field('Nodes', nodes))), about,
    h('details', {}, h('summary', {}, 'From a file'), field('Topology, cluster file or output of a tool', file, 'nvidia-smi topo -m, NCCL or lstopo XML, ibnetdiscover, topology.conf, YAML …')), said);
}

function narrow(node) { node.style.setProperty('flex', '0 0 5.5rem'); return node; }

// clusterWord is the cluster of a question: '' asks about this machine.
export function clusterWord(state, otherwise = 'dgx-h100:4') {
  const word = state.params.has('c') ? state.get('c') : otherwise;
  return word === 'this' ? '' : word;
}

// modelPicker chooses a model by name, by its dimensions, or from a config.json.
export async function modelPicker(api, state, otherwise) {
  const all = await modelList(api);
  const value = state.get('m', otherwise);
  const options = all.map((m) => [m.name, m.name]);
  if (!all.some((m) => m.name === value)) options.unshift([value, value.startsWith('@') ? 'uploaded config.json' : value]);
  const said = h('div', {});
  const list = choice(options, value, (v) => state.set({ m: v }));
  const own = text('', (v) => { if (v) { list.prepend(h('option', { value: v }, v)); list.value = v; state.set({ m: v }); } }, { placeholder: 'params=20B,layers=48' });
  const file = h('input', { type: 'file', accept: '.json', onchange: async () => {
    try {
      const doc = await send(file.files[0]);
      list.prepend(h('option', { value: doc.id }, doc.name));
      list.value = doc.id;
      put(said);
      state.set({ m: doc.id });
    } catch (error) { put(said, failure(error)); }
  } });
  return h('fieldset', {}, h('legend', {}, 'Model'), field('Name', list),
    h('details', {}, h('summary', {}, 'Another model'), field('Its size', own, 'Such as params=20B,layers=48,hidden=6144'), field('config.json of Hugging Face', file)), said);
}
