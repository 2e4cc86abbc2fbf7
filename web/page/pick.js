import { h, put, id, failure } from './dom.js';
import { send } from './api.js';
import { droppable } from './drop.js';

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
  const item = ([v, text]) => h('option', { value: v, selected: v === value }, text);
  return h('select', { onchange: (e) => onchange(e.target.value) },
    options.map((o) => (Array.isArray(o[1]) ? h('optgroup', { label: o[0] }, o[1].map(item)) : item(o))));
}

// text is an input that speaks when it is left or Enter is pressed.
export function text(value, onchange, attrs) {
  return h('input', { type: 'text', value, spellcheck: 'false', autocomplete: 'off', ...attrs, onchange: (e) => onchange(e.target.value.trim()) });
}

// entry is a field of the question's parameter of that name, by which an error of the server finds it; option is one that
// takes some values alone.
export function entry(state, name, label, attrs, help) { return field(label, text(state.get(name, attrs?.otherwise), (v) => state.set({ [name]: v }), { name, ...attrs, otherwise: undefined }), help); }

export function option(state, name, label, values, otherwise, help) {
  const control = choice(values.map((v) => (Array.isArray(v) ? v : [v, v])), state.get(name, otherwise), (v) => state.set({ [name]: v }));
  control.name = name;
  return field(label, control, help);
}

// group is a part of a form that most people leave as it is: on a phone it is closed.
export function group(title, ...kids) {
  return h('details', { class: 'group', open: matchMedia('(min-width: 60rem)').matches }, h('summary', {}, title), kids);
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

// alone is whether a preset is one GPU and nothing else; nodes of several are called 4xa6000.
const alone = (p) => p?.gpus_per_node === 1 && !p.nics_per_node;

// gpuNames are the catalogue's GPUs.
const gpuNames = (all) => all.filter(alone).map((p) => [p.name, p.name]);

// counted splits 4xa6000 where a6000 is a GPU of the catalogue.
function counted(name, names) {
  const m = /^(\d+)x(.+)$/i.exec(name);
  return m && alone(names[m[2].toLowerCase()]) ? { kind: m[2].toLowerCase(), per: Number(m[1]) } : { kind: name, per: 1 };
}

// kinds are what the list of clusters offers.
function kinds(all, names, first) {
  const groups = [['Machines', []], ['Clouds', []], ['GPUs, any number per node', []]];
  for (const p of all) groups[alone(p) ? 2 : /^(aws|azure|gcp|oci|lambda|coreweave)-/.test(p.name) ? 1 : 0][1].push([p.name, p.name]);
  return [...first, ...groups.filter((g) => g[1].length)];
}

const own = (word) => word === 'this' || word === 'fleet' || word.startsWith('@'); // told by a source, not by the catalogue
const measuredElsewhere = (word) => word === 'this' || word === 'fleet';

// clusterPicker chooses a preset with a number of nodes, GPUs of the catalogue, this machine, or a file; and says what no source
// does: the model of GPUs, and NICs.
export async function clusterPicker(api, state, { here = true, fleet = false, otherwise = 'dgx-h100:4', count = true } = {}) {
  const all = await presetList(api);
  const names = Object.fromEntries(all.map((p) => [p.name, p]));
  const word = state.params.has('c') ? state.get('c') : otherwise;
  const now = cut(measuredElsewhere(word) ? '' : word);
  const { kind, per } = counted(measuredElsewhere(word) ? word : now.name, names);
  const first = [fleet && ['fleet', 'the fleet'], here && ['this', 'this machine']].filter(Boolean);
  if (kind.startsWith('@')) first.unshift([kind, await api.ask('map', { c: kind }).then((a) => a.doc.name || 'uploaded file', () => 'uploaded file')]); // the view's own question says what is wrong with it
  else if (kind && !names[kind] && !first.some(([v]) => v === kind)) first.unshift([kind, kind]);
  const list = choice(kinds(all, names, first), kind, () => {
    each.value = '1';
    const p = names[list.value];
    nodes.value = !p || own(list.value) ? '' : String(p.nodes > 1 ? p.nodes : p.nics_per_node ? Math.max(1, held()) : 1); // nothing joins nodes without NICs
    set(true);
  });
  const each = h('input', { type: 'number', min: '1', max: '16', value: String(per), onchange: () => set() });
  const nodes = h('input', { type: 'number', min: '1', max: '20000', placeholder: 'all', disabled: measuredElsewhere(kind), value: own(kind) && !now.nodes ? '' : String(now.nodes || names[now.name]?.nodes || 1), onchange: () => set() });
  const model = choice([['', 'as the source says'], ...gpuNames(all)], state.get('gpu'), (v) => state.set({ gpu: v }));
  const nics = text(state.get('nic'), (v) => state.set({ nic: v.replaceAll(' ', '') }), { list: 'speeds', placeholder: 'as they are' });
  [list.name, model.name, nics.name] = ['c', 'gpu', 'nic']; // errors lead to them
  const about = h('small', { class: 'quiet' }), said = h('div', {});
  const perNode = field('GPUs per node', each), gpu = field('GPU model', model), nic = field('NICs', nics, 'Such as 25GbE (one per node) or 4xHDR (four per node).');
  const held = () => cut(state.get('c', otherwise)).nodes || 1;
  const tell = () => {
    const v = list.value;
    about.textContent = v === 'fleet' ? 'The nodes that have joined this server.' : v === 'this' ? 'The machine that this server runs on.' : v.startsWith('@') ? 'Read from the file.' : alone(names[v]) ? '' : names[v]?.summary || '';
    perNode.hidden = !alone(names[v]);
    gpu.hidden = !own(v) || v === 'fleet';
    nic.hidden = v === 'fleet';
    nics.placeholder = alone(names[v]) ? 'none' : 'as they are';
  };
  const set = (other) => {
    const v = list.value;
    nodes.disabled = measuredElsewhere(v);
    if (nodes.disabled) nodes.value = ''; // what is there is counted elsewhere
    const many = count || other ? Number(nodes.value) : held();
    const n = Math.max(1, Number(each.value) || 1);
    const name = alone(names[v]) ? `${n}x${v}` : v;
    if (other) model.value = nics.value = '';
    tell();
    state.set({ c: own(v) && !nodes.value ? v : `${name}:${Math.max(1, many || 1)}`, ...(other ? { gpu: '', nic: '' } : {}) });
  };
  tell();
  const take = async (files) => {
    if (!files.length) return;
    try {
      const doc = await send(...files);
      list.prepend(h('option', { value: doc.id }, doc.name));
      list.value = doc.id;
      put(said);
      nodes.value = ''; // as many as the file tells of
      set(true);
    } catch (error) { put(said, failure(error)); }
  };
  const file = h('input', { type: 'file', multiple: true, onchange: () => take([...file.files]) });
  return droppable(h('fieldset', {}, h('legend', {}, 'Cluster'), field('Kind', list), about,
    h('div', { class: 'row' }, perNode, count && narrow(field('Nodes', nodes))),
    gpu, nic, h('datalist', { id: 'speeds' }, ['10GbE', '25GbE', '100GbE', '200GbE', '400GbE', 'EDR', 'HDR', 'NDR', '4xHDR', '8xNDR'].map((v) => h('option', { value: v }))),
    h('details', {}, h('summary', {}, 'From files'), field('Topology, cluster file or output of a tool', file, 'nvidia-smi topo -m, NCCL or lstopo XML, ibnetdiscover, topology.conf, YAML …; several, or a folder dropped here, are joined')), said), take);
}

// missing are what a question needs that no source says, with the field that would say it.
const missing = {
  gpu: 'No source names the GPUs of this cluster. Choose the GPU model under Cluster.',
  nic: 'Nothing says which NICs the nodes have, and the job needs several nodes. Enter the NICs under Cluster, or ask about 1 node.',
};

// controlNames are the controls of parameters that the server calls otherwise.
const controlNames = { cluster: 'c', source: 'c', model: 'm', layout: 'l', compare: 'l', minbytes: 'b', maxbytes: 'e', datatype: 'd' };

// refused shows why there is no answer, in said and at the field that it is about; without an error both go. A question stops
// at the first fault, such as the model's name: what else is wrong, the cluster's, is shown below it.
export function refused(said, error, other) {
  for (const x of document.querySelectorAll('.controls .wrong')) x.remove();
  for (const x of document.querySelectorAll('.controls [aria-invalid]')) x.removeAttribute('aria-invalid');
  put(said, error && atField(error), error && other && other.message !== error.message && failure(other));
}

function atField(error) {
  const control = error.field && document.querySelector(`.controls [name="${CSS.escape(controlNames[error.field] || error.field)}"]`);
  if (!control) return failure(error);
  const lacks = !control.value && missing[error.field];
  control.setAttribute('aria-invalid', 'true');
  for (let x = control.parentElement; !x.matches('.controls'); x = x.parentElement) if (x.matches('details')) x.open = true; else x.hidden = false;
  if (!lacks) control.after(h('small', { class: 'wrong' }, error.message));
  return h('p', { class: 'error', role: 'alert' }, lacks || error.message, ' ', h('button', { type: 'button', onclick: () => { control.focus(); control.scrollIntoView({ block: 'center' }); } }, 'Go to the field'));
}

// layouts are one layout, or several that are compared: 1x4,2x2,4x1.
export function layouts(text) {
  const list = text.replaceAll(' ', '');
  return list.includes(',') ? { compare: list } : { l: list };
}

// asFields writes what a link says by the names of flags as the view's fields have it: layouts in one, sizes as a range.
export function asFields(state) {
  const sizes = state.get('size').split(',');
  if (sizes[0]) state.set({ b: sizes[0], e: sizes.at(-1), size: '' }, { quiet: true });
  for (const name of ['compare', 'layouts']) if (state.get(name)) state.set({ l: state.get(name), [name]: '' }, { quiet: true });
}

// hardware is what is said about a cluster's hardware, in a question.
export const hardware = (state) => state.pick('gpu', 'nic');

// frameworks of --framework; the release may follow in the address: megatron@0.12.
export function frameworkPicker(state, otherwise) {
  const now = state.get('framework');
  const list = [['ddp', 'PyTorch DDP'], ['fsdp', 'PyTorch FSDP'], ['deepspeed', 'DeepSpeed'], ['megatron', 'Megatron-LM'], ['torchtitan', 'torchtitan'], ['hf', 'Hugging Face Trainer'], ['nemo', 'NeMo'], ['maxtext', 'MaxText'], ['colossalai', 'Colossal-AI'],
    ['megatron-deepspeed', 'Megatron-DeepSpeed'], ['llm-foundry', 'LLM Foundry'], ['internevo', 'InternEvo'], ['unsloth', 'Unsloth'], ['paddle', 'PaddlePaddle']];
  if (now && !list.some(([v]) => v === now)) list.unshift([now, now]);
  return option(state, 'framework', 'Framework', [['', otherwise], ...list]);
}

// adapting are settings that fewer jobs have: offload, kernels, LoRA.
export function adapting(state, otherwise) {
  return h('details', { open: ['offload', 'kernels', 'lora'].some((k) => state.get(k)) }, h('summary', {}, 'Offload, kernels, LoRA'),
    option(state, 'offload', 'Offload to host memory', [['', otherwise], 'none', 'optimizer', ['parameters', 'optimizer and parameters']]),
    option(state, 'kernels', 'Kernels', [['', "the framework's"], 'eager', ['compiled', 'torch.compile'], ['fused', 'fused, as Megatron-LM']]),
    entry(state, 'lora', 'LoRA', { placeholder: 'none' }, 'Such as rank=16, or rank=16,bits=4 for QLoRA.'));
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
  list.name = 'm';
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
