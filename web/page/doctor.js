import { h, id, put, failure, say, strange, plain } from './dom.js';
import { Latest, send, address } from './api.js';
import { droppable } from './drop.js';
import { Share, copier, line } from './share.js';
import { plural } from './units.js';

const unlikely = 0.2; // what is less sure stands behind the rest

// intake is where logs are dropped, chosen, pasted or described; take is given the files, or none to take the same again.
export function intake(take) {
  const pick = h('input', { type: 'file', multiple: true, id: id('files'), onchange: () => take([...pick.files]) });
  const words = h('textarea', { id: id('words'), rows: '3', placeholder: 'all_reduce is ten times slower on two nodes than on one …' });
  const paste = (text) => take(text.trim() ? [new File([text], 'pasted.txt', { type: 'text/plain' })] : []);
  const drop = droppable(h('div', { class: 'drop' }, h('p', {}, h('strong', {}, 'Drop logs here'), ', files or a folder, or choose them:'),
    h('label', { class: 'unseen', for: pick.id }, 'Log files'), pick,
    h('p', { class: 'quiet' }, 'NCCL logs, output of nccl-tests, nvidia-smi, lspci, ibstat, dmesg, launch scripts, tracebacks; up to 200 MiB in all. They stay on the server’s machine until newer uploads need their room.'),
    h('button', { type: 'button', onclick: async () => take([new File([await (await fetch(new URL('example.log', import.meta.url))).blob()], 'job.log')]) }, 'Try an example log')), take);
  return [drop, h('form', { class: 'card cards', onsubmit: (e) => { e.preventDefault(); paste(words.value); } },
    h('div', { class: 'field' }, h('label', { for: words.id }, 'Or paste a log, or say what is wrong'), words), h('div', {}, h('button', { type: 'submit', class: 'main' }, 'Examine')))];
}

// Why a job is slow, broken or hung: logs are dropped here, or somebody says what is wrong.
export async function show(root, state, api) {
  const share = new Share(state);
  const about = h('p', { 'aria-live': 'polite' }, 'Why is my job slow, broken or hung?');
  const said = h('div', {}), out = h('div', { class: 'cards' });
  put(root, h('div', { class: 'view' },
    h('header', {}, h('div', {}, h('h1', {}, 'Doctor'), about), share.root), strange(state, ['file']),
    h('section', { class: 'controls', 'aria-label': 'what is examined' }, said, intake(take)),
    h('section', { 'aria-label': 'findings' }, out)));
  put(out, h('div', { class: 'card empty' }, h('p', {}, 'Drop a log, paste one or say what is wrong: the causes stand here then, each with its fix, its confidence and the lines of evidence.')));

  // take examines files; where none are given, those of the address once more.
  async function take(files) {
    if (!files.length && state.all('file').length) { refresh.go(); return; }
    put(said, h('p', { class: 'note' }, `Sending ${plural(files.length, 'file')}.`));
    out.classList.add('busy');
    say('examining');
    try { state.set({ file: [(await send(...files)).id] }, { push: true }); } catch (error) { put(said, failure(error)); }
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
    const list = doc.findings, open = doc.undecided;
    about.textContent = open ? 'undecided: answers to these questions would decide' : list.length ? plural(list.length, 'finding') : 'no problems found';
    const likely = list.filter((f, i) => i === 0 || !f.confidence || f.confidence >= unlikely), rest = list.filter((f) => !likely.includes(f));
    const causes = open ? 'Possible causes' : 'Findings';
    put(out, open && questions(doc.questions || []),
      h('div', { class: 'card' }, h('h2', {}, causes), likely.length ? h('ol', { class: 'findings' }, likely.map(finding)) : h('p', {}, open ? 'Nothing that was read points to a cause.' : 'No problems found.'),
        rest.length > 0 && h('details', {}, h('summary', {}, `Less likely, or a consequence of these (${rest.length})`), h('ol', { class: 'findings' }, rest.map(finding))),
        h('p', { class: 'quiet' }, `${plural(doc.lines || 0, 'line')} read from ${(doc.sources || []).join(', ')}`)));
    say(`${about.textContent}${doc.findings[0] ? `: ${doc.findings[0].title}` : ''}`);
  }

  // rings are what NCCL set up, where a log says so; else why there is no picture.
  async function rings(file) {
    try {
      const { doc, url } = await api.ask('explain', { file });
      out.append(h('div', { class: 'card' }, h('h2', {}, 'Rings, trees and NICs'),
        h('div', { class: 'paper', tabindex: '0', role: 'region', 'aria-label': 'drawing of rings, trees and NICs' }, h('img', { src: address('explain', { file, o: 'svg' }), alt: `what NCCL set up${doc.ranks ? ` for ${doc.ranks} ranks` : ''}: rings, trees and what passes each NIC; the findings and the JSON say the same in words` })),
        h('p', {}, h('a', { href: url, target: '_blank', rel: 'noopener' }, 'the same as JSON'))));
    } catch (error) { out.append(error.status === 400 || error.status === 422 ? h('p', { class: 'card quiet' }, `Rings are not drawn: ${error.message}`) : failure(error)); }
  }

  state.watch(() => refresh.go());
  await refresh.go();
}

// questions are what would separate the likeliest causes best, each with the command that answers it.
function questions(list) {
  if (!list.length) return null;
  return h('div', { class: 'card' }, h('h2', {}, 'Questions that would decide'), h('ol', {}, list.map((q) => h('li', {}, h('p', {}, h('strong', {}, q.ask)), q.command && line(q.command, 'how to find out'), steps(q.ask)))));
}

// What of a sentence can be copied: a setting, or a program with its options. What busbar is asked is a view of this page.
const copied = /\b[A-Z][A-Z0-9]*_[A-Z0-9_]+=[^\s;()<>]*[^\s;,()<>.]|\b(?:unset(?: [A-Z0-9_]{5,})+|ip -br addr|(?:nvidia-smi|ethtool|lspci|dmesg|mpirun|srun|dcgmi)(?: (?:-{1,2}[\w-]+(?:[= ](?:[A-Z,]{3,}|none))?|topo|diag))+)/g;
const asked = { predict: 'predict', step: 'step', plan: 'plan', map: 'cluster', nodes: 'fleet', fleet: 'fleet', jobs: 'jobs' };

// steps are a sentence's next steps as buttons.
function steps(text) {
  const list = [...new Set((text || '').match(copied) || [])].map((x) => copier(`Copy ${x}`, x));
  const views = new Set([...(text || '').matchAll(/busbar (\w+)/g)].map((m) => asked[m[1]]).filter(Boolean));
  for (const view of views) list.push(h('a', { class: 'button', href: `/${view}` }, `Open ${view[0].toUpperCase()}${view.slice(1)}`));
  return list.length > 0 && h('p', { class: 'row steps' }, list);
}

// cause is what a cause says beyond the title, which an audit's sentence begins with.
function cause(f) {
  if (!f.cause?.startsWith(f.title)) return f.cause;
  const more = f.cause.slice(f.title.length).replace(/^[\s;:,.]+/, '');
  return more && more[0].toUpperCase() + more.slice(1);
}

function finding(f) {
  return h('li', { class: `finding ${f.severity}` },
    h('p', {}, h('span', { class: `tag ${f.severity}` }, f.severity), ' ', h('strong', {}, f.title), f.confidence && h('span', { class: 'quiet' }, ` – ${Math.round(100 * f.confidence)}% sure`)),
    f.where && h('p', { class: 'quiet' }, 'Where: ', h('code', {}, f.where)),
    cause(f) && h('p', {}, plain(cause(f))), f.fix && h('p', {}, h('strong', {}, 'Fix: '), plain(f.fix)), steps(f.fix), f.cost && h('p', { class: 'quiet' }, f.cost),
    f.reference && h('p', {}, h('a', { href: f.reference, target: '_blank', rel: 'noopener' }, 'Documentation')),
    f.evidence?.length > 0 && h('details', {}, h('summary', {}, `Evidence (${plural(f.evidence.length, 'line')})`), h('pre', { tabindex: '0', 'aria-label': 'lines of evidence' }, f.evidence.map((e) => `${e.file}:${e.line}: ${e.text}`).join('\n'))));
}
