import { h, plain } from './dom.js';
import { seconds } from './units.js';

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

// allReduces are what layouts of a step take to sum all gradients in one call, by algorithm, with what a link carries; a
// layout that is open has both answers. more adds to the text of a row.
export function allReduces(rows, more = () => '') {
  const ways = rows.flatMap((r) => [{ name: r.layout, list: r.all_reduces }, ...(r.branches || []).map((b) => ({ name: `${r.layout}, if ${plain(b.if)}:`, list: b.all_reduces }))]);
  const carries = (x) => `${(x.bytes / 1e9).toFixed(2)} GB each way through ${x.kind === 'nic' ? 'a NIC' : 'an NVLink'}`;
  const list = ways.flatMap((w) => (w.list || []).map((x) => ({ name: `${w.name} ${x.algo}`, total: x.time_s, range: `${seconds(x.low_s)} – ${seconds(x.high_s)}`, parts: [{ name: 'time', value: x.time_s, colour: 1 }],
    text: `${x.chosen ? "NCCL's choice; " : ''}${carries(x.busy.find((u) => u.kind === 'nic') || x.busy[0])}${more(x)}` })));
  return list.length > 0 && sideBySide('time of an all-reduce', list, seconds);
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
