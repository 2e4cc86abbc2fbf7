// Names of nodes: in order, folded into hostlists, and what Slurm is told about them.

// compare orders names as people do: gpu2 before gpu10.
const collator = new Intl.Collator('en', { numeric: true });
export function compare(a, b) { return collator.compare(a, b); }

// fold is a hostlist of names: gpu[1-3,7],head.
export function fold(names) {
  const stems = new Map();
  const out = [];
  const list = [...new Set(names)].sort(compare).map((name) => [name, /^(.*?)(\d{1,15})$/.exec(name)]);
  // Where some have zeros before them, all numbers of that width are written so, and others cannot stand among them.
  const padded = new Set(list.filter(([, m]) => m && m[2].length > 1 && m[2].startsWith('0')).map(([, m]) => `${m[1]} ${m[2].length}`));
  for (const [name, m] of list) {
    if (!m) { out.push(name); continue; }
    const wide = `${m[1]} ${m[2].length}`;
    const key = padded.has(wide) ? wide : m[1];
    if (!stems.has(key)) {
      stems.set(key, { stem: m[1], list: [] });
      out.push(stems.get(key));
    }
    stems.get(key).list.push(m[2]);
  }
  return out.map((x) => (typeof x === 'string' ? x : bracket(x.stem, x.list))).join(',');
}

function bracket(stem, list) {
  if (list.length === 1) return stem + list[0];
  const ranges = [];
  for (const text of list) {
    const last = ranges[ranges.length - 1];
    if (last && Number(text) === Number(last[1]) + 1) last[1] = text;
    else ranges.push([text, text]);
  }
  return `${stem}[${ranges.map(([a, b]) => (a === b ? a : `${a}-${b}`)).join(',')}]`;
}

// drain is the line that keeps new jobs off nodes. The reason must not end what stands in quotes.
export function drain(names, why) {
  const reason = `busbar: ${why}`.replace(/["'`$\\\n]/g, '').slice(0, 120);
  return `scontrol update nodename=${fold(names)} state=drain reason="${reason}"`;
}
