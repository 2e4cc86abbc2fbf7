import { h, id } from './dom.js';

// slider goes through a list of values: [[value, text], …]. It speaks while it is dragged; param is the parameter that
// an error of the server finds it by.
export function slider(label, values, value, onmove, param) {
  const find = (v) => values.findIndex(([x]) => String(x) === String(v));
  let at = find(value);
  if (at < 0) { // a value that came with the address
    values = [...values, [value, String(value)]];
    at = values.length - 1;
  }
  const name = id('s');
  label.removeAttribute?.('tabindex'); // the slider itself is one stop
  const shown = h('output', { for: name });
  const input = h('input', { type: 'range', id: name, name: param, min: '0', max: String(values.length - 1), step: '1', oninput: () => { show(Number(input.value)); onmove(values[Number(input.value)][0]); } });
  const show = (k) => {
    input.value = String(k);
    shown.textContent = values[k][1];
    input.setAttribute('aria-valuetext', values[k][1]);
  };
  show(at);
  return Object.assign(h('div', { class: 'field' }, h('label', { for: name }, label, shown), input), { moveTo: (v) => { if (find(v) >= 0) show(find(v)); else shown.textContent = v; } }); // without speaking
}

// powers are 1, 2, 4 … up to a number.
export function powers(most, show = String) {
  const out = [];
  for (let n = 1; n <= most; n *= 2) out.push([n, show(n)]);
  return out;
}
