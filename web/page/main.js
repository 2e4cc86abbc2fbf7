import { h, put, say, failure } from './dom.js';
import { ask, request, events } from './api.js';
import { State } from './state.js';

// Views, which index.html links, and home, which the page opens with. Each is a module with:
// export async function show(root, state, api). It fills root, and may return a function that is called when the view is left.
const views = [...document.querySelectorAll('#nav a')].map((a) => [a.pathname.slice(1), a.textContent]);

const api = { ask, request, events, me: request('/api/me').then((a) => a.doc) }; // me is who asks
const root = document.getElementById('main');
let leave = null;
let shown = 0;

function current() {
  const name = location.pathname.slice(1);
  return views.some(([v]) => v === name) ? name : 'home';
}

// remembered are the cluster with what is said about its hardware, and the model, which follow from view to view.
const remembered = {};
function remember(state) {
  for (const k of ['c', 'm']) if (state.get(k) && state.get(k) !== 'fleet') remembered[k] = state.get(k);
  if (state.get('c') && state.get('c') === remembered.c) for (const k of ['gpu', 'nic']) remembered[k] = state.get(k);
}

function href(view) {
  const q = new URLSearchParams();
  if (remembered.c && !['doctor', 'fleet', 'jobs', 'sources'].includes(view)) for (const k of ['c', 'gpu', 'nic']) if (remembered[k]) q.set(k, remembered[k]);
  if (remembered.m && (view === 'step' || view === 'plan')) q.set('m', remembered.m);
  const text = q.toString().replaceAll('%3A', ':').replaceAll('%40', '@');
  return `/${view}${text ? `?${text}` : ''}`;
}

function navigation(now) {
  put(document.getElementById('nav'), views.map(([name, title]) =>
    h('a', { href: href(name), 'aria-current': name === now ? 'page' : undefined }, title)));
}

async function show() {
  const turn = ++shown;
  if (leave) leave();
  leave = null;
  const name = current();
  const state = new State(name === 'home' ? '' : name, location.search);
  state.watch(() => { remember(state); navigation(name); });
  remember(state);
  navigation(name);
  const title = views.find(([v]) => v === name)?.[1] || 'Home';
  document.title = `${title} – busbar`;
  const holder = h('div', {});
  put(root, holder);
  try {
    const view = await import(`./${name}.js`);
    const end = await view.show(holder, state, api);
    if (turn === shown) leave = typeof end === 'function' ? end : null;
    else if (typeof end === 'function') end();
    say(`${title} is shown`);
  } catch (error) {
    put(holder, failure(error));
  }
}

// Links between views do not load the page again.
document.addEventListener('click', (event) => {
  const a = event.target.closest('a[href]');
  if (!a || event.button || event.metaKey || event.ctrlKey || event.shiftKey || a.target) return;
  const url = new URL(a.href);
  if (url.origin !== location.origin || !['', ...views.map(([v]) => v)].includes(url.pathname.slice(1))) return;
  event.preventDefault();
  history.pushState(null, '', url.pathname + url.search);
  show();
  root.focus();
});
window.addEventListener('popstate', show);

function theme() {
  const button = document.getElementById('theme');
  const names = ['auto', 'light', 'dark'];
  let now = names.includes(localStorage.getItem('theme')) ? localStorage.getItem('theme') : 'auto';
  const apply = () => {
    if (now === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = now;
    button.textContent = `Theme: ${now}`;
    window.dispatchEvent(new Event('themed'));
  };
  button.addEventListener('click', () => {
    now = names[(names.indexOf(now) + 1) % names.length];
    localStorage.setItem('theme', now);
    apply();
  });
  apply();
}

document.getElementById('logout').addEventListener('click', async () => {
  await fetch('/logout', { method: 'POST' });
  location.assign('/login');
});

theme();
api.me.then((me) => {
  document.getElementById('who').textContent = me.role === 'read' ? 'read only' : '';
  document.getElementById('logout').title = `logged in as ${me.name}; busbar ${me.version}`;
}).catch(() => {});
show();
