import { h, put, table } from './dom.js';

// The source documents as docs/seeds.md has them: what each says, our command, our figure. The file is shown as it is.
export async function show(root) {
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
  put(root, h('div', { class: 'view wide sources' }, parts));
}

// rows is a table of Markdown.
function rows(lines) {
  const cells = lines.map((l) => l.replace(/^\| |\|$/g, '').split(' | '));
  return table('', cells[0].map((text) => ({ text, w: text === 'the text' || text === 'why' })), cells.slice(2).map((row) => row.map((c) => inline(c.trim()))));
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
