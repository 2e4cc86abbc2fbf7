import { bytes } from './units.js';

// What the page asks the server. Every answer is a command's --json, and comes with the command line that gives
// the same.

export class Answer {
  constructor(doc, res, url) {
    this.doc = doc;
    this.url = url;
    this.command = decoded(res.headers.get('X-Busbar-Command'));
    this.notes = (decoded(res.headers.get('X-Busbar-Notes')) || '').split('\n').filter(Boolean).map((x) => x.replace(/^note: /, ''));
  }
}

function decoded(text) { return text ? decodeURIComponent(text) : ''; }

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

export async function request(url, options) {
  const res = await fetched(url, options);
  const doc = await res.json().catch(() => ({}));
  refused(res, doc);
  return new Answer(doc, res, url);
}

// drawing asks for a picture and gives it as an address within the page, which revoke ends.
export async function drawing(url, options) {
  const res = await fetched(url, options);
  if (!res.ok) refused(res, await res.json().catch(() => ({})));
  const answer = new Answer(null, res, url);
  answer.picture = URL.createObjectURL(await res.blob());
  return answer;
}

function refused(res, doc) {
  if (!res.ok) throw Object.assign(new Error(doc.error || `the server answered ${res.status}`), { status: res.status, command: doc.command, reading: doc.reading, field: doc.field });
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

// The server's bounds: of one file that it keeps, and of logs that it examines and removes.
export const kept = 16 << 20;
export const logs = { bytes: 200 << 20, files: 2000 };

// send uploads a file and gives the word that names it (@…). One that the server would not take is not sent.
export async function send(file) {
  if (file.size > kept) throw new Error(`${file.name} has ${bytes(file.size)}; the server keeps files of at most ${bytes(kept)}`);
  if (!file.size) throw new Error(`${file.name} is empty`);
  const answer = await request(`/api/files?name=${encodeURIComponent(file.name || 'file')}`, { method: 'POST', body: file });
  return answer.doc;
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
