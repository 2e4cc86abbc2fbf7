// Numbers as people read them, with their units.

// number has three digits, or as many as stand before its point.
export function number(x) {
  if (x === 0) return '0';
  const a = Math.abs(x);
  if (a >= 1000) return Math.round(x).toLocaleString('en');
  return String(Number(x.toPrecision(3)));
}

// bytes are 1024-based, as nccl-tests prints sizes.
export function bytes(x) {
  const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let i = 0;
  while (Math.abs(x) >= 1024 && i < names.length - 1) { x /= 1024; i++; }
  return `${number(x)} ${names[i]}`;
}

// memory of a GPU is 1024-based: a card that is sold as 80 GB has 80 GiB.
export function memory(x) { return `${number(x / 2 ** 30)} GiB`; }

// seconds is a time with the unit that fits.
export function seconds(x) {
  if (x >= 3600) return `${number(x / 3600)} h`;
  if (x >= 1) return `${number(x)} s`;
  if (x >= 1e-3) return `${number(x * 1e3)} ms`;
  return `${number(x * 1e6)} µs`;
}

// rate is given in GB/s, one direction.
export function rate(x) {
  if (x >= 1000) return `${number(x / 1000)} TB/s`;
  if (x >= 1 || x <= 0) return `${number(x)} GB/s`;
  return x >= 1e-3 ? `${number(1e3 * x)} MB/s` : `${number(1e6 * x)} kB/s`;
}

export function percent(x) { return `${(100 * x).toFixed(x !== 0 && Math.abs(x) < 0.1 ? 1 : 0)}%`; }

export function count(x) { return Math.round(x).toLocaleString('en'); }

// short is a count with the letter that people say.
export function short(x) {
  for (const [v, letter] of [[1e12, 'T'], [1e9, 'B'], [1e6, 'M'], [1e3, 'K']]) if (x >= v) return number(x / v) + letter;
  return number(x);
}

// counted is what the rates of a step count: a picture is a sequence of one token.
export function counted(job) { return job?.seq === 1 ? 'samples' : 'tokens'; }

export function plural(n, word) { return `${count(n)} ${word}${n === 1 ? '' : 's'}`; }

// hosts spells out a hostlist such as node[0-3,7],big1.
export function hosts(list) {
  const out = [];
  const parts = list.match(/[^,[]+(\[[^\]]*\])?[^,]*/g) || [];
  for (const part of parts) {
    const m = /^([^[]*)\[([^\]]*)\](.*)$/.exec(part);
    if (!m) { out.push(part.trim()); continue; }
    for (const range of m[2].split(',')) {
      const [from, to] = range.split('-');
      if (to === undefined) { out.push(m[1] + from + m[3]); continue; }
      const last = Math.min(Number(to), Number(from) + 100000);
      for (let i = Number(from); i <= last; i++) out.push(m[1] + String(i).padStart(from.length, '0') + m[3]);
    }
  }
  return out;
}
