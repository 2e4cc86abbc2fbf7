import { h, put } from './dom.js';
import { choice, field } from './pick.js';
import { ago, shown, tag, to, when } from './fleetwords.js';
import { badCard } from './fleetnodes.js';
import { fold } from './fleethosts.js';
import { percent, plural } from './units.js';

const words = { error: 'costs a job half its speed or more', warn: 'costs a job time', note: 'worth knowing' };

// finding is one fault with all that is known of it.
export function finding(state, f, brief) {
  const since = f.always ? `since the first measurement (${when(f.since)})` : `since ${when(f.since)}, ${ago(f.since)}`;
  const pair = f.nodes.length === 2;
  return h('li', { class: `finding ${f.severity}`, 'data-id': f.id, tabindex: '-1' },
    h('p', {}, tag(f.severity, f.severity), ' ', h('strong', {}, f.text)),
    h('p', { class: 'quiet' }, [f.cleared ? `resolved ${ago(f.cleared)}; began ${when(f.since)}` : since, `${Math.round(100 * f.confidence)}% sure`, f.factor > 0 && `${percent(f.factor)} of its peers’ rate`, f.clearing && 'the last sweeps were good; it may be resolved'].filter(Boolean).join(' · ')),
    !brief && f.evidence?.length > 0 && h('details', { open: !f.cleared }, h('summary', {}, `Evidence (${f.evidence.length})`), h('ul', {}, f.evidence.map((e) => h('li', {}, e)))),
    f.fix && !f.cleared && h('p', {}, h('strong', {}, 'Fix: '), f.fix),
    !brief && h('p', { class: 'quiet' }, f.nodes.length <= 8 ? f.nodes.map((n) => [to(state, { show: 'nodes', node: n }, n), ' ']) : [h('code', {}, fold(f.nodes)), ' '],
      pair && to(state, { show: 'pairs', from: f.nodes[0], to: f.nodes[1] }, 'history of this link')));
}

// findings shows what is wrong, worst first.
export function findings({ state, fleet, share }) {
  const list = h('div', {}), past = h('div', {}), bad = h('div', {});
  const set = (name) => (v) => state.set({ [name]: v });
  const word = h('input', { type: 'search', value: state.get('q'), placeholder: 'node or word', spellcheck: 'false', autocomplete: 'off', oninput: (e) => set('q')(e.target.value.trim()) });
  const controls = [h('fieldset', {}, h('legend', {}, 'Which findings'), field('About', word),
    field('At least', choice([['', 'a note'], ['warn', 'a warning'], ['error', 'an error']], state.get('least'), set('least')))),
  h('dl', { class: 'facts' }, Object.entries(words).map(([k, v]) => [h('dt', {}, tag(k, k)), h('dd', {}, v)]))];

  function wanted(f) {
    const q = state.get('q').toLowerCase();
    const rank = { note: 0, warn: 1, error: 2 };
    return rank[f.severity] >= rank[state.get('least') || 'note'] && (!q || f.text.toLowerCase().includes(q) || f.kind.includes(q) || f.nodes.some((n) => n.toLowerCase().includes(q)));
  }

  let was = '';
  function draw() {
    const now = JSON.stringify([fleet.findings, fleet.past.length, state.get('q'), state.get('least')]);
    if (now === was) return;
    was = now;
    const some = fleet.worst().filter(wanted);
    put(list, h('div', { class: 'card' }, h('h2', {}, some.length ? plural(some.length, 'finding') : 'Findings'), some.length ? h('ul', { class: 'findings' }, some.map((f) => finding(state, f)))
      : h('p', { class: 'empty' }, fleet.findings.length ? 'No finding matches.' : fleet.nodes.size < 2 ? ['No known problems. They are found once nodes are measured with each other. ', to(state, { show: 'orders' }, 'Order a measurement'), '.'] : 'No known problems.')));
    const over = fleet.past.filter(wanted).reverse();
    put(past, over.length > 0 && h('details', { class: 'card' }, h('summary', {}, plural(over.length, 'resolved finding')), h('ul', { class: 'findings' }, over.slice(0, 100).map((f) => finding(state, f, true)))));
    put(bad, badCard(fleet));
  }

  const stopped = fleet.watchParts({ findings: draw });
  return {
    controls,
    cards: [bad, list, past],
    async start() {
      draw();
      share.of(shown(fleet.answers.findings));
      const id = state.get('id');
      const at = id && list.querySelector(`[data-id="${CSS.escape(id)}"]`);
      if (at) { at.scrollIntoView({ block: 'center' }); at.focus(); }
    },
    changed: draw,
    end: stopped,
  };
}
