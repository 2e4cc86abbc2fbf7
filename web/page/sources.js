import { h, put, table } from './dom.js';
import { sideBySide } from './bars.js';
import { seconds } from './units.js';

// The source documents as docs/seeds.md has them: what each says, our command, our figure. The file is shown as it is,
// below a picture of what the first of them measured.
export async function show(root, state, api) {
  const answer = await fetch('/api/sources');
  if (!answer.ok) throw new Error(`the document did not come: ${answer.status}`);
  const lines = (await answer.text()).split('\n');
  const parts = [];
  for (let i = 0; i < lines.length; i++) {
    const title = lines[i].match(/^(#+) (.*)/);
    if (title) parts.push(h(title[1].length === 1 ? 'h1' : 'h2', {}, title[2]));
    else if (lines[i].startsWith('|')) {
      const from = i;
      while (lines[i + 1]?.startsWith('|')) i++;
      parts.push(rows(lines.slice(from, i + 1)));
    } else if (lines[i]) {
      const from = i;
      while (lines[i + 1] && !/^[#|]/.test(lines[i + 1])) i++;
      parts.push(h('p', {}, inline(lines.slice(from, i + 1).join(' '))));
    }
  }
  const picture = h('div', { class: 'card' }, h('h2', {}, 'Four GPUs of Baskerville on one, two and four nodes'), h('p', { class: 'quiet', 'aria-live': 'polite' }, 'Predicting …'));
  put(root, h('div', { class: 'document' }, parts[0], picture, parts.slice(1)));
  baskerville(api).then((drawn) => put(picture, drawn), (error) => put(picture, h('p', { class: 'quiet' }, error.message)));
}

// published are the times of an all-reduce of 1.32 GB, and of an epoch over that on one node, by the first document.
const published = { '1x4 ring': '8.59 ms', '1x4 tree': '13.06 ms', '2x2 ring': '587 ms', '2x2 tree': '309 ms', '4x1 ring': '147 ms', '4x1 tree': '176 ms', '1x4': '1 ×', '2x2': '6.62 ×', '4x1': '1.86 ×' };

// baskerville is the picture: all-reduces by ring and tree with what a link carries, and steps; those of 2×2 are of GPUs
// of the other socket.
async function baskerville(api) {
  const call = { c: 'baskerville', size: '1.32GB', d: 'bfloat16', algo: 'each' };
  const job = { c: 'baskerville', m: 'gpt2-large', framework: 'ddp', precision: 'bf16', 'micro-batch': 4, 'global-batch': 16, bucket: '25MiB', compare: '1x4,2x2,4x1' };
  const [near, far, epochs] = await Promise.all([api.ask('predict', { ...call, compare: '1x4,4x1' }), api.ask('predict', { ...call, l: '2x2', devices: '2,3' }), api.ask('step', job)]);
  const calls = [...near.doc.rows, ...far.doc.rows].sort((a, b) => a.layout.localeCompare(b.layout) || a.algo.localeCompare(b.algo));
  const carries = (r) => { const x = r.busy.find((u) => u.kind === 'nic') || r.busy[0]; return `${(x.bytes / 1e9).toFixed(2)} GB each way through ${x.kind === 'nic' ? 'a NIC' : 'an NVLink'}`; };
  const steps = epochs.doc.rows.map((r) => ({ layout: r.layout, compute: r.step_s - r.exposed_comm_s, total: r.layout === '2x2' ? r.branches[1].step_s : r.step_s })).sort((a, b) => a.layout.localeCompare(b.layout));
  return [h('h2', {}, 'Four GPUs of Baskerville on one, two and four nodes'),
    h('h3', {}, 'All-reduce of 1.32 GB'), sideBySide('time of an all-reduce', calls.map((r) => ({ name: `${r.layout} ${r.algo}`, total: r.time_s, parts: [{ name: 'time', value: r.time_s, colour: 1 }],
      text: `${carries(r)}; published: ${published[`${r.layout} ${r.algo}`]}` })), seconds),
    h('h3', {}, 'A step of GPT-2 Large'), sideBySide('time of a step', steps.map((x) => ({ name: x.layout, total: x.total, parts: [{ name: 'compute and update', value: x.compute, colour: 1 }, { name: 'exposed communication', value: x.total - x.compute, colour: 2 }],
      text: `${(x.total / steps[0].total).toFixed(2)} × as long as on one node; published: ${published[x.layout]}` })), seconds),
    h('p', { class: 'quiet' }, h('code', {}, near.command), h('br'), h('code', {}, far.command), h('br'), h('code', {}, epochs.command))];
}

// rows is a table of Markdown: the command, and where its figure is, come last, since they are long.
function rows(lines) {
  const cells = lines.map((l) => l.replace(/^\| |\|$/g, '').split(' | ').map((c) => c.trim()));
  const order = ([text, theirs, command, at, ours, off, why = '']) => [text, theirs, ours, off, why, [command, at]];
  return table('', order(cells[0]).map((x) => ({ text: [x].flat().join(', '), w: x === 'the text' || x === 'why' })),
    cells.slice(2).map((row) => order(row).map((c) => (Array.isArray(c) ? [inline(c[0]), h('br'), inline(c[1])] : inline(c)))));
}

// inline are code, strong words and links of a text.
function inline(text) {
  return text.split(/(`[^`]*`|\*\*[^*]*\*\*|\[[^\]]*\]\([^)]*\))/).map((part) => {
    const link = part.match(/^\[([^\]]*)\]\(([^)]*)\)$/);
    if (link) return /^https?:/.test(link[2]) ? h('a', { href: link[2] }, inline(link[1])) : inline(link[1]); // other documents are not served
    if (part.startsWith('**')) return h('strong', {}, part.slice(2, -2));
    return part.startsWith('`') ? h('code', {}, part.slice(1, -1)) : part;
  });
}
