import { h, put, say } from './dom.js';

// A bar with a link to what is shown, its JSON, and the command that gives the same.
export class Share {
  constructor(state) {
    this.state = state;
    this.json = h('a', { hidden: true, target: '_blank', rel: 'noopener' }, 'JSON'); // until there is an answer
    this.line = h('pre', { class: 'command', hidden: true, tabindex: '0', 'aria-label': 'command line' });
    this.show = h('button', { type: 'button', hidden: true, 'aria-expanded': 'false', onclick: () => this.toggle() }, 'Command line');
    this.link = h('button', { type: 'button', onclick: () => this.copy(location.origin + this.state.url(), this.link, 'Copy link') }, 'Copy link');
    this.copyLine = h('button', { type: 'button', hidden: true, onclick: () => this.copy(this.line.textContent, this.copyLine, 'Copy command') }, 'Copy command');
    this.change = h('button', { type: 'button', class: 'change', onclick: () => this.root.closest('.view').querySelector('.controls')?.scrollIntoView() }, 'Change the question'); // on a phone it stands below the answer
    this.root = h('div', { class: 'share' }, this.change, this.link, this.json, this.show, this.copyLine, this.line);
  }

  // of sets the answers that are shown.
  of(...answers) {
    const list = answers.filter(Boolean);
    if (!list.length) return;
    this.json.hidden = false;
    this.json.href = list[0].url;
    if (list[0].url.startsWith('blob:')) this.json.setAttribute('download', 'answer.json'); // only this page has it
    else this.json.removeAttribute('download');
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

  async copy(text, button, name) {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'Copied';
      say('copied');
    } catch {
      button.textContent = 'Could not copy';
    }
    setTimeout(() => { button.textContent = name; }, 1500);
  }
}
