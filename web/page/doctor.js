import { h, put, failure, say } from './dom.js';
import { Latest, send, address } from './api.js';
import { Share } from './share.js';
import { id } from './dom.js';
import { percent, plural } from './units.js';

const small = 16 << 20; // what the server keeps, so that the address can be shared
const several = 64;
const most = 200 << 20; // what the server takes at once

// Why a job is slow, broken or hung: logs are dropped here, or somebody says what is wrong.
export async function show(root, state, api) {
  const share = new Share(state);
  const about = h('p', { 'aria-live': 'polite' }, 'Logs stay on the server’s machine.');
  const said = h('div', {}), out = h('div', { class: 'cards' });
  const pick = h('input', { type: 'file', multiple: true, id: id('files'), onchange: () => take([...pick.files]) });
  const words = h('textarea', { id: id('words'), rows: '3', placeholder: 'all_reduce is ten times slower on two nodes than on one …' });
  const drop = h('div', { class: 'drop' }, h('p', {}, h('strong', {}, 'Drop logs here'), ', or choose them:'),
    h('label', { class: 'unseen', for: pick.id }, 'Log files'), pick,
    h('p', { class: 'quiet' }, 'NCCL logs, output of nccl-tests, nvidia-smi, lspci, ibstat, dmesg, launch scripts, tracebacks; up to 200 MB.'));
  for (const kind of ['dragenter', 'dragover']) drop.addEventListener(kind, (e) => { e.preventDefault(); drop.classList.add('over'); });
  for (const kind of ['dragleave', 'drop']) drop.addEventListener(kind, () => drop.classList.remove('over'));
  drop.addEventListener('drop', (e) => { e.preventDefault(); take([...e.dataTransfer.files]); });
  const tell = h('form', { class: 'card', onsubmit: (e) => { e.preventDefault(); if (words.value.trim()) take([new File([words.value], 'what-was-said.txt', { type: 'text/plain' })]); } },
    h('div', { class: 'field' }, h('label', { for: words.id }, 'Or paste a log, or say what is wrong'), words), h('p', {}), h('button', { type: 'submit', class: 'main' }, 'Examine'));
  put(root, h('div', { class: 'view' },
    h('header', {}, h('div', {}, h('h1', {}, 'Doctor'), about), share.root),
    h('section', { class: 'controls', 'aria-label': 'what is examined' }, drop, tell, said),
    h('section', { 'aria-label': 'findings' }, out)));
  put(out, h('div', { class: 'card empty' }, h('p', {}, 'Findings come here: the cause, the fix, how sure it is, and the lines it rests on.')));

  async function take(files) {
    if (!files.length) return;
    put(said);
    const size = files.reduce((sum, f) => sum + f.size, 0);
    if (size > most) {
      put(said, failure(new Error(`${Math.ceil(size / (1 << 20))} MB of logs; the server takes ${most >> 20} MB at once: send those of a few ranks`)));
      return;
    }
    out.classList.add('busy');
    say('examining');
    try {
      if (files.length <= several && files.every((f) => f.size <= small)) {
        const ids = [];
        for (const f of files) ids.push((await send(f)).id);
        state.set({ file: ids }, { push: true });
        return;
      }
      const form = () => { const x = new FormData(); for (const f of files) x.append('file', f, f.name); return x; };
      const answer = await api.request('/api/doctor', { method: 'POST', body: form() });
      draw(answer);
    } catch (error) {
      put(said, failure(error));
    }
    out.classList.remove('busy');
  }

  const refresh = new Latest(async () => {
    const file = state.all('file');
    if (!file.length) return;
    out.classList.add('busy');
    try {
      const answer = await api.ask('doctor', { file });
      put(said);
      draw(answer);
      await rings(file);
    } catch (error) { put(said, failure(error)); }
    out.classList.remove('busy');
  });

  function draw(answer) {
    const doc = answer.doc;
    share.of(answer);
    about.textContent = doc.findings.length ? plural(doc.findings.length, 'finding') : 'nothing found that is wrong';
    put(out, h('div', { class: 'card' }, h('h2', {}, 'Findings'),
      doc.findings.length ? h('ol', { class: 'findings' }, doc.findings.map(finding)) : h('p', {}, 'Nothing is wrong in what was read.'),
      h('p', { class: 'quiet' }, `${plural(doc.lines || 0, 'line')} read from ${(doc.sources || []).join(', ')}`)));
    say(`${about.textContent}${doc.findings[0] ? `: ${doc.findings[0].title}` : ''}`);
  }

  // rings are what NCCL set up, where a log says so.
  async function rings(file) {
    try {
      const answer = await api.ask('explain', { file });
      const doc = answer.doc;
      out.append(h('div', { class: 'card' }, h('h2', {}, 'Rings, trees and NICs'),
        h('div', { class: 'paper' }, h('img', { src: address('explain', { file, o: 'svg' }), alt: `what NCCL set up${doc.ranks ? ` for ${doc.ranks} ranks` : ''}: rings, trees and what passes each NIC; the findings and the JSON say the same in words` })),
        h('p', {}, h('a', { href: answer.url, target: '_blank', rel: 'noopener' }, 'the same as JSON'))));
    } catch (error) {
      if (error.status !== 400 && error.status !== 422) out.append(failure(error));
    }
  }

  state.watch(() => refresh.go());
  await refresh.go();
}

function finding(f) {
  return h('li', { class: `finding ${f.severity}` },
    h('p', {}, h('span', { class: `tag ${f.severity}` }, f.severity), ' ', h('strong', {}, f.title), f.confidence && h('span', { class: 'quiet' }, ` – ${percent(f.confidence)} sure`)),
    f.cause && h('p', {}, f.cause), f.fix && h('p', {}, h('strong', {}, 'Fix: '), f.fix), f.cost && h('p', { class: 'quiet' }, f.cost),
    f.evidence?.length > 0 && h('details', {}, h('summary', {}, plural(f.evidence.length, 'line')), h('pre', { tabindex: '0', 'aria-label': 'lines it rests on' }, f.evidence.map((e) => `${e.file}:${e.line}: ${e.text}`).join('\n'))));
}
