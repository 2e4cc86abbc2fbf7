import { h } from './dom.js';
import { seconds } from './units.js';

// Words and small things that all parts of the fleet share.

// ago is how long ago a time was.
export function ago(time) {
  const s = Math.max(0, (Date.now() - new Date(time).getTime()) / 1000);
  if (s < 1.5) return 'now';
  return `${span(s)} ago`;
}

// span is a duration in whole units.
export function span(s) {
  if (s < 90) return `${Math.round(s)} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  if (s < 129600) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} days`;
}

// when is a time of day, with the date where it is another day.
export function when(time) {
  const t = new Date(time), now = new Date();
  const clock = t.toLocaleTimeString('en-GB');
  return t.toDateString() === now.toDateString() ? clock : `${t.toLocaleDateString('en-GB', { day: 'numeric', month: 'short', year: t.getFullYear() === now.getFullYear() ? undefined : 'numeric' })} ${clock}`;
}

export function nanos(x) { return seconds(x / 1e9); }

// curl is the command line of what has no command of its own.
export function curl(url) {
  return `curl -H "Authorization: Bearer $BUSBAR_TOKEN" '${location.origin}${url.replaceAll("'", '%27')}'`;
}

// busbar is a command of the fleet that asks this server.
export function busbar(words) {
  const usual = location.protocol === 'http:' && location.host === '127.0.0.1:7641';
  return `busbar fleet ${words}${usual ? '' : ` --server ${location.origin}`}`;
}

// shown is an answer for the bar that shares it; words are those of the command that gives the same.
export function shown(answer, words) {
  return { url: answer.url, command: words ? busbar(words) : curl(answer.url) };
}

// wayName is a transport, and a rail where there are several.
export function wayName(by, rail) { return `${(by || 'tcp').toUpperCase()}${rail ? ` over ${rail}` : ''}`; }

// tag is a word with a frame; its class colours it, the word says it.
export function tag(word, kind) { return h('span', { class: `tag ${kind || ''}` }, word); }

// move shows another part of the fleet: only these parameters stay in the address.
export function move(state, params) {
  const all = Object.fromEntries([...state.params.keys()].map((k) => [k, '']));
  state.set({ ...all, ...params }, { push: true });
}

// to is a link to another part; it can also be opened elsewhere.
export function to(state, params, ...text) {
  const q = new URLSearchParams(params).toString();
  return h('a', { href: `/fleet${q ? `?${q}` : ''}`, onclick: (e) => {
    if (e.button || e.metaKey || e.ctrlKey || e.shiftKey) return;
    e.preventDefault();
    e.stopPropagation();
    move(state, params);
  } }, text);
}
