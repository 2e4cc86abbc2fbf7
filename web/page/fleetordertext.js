import { fold } from './fleethosts.js';
import { busbar } from './fleetwords.js';
import { hosts } from './units.js';

// What people write into the form of an order, read as busbar fleet order reads it, and the command that gives the same order.

const steps = { '': 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3, kib: 1024, mib: 1024 ** 2, gib: 1024 ** 3, b: 1, kb: 1e3, mb: 1e6, gb: 1e9 };

// size reads 4M and 64K (1024-based), 1MiB, 1MB (1000-based) or a number of bytes; NaN for anything else.
export function size(text) {
  const m = /^(\d+(?:\.\d+)?)\s*([kmg]?(?:i?B)?)$/i.exec(text.trim());
  if (!m || m[2].endsWith('b')) return NaN; // a small b means bits
  const x = Number(m[1]) * steps[m[2].toLowerCase()];
  return m[2] === '' && x % 1 ? NaN : Math.round(x);
}

// span reads 10m, 1h, 1d or 30s as seconds; 0 for nothing or once, NaN for anything else.
export function span(text) {
  const m = /^(\d+(?:\.\d+)?)\s*(s|m|min|h|d)$/i.exec(text.trim());
  if (m) return Number(m[1]) * { s: 1, m: 60, min: 60, h: 3600, d: 86400 }[m[2].toLowerCase()];
  return ['', 'once'].includes(text.trim().toLowerCase()) ? 0 : NaN;
}

// speed reads 5GB/s, 50MB/s or 40Gb/s as GB/s; NaN for anything else.
export function speed(text) {
  const m = /^(\d+(?:\.\d+)?)\s*([KMGT])(B|b|bit)(?:\/s|ps)$/.exec(text.trim());
  return m ? Number(((Number(m[1]) * { K: 1e-6, M: 1e-3, G: 1, T: 1e3 }[m[2]]) / (m[3] === 'B' ? 1 : 8)).toPrecision(12)) : NaN;
}

// first reads when an order begins: nothing is now, 02:30 is that time here, the next day where it has passed and the order
// does not repeat, else a date with its time. undefined for now, null for anything else.
export function first(text, repeats, now = new Date()) {
  const words = text.trim();
  if (['', 'now'].includes(words.toLowerCase())) return undefined;
  const clock = /^(\d{1,2}):(\d{2})$/.exec(words);
  if (clock) {
    if (clock[1] > 23 || clock[2] > 59) return null;
    const at = new Date(now.getFullYear(), now.getMonth(), now.getDate(), Number(clock[1]), Number(clock[2]));
    if (at < now && !repeats) at.setDate(at.getDate() + 1);
    return at;
  }
  if (!/^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2})?(Z|[+-]\d{2}:\d{2})?$/.test(words)) return null;
  const at = new Date(words.replace(' ', 'T'));
  return Number.isNaN(at.getTime()) ? null : at;
}

// stamp is a time as the server and the command read it, to the second.
export function stamp(time) { return `${time.toISOString().slice(0, 19)}Z`; }

// names spells out a hostlist, and says what is wrong with it.
export function names(text) {
  const list = hosts(text.replaceAll(' ', ''));
  for (const n of list) if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(n)) throw new Error(`${n} is not a node name`);
  const twice = list.find((n, i) => list.indexOf(n) !== i);
  if (twice) throw new Error(`${twice} is named twice`);
  if (list.length < 2) throw new Error('a measurement needs two nodes at least');
  return list;
}

// word is a number of bytes as short as it can be said exactly.
function word(n) {
  for (const [k, v] of [['G', 1024 ** 3], ['M', 1024 ** 2], ['K', 1024]]) if (n >= v && n % v === 0) return `${n / v}${k}`;
  return String(n);
}

function quoted(text) { return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`; }

// command is the line that gives an order.
export function command(o) {
  const w = o.what, caps = o.caps || {};
  const flags = [];
  const add = (name, value) => { if (value !== undefined && value !== '' && value !== 0) flags.push(`--${name} ${quoted(String(value))}`); };
  add('nodes', o.nodes && fold(o.nodes));
  if (o.job !== undefined) { // a check before a job has the rest by itself
    add('job', o.job);
    add('size', word(w.large_bytes));
    add('rounds', o.rounds);
    add('max-rate', caps.rate_GBps && `${caps.rate_GBps}GB/s`);
    return busbar(`order check ${flags.join(' ')}`);
  }
  if (w.measure === 'pairs') { add('size', word(w.large_bytes)); add('small', word(w.small_bytes)); add('rounds', o.rounds); add('at-once', o.at_once); } else { add('op', w.op); add('algo', w.algo); add('size', w.sizes_bytes.map(word).join(',')); }
  flags.push(`--warmup ${w.warm} --iters ${w.iters}`);
  add('max-rate', caps.rate_GBps && `${caps.rate_GBps}GB/s`);
  add('max-time', caps.time_ns && `${caps.time_ns / 1e9}s`);
  add('busy', caps.always ? 'any' : caps.busy_GBps && `${caps.busy_GBps}GB/s`);
  add('every', o.every_ns && `${o.every_ns / 1e9}s`);
  add('from', o.from);
  return busbar(`order ${w.measure} ${flags.join(' ')}`);
}
