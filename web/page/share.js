import { h, put, say } from './dom.js';

// copier is a button that copies a text.
export function copier(name, text) {
  const button = h('button', { type: 'button', onclick: async () => {
    try {
      await navigator.clipboard.writeText(typeof text === 'function' ? text() : text);
      button.textContent = 'Copied';
      say('copied');
    } catch {
      button.textContent = 'Could not copy';
    }
    setTimeout(() => { button.textContent = name; }, 1500);
  } }, name);
  return button;
}

// line is a command that can be copied.
export function line(text, label) {
  return h('div', { class: 'copyline' }, h('pre', { class: 'command', tabindex: '0', 'aria-label': label || 'command line' }, text), copier('Copy', text));
}

// A bar with a link to what is shown, its JSON, and the command that gives the same.
export class Share {
  constructor(state) {
    this.state = state;
    this.json = h('a', { hidden: true, target: '_blank', rel: 'noopener' }, 'JSON'); // until there is an answer
    this.line = h('pre', { class: 'command', hidden: true, tabindex: '0', 'aria-label': 'command line' });
    this.show = h('button', { type: 'button', hidden: true, 'aria-expanded': 'false', onclick: () => this.toggle() }, 'Command line');
    this.link = copier('Copy link', () => location.origin + this.state.url());
    this.copyLine = copier('Copy command', () => this.line.textContent);
    this.copyLine.hidden = true;
    this.root = h('div', { class: 'share' }, this.link, this.json, this.show, this.copyLine, this.line);
  }

  // of sets the answers that are shown.
  of(...answers) {
    const list = answers.filter(Boolean);
    if (!list.length) return;
    this.json.hidden = false;
    this.json.href = list[0].url;
    this.show.hidden = !list.some((a) => a.command);
    put(this.line, list.map((a) => a.command).filter(Boolean).join('\n'));
  }

  // none says that there is no answer.
  none() {
    if (!this.line.hidden) this.toggle();
    this.json.hidden = true;
    this.show.hidden = true;
  }

  toggle() {
    const open = this.line.hidden;
    this.line.hidden = !open;
    this.copyLine.hidden = !open;
    this.show.setAttribute('aria-expanded', String(open));
  }
}
