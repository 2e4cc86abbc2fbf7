// Elements, without a framework. Text is always text: nothing from an answer is read as HTML.

// h makes an element: attributes, on… handlers, and children that are nodes or text.
export function h(tag, attrs, ...kids) { return fill(document.createElement(tag), attrs, kids); }

// s makes an element of a picture.
export function s(tag, attrs, ...kids) { return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attrs, kids); }

function fill(node, attrs, kids) {
  for (const [name, value] of Object.entries(attrs || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'style') for (const [p, v] of Object.entries(value)) node.style.setProperty(p, v);
    else if (value === true) node.setAttribute(name, '');
    else node.setAttribute(name, value);
  }
  add(node, kids);
  return node;
}

function add(node, kids) {
  for (const kid of kids) {
    if (Array.isArray(kid)) add(node, kid);
    else if (kid !== null && kid !== undefined && kid !== false) node.append(kid);
  }
}

// put replaces what a node holds.
export function put(node, ...kids) {
  node.replaceChildren();
  add(node, kids);
  return node;
}

// grown is how much larger type is than on a small screen; pictures made of pixels grow with it.
export function grown() { return parseFloat(getComputedStyle(document.documentElement).fontSize) / 15; }

let ids = 0;
// id is a name that no other element has.
export function id(stem) { return `${stem}-${++ids}`; }

// say tells people who listen rather than look.
export function say(text) {
  const live = document.getElementById('live');
  if (live && live.textContent !== text) live.textContent = text;
}

// table makes a table of rows: heads are {text, n} with n for numbers, w for sentences; cells are text or nodes.
export function table(caption, heads, rows, mark) {
  return h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption || 'table' }, h('table', {},
    caption && h('caption', {}, caption),
    h('thead', {}, h('tr', {}, heads.map((x) => h('th', { scope: 'col', class: x.n && 'n' }, x.text)))),
    h('tbody', {}, rows.map((row, i) => h('tr', { class: mark && mark(i) ? 'best' : undefined },
      row.map((cell, k) => h('td', { class: heads[k] && heads[k].n ? 'n' : heads[k]?.w && 'w' }, cell)))))));
}

// ranged is a value with its expected range below it.
export function ranged(value, low, high) { return [value, h('small', { class: 'range' }, `${low} – ${high}`)]; }

// flags of the command that a document's texts name; those of other programs stay as they are.
const flags = /(^|[\s(])--(advise|algo|audit|compare|compress|devices|framework|global-batch|gpu|hosts|kernels|lora|micro-batch|nic|nccl|nodes|offload|padded|parallel|precision|price|recompute|schedule|seq|set|size|sync|tuner)(?![\w-])/g;

// plain is a text of a document with the names of parameters instead of the command's flags; whole commands stay.
export function plain(text) {
  return String(text ?? '').split(/((?:busbar|docker|kubectl|mpirun|nvidia-smi|rocm-smi|srun|torchrun) [^;()`]*)/).map((part, i) => (i % 2 ? part : part.replaceAll(' in --parallel', '').replace(flags, '$1$2'))).join('');
}

// fork is the answer where a fact that nobody gave is another than was assumed, and what tells.
export function fork(row, seconds) {
  const [taken, other] = row.branches || [];
  const time = (b) => seconds(b.time_s ?? b.step_s);
  return other && h('div', { class: 'note' }, h('strong', {}, 'Assumed: '), plain(taken.if), '. ', h('strong', {}, 'If: '), plain(other.if), `: ${time(other)} (${seconds(other.low_s)} – ${seconds(other.high_s)}) instead of ${time(taken)}. ${other.tell} tells.`);
}

// changes are settings that would make a step faster; what is bought is no setting.
export function changes(list, what, percent) {
  return list?.length > 0 && h('ul', {}, list.map((a) => h('li', {}, `${percent(a.gain)} more ${what}/s with `, a.purchase ? a.setting : h('code', {}, plain(a.setting)), `: ${plain(a.text)}`)));
}

// strange names parameters of the address that a view does not have: who follows a link should know that a part of it is not shown.
export function strange(state, known) {
  const odd = [...new Set(state.params.keys())].filter((k) => !known.includes(k));
  return odd.length > 0 && h('p', { class: 'note wide' }, `The address asks for what this view does not have: ${odd.join(', ')}.`);
}

// failure shows what went wrong.
export function failure(error) { return h('p', { class: 'error', role: 'alert' }, error.message || String(error)); }
