import { h, id } from './dom.js';

// slider goes through a list of values: [[value, text], …]. It speaks while it is dragged; param is the parameter that
// an error of the server finds it by.
export function slider(label, values, value, onmove, param) {
  let at = values.findIndex(([v]) => String(v) === String(value));
  if (at < 0) { // a value that came with the address
    values = [...values, [value, String(value)]];
    at = values.length - 1;
  }
  const name = id('s');
  label.removeAttribute?.('tabindex'); // the slider itself is one stop
  const shown = h('output', { for: name }, values[at][1]);
  const input = h('input', {
    type: 'range', id: name, name: param, min: '0', max: String(values.length - 1), step: '1', value: String(at), 'aria-valuetext': values[at][1],
    oninput: () => {
      const [v, text] = values[Number(input.value)];
      shown.textContent = text;
      input.setAttribute('aria-valuetext', text);
      onmove(v);
    },
  });
  const field = h('div', { class: 'field' }, h('label', { for: name }, label, shown), input);
  field.moveTo = (v) => { // without speaking
    const k = values.findIndex(([x]) => String(x) === String(v));
    if (k < 0) return;
    input.value = String(k);
    shown.textContent = values[k][1];
    input.setAttribute('aria-valuetext', values[k][1]);
  };
  return field;
}

// powers are 1, 2, 4 … up to a number.
export function powers(most, show = String) {
  const out = [];
  for (let n = 1; n <= most; n *= 2) out.push([n, show(n)]);
  return out;
}
