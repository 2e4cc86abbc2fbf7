import { h } from './dom.js';

// fitting is as much of a part's name as has room.
function fitting(p, value, room) {
  if (8 * (p.name.length + value.length + 1) < room) return `${p.name} ${value}`;
  return 8 * p.name.length < room ? p.name : '';
}

// sideBySide is a bar for each of several cases, on one scale: [{name, parts, total, text}], with what limits each below it.
export function sideBySide(label, list, show) {
  const most = Math.max(...list.map((x) => x.total));
  const colours = new Map(list.flatMap((x) => x.parts.filter((p) => p.value > 0).map((p) => [p.name, p.colour])));
  return h('div', { class: 'side-by-side' },
    h('ol', { 'aria-label': label }, list.map((x) => h('li', {}, h('p', {}, h('strong', {}, x.name), ' ', show(x.total), x.range && h('span', { class: 'quiet' }, ` (${x.range})`)),
      h('div', { class: 'strip', style: { width: `${Math.max(0.5, 100 * x.total / most)}%` } }, x.parts.filter((p) => p.value > 0).map((p) => h('span', { class: `part part${p.colour}`, title: `${p.name}: ${show(p.value)}`, style: { width: `${100 * p.value / x.total}%` } }))),
      h('p', { class: 'quiet' }, x.text)))),
    colours.size > 1 && h('ul', { class: 'legend' }, [...colours].map(([name, colour]) => h('li', {}, h('span', { class: `swatch part${colour}` }), name))));
}

// stacked is a bar of parts: [{name, value, colour}], with a mark where there is a limit. The list below says the same.
export function stacked(label, parts, show, limit) {
  const kept = parts.filter((p) => p.value > 0);
  const sum = kept.reduce((n, p) => n + p.value, 0);
  const most = Math.max(sum, limit?.value || 0) * 1.01 || 1;
  const share = (x) => `${(100 * x / most).toFixed(3)}%`;
  const words = `${label}: ${kept.map((p) => `${p.name} ${show(p.value)}`).join(', ')}${limit ? `; ${limit.name} ${show(limit.value)}` : ''}`;
  return h('div', { class: 'bar' },
    h('div', { class: 'strip', role: 'img', 'aria-label': words },
      kept.map((p) => h('span', { class: `part part${p.colour}`, title: `${p.name}: ${show(p.value)}`, style: { width: share(p.value) } }, fitting(p, show(p.value), 430 * p.value / most))),
      limit && h('span', { class: 'limit', style: { left: share(limit.value) } })),
    h('ul', { class: 'legend' }, kept.map((p) => h('li', {}, h('span', { class: `swatch part${p.colour}` }), `${p.name} ${show(p.value)}`)),
      limit && h('li', {}, h('span', { class: 'swatch mark' }), `${limit.name} ${show(limit.value)}`)));
}
