import { h, id } from './dom.js';

// slider goes through a list of values: [[value, text], …]. It speaks while it is dragged.
export function slider(label, values, value, onmove, help) {
  let at = values.findIndex(([v]) => String(v) === String(value));
  if (at < 0) { // a value that came with the address
    values = [...values, [value, String(value)]];
    at = values.length - 1;
  }
  const name = id('s');
  label.removeAttribute?.('tabindex'); // the slider itself is one stop
  const shown = h('output', { for: name }, values[at][1]);
  const input = h('input', {
    type: 'range', id: name, min: '0', max: String(values.length - 1), step: '1', value: String(at), 'aria-valuetext': values[at][1],
    oninput: () => {
      const [v, text] = values[Number(input.value)];
      shown.textContent = text;
      input.setAttribute('aria-valuetext', text);
      onmove(v);
    },
  });
  return h('div', { class: 'field' }, h('label', { for: name }, label, shown), input, help && h('small', { class: 'quiet' }, help));
}

// powers are 1, 2, 4 … up to a number.
export function powers(most, show = String) {
  const out = [];
  for (let n = 1; n <= most; n *= 2) out.push([n, show(n)]);
  return out;
}
