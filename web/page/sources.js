import { h, put, table } from './dom.js';
import { allReduces, sideBySide } from './bars.js';
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
  const figure = (what) => lines.map(cells).find((row) => row[0] === what)?.[1]; // of a row, theirs
  baskerville(api, figure).then((drawn) => put(picture, drawn), (error) => put(picture, h('p', { class: 'quiet' }, error.message)));
}

// baskerville is the picture of one command: steps, and all-reduces by ring and tree with what a link carries, beside the
// document's figures. Those of 2×2 are of GPUs of the other socket.
async function baskerville(api, figure) {
  const { doc, command } = await api.ask('step', { c: 'baskerville', m: 'gpt2-large', framework: 'ddp', precision: 'bf16', 'micro-batch': 4, 'global-batch': 16, bucket: '25MiB', compare: '1x4,2x2,4x1' });
  const measured = (what, layout) => figure(`${what} on ${layout.replace('x', '×')}`);
  const beside = (x) => { // all-reduces were of 1.32 GB
    const time = measured(x.algo === 'ring' ? 'Ring' : 'Tree', x.layout);
    return `; published: ${time} for 1.32 GB, ${seconds(parseFloat(time) / 1e3 * x.size_bytes / 1.32e9)} for as much`;
  };
  const rows = doc.rows.map((r) => ({ ...r, ...(r.layout === '2x2' ? r.branches[1] : {}), branches: [], compute: r.step_s - r.exposed_comm_s })).sort((a, b) => a.layout.localeCompare(b.layout));
  return [h('h2', {}, 'Four GPUs of Baskerville on one, two (those of the other socket) and four nodes'),
    h('h3', {}, 'A step of GPT-2 Large'), sideBySide('time of a step', rows.map((x) => ({ name: x.layout, total: x.step_s, parts: [{ name: 'compute and update', value: x.compute, colour: 1 }, { name: 'exposed communication', value: x.step_s - x.compute, colour: 2 }],
      text: x === rows[0] ? '' : `${(x.step_s / rows[0].step_s).toFixed(2)} × as long as on one node; published: ${measured('Epoch', x.layout)}` })), seconds),
    h('h3', {}, `All-reduce of ${(rows[0].all_reduces[0].size_bytes / 1e9).toFixed(2)} GB, all gradients in one`), allReduces(rows, beside),
    h('p', { class: 'quiet' }, h('code', {}, command))];
}

// cells are those of a line of a table.
function cells(line) { return line.replace(/^\| |\|$/g, '').split(' | ').map((c) => c.trim()); }

// rows is a table of Markdown: the command, and where its figure is, come last, since they are long.
function rows(lines) {
  const order = ([text, theirs, command, at, ours, off, why = '']) => [text, theirs, ours, off, why, [command, at]];
  return table('', order(cells(lines[0])).map((x) => ({ text: [x].flat().join(', '), w: x === 'the text' || x === 'why' })),
    lines.slice(2).map((l) => order(cells(l)).map((c) => (Array.isArray(c) ? [inline(c[0]), h('br'), inline(c[1])] : inline(c)))));
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
