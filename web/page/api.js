import { bytes } from './units.js';

// What the page asks the server. Every answer is a command's --json, and comes with the command line that gives
// the same.

// address is a question's URL: parameters that are empty are left out.
export function address(name, params) {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(params || {})) {
    for (const one of Array.isArray(v) ? v : [v]) if (one !== undefined && one !== null && one !== '' && one !== false) q.append(k, one === true ? '1' : String(one));
  }
  const text = q.toString();
  return `/api/${name}${text ? `?${text}` : ''}`;
}

export async function ask(name, params, options) { return request(address(name, params), options); }

// request gives an answer: its document, its address, the command line that gives the same, and what is said besides.
export async function request(url, options) {
  const res = await fetched(url, options);
  const doc = await res.json().catch(() => ({}));
  if (!res.ok) throw Object.assign(new Error(doc.error || `the server answered ${res.status}`), { status: res.status, command: doc.command, reading: doc.reading, field: doc.field });
  return { doc, url, command: decodeURIComponent(res.headers.get('X-Busbar-Command') || ''), notes: doc.notes || [] };
}

async function fetched(url, options) {
  let res;
  try {
    res = await fetch(url, { headers: { Accept: 'application/json' }, ...options });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Error('the server does not answer');
  }
  if (res.status === 401) { // the session has ended
    location.assign(`/login?to=${encodeURIComponent(location.pathname + location.search)}`);
    throw new Error('log in again');
  }
  return res;
}

// What the server takes at once.
const most = { bytes: 200 << 20, files: 2000 };

// send uploads files together and gives what names them (@…). What the server would not take is not sent.
export async function send(...files) {
  const no = refusal(files);
  if (no) throw new Error(no);
  const form = new FormData();
  for (const f of files) form.append('file', f, f.name);
  const { doc } = await request('/api/files', { method: 'POST', body: form });
  return { ...doc, name: files.length > 1 ? `${doc.name} and ${files.length - 1} more` : doc.name };
}

// refusal is why the server would not take files, said before they are sent.
function refusal(files) {
  const frame = 1024; // what a form adds for each
  const all = files.reduce((n, f) => n + f.size, 0), one = files.length === 1;
  if (!files.length) return 'Drop files, paste a log, or say what is wrong, and then examine it.';
  if (!all) return one ? `${files[0].name} is empty.` : 'All of these files are empty.';
  if (files.length > most.files) return `These are ${files.length} files; the server takes ${most.files} at once. Send those of a few ranks, or use busbar on the machine that has them.`;
  if (all + frame * files.length <= most.bytes) return '';
  return `${one ? `${files[0].name} has` : `These ${files.length} files have`} ${bytes(all)}; the server takes ${bytes(most.bytes)} at once, and nothing was sent. Send the logs of a few ranks, or a gzip or tar.gz of them, or examine them where they are: busbar doctor ${one ? files[0].name : 'FOLDER'}`;
}

// Latest keeps one question in flight: a newer one waits, and replaces any that waited.
export class Latest {
  constructor(work) { this.work = work; this.running = false; this.next = null; }

  async go(...args) {
    this.next = args;
    if (this.running) return;
    this.running = true;
    try {
      while (this.next) {
        const now = this.next;
        this.next = null;
        await this.work(...now);
      }
    } finally {
      this.running = false;
    }
  }

  // stale reports whether a newer question waits, so that an answer need not be drawn in full.
  get stale() { return this.next !== null; }
}

// events listens to what happens on the server: on({kind: handler}). It comes again by itself.
export function events(handlers) {
  const source = new EventSource('/api/events');
  for (const [kind, handle] of Object.entries(handlers)) source.addEventListener(kind, (event) => handle(JSON.parse(event.data)));
  return source;
}
