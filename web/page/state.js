// What a view shows stands in the address, so that it can be shared and gone back to.

export class State {
  constructor(view, search) {
    this.view = view;
    this.params = new URLSearchParams(search);
    this.watchers = [];
  }

  get(name, otherwise = '') { return this.params.get(name) ?? otherwise; }

  all(name) { return this.params.getAll(name); }

  number(name, otherwise) {
    const x = Number(this.params.get(name));
    return this.params.has(name) && Number.isFinite(x) ? x : otherwise;
  }

  // set changes parameters ('' removes one) and tells who watches. A step worth going back to is pushed.
  set(changes, { push = false, quiet = false } = {}) {
    for (const [k, v] of Object.entries(changes)) {
      this.params.delete(k);
      for (const one of Array.isArray(v) ? v : [v]) if (one !== '' && one !== undefined && one !== null && one !== false) this.params.append(k, one === true ? '1' : String(one));
    }
    const url = this.url();
    if (push) history.pushState(null, '', url);
    else history.replaceState(null, '', url);
    if (!quiet) for (const w of this.watchers) w(changes);
  }

  watch(w) { this.watchers.push(w); }

  url() {
    const text = this.params.toString().replaceAll('%3A', ':').replaceAll('%2C', ',').replaceAll('%40', '@');
    return `/${this.view}${text ? `?${text}` : ''}`;
  }

  // rest is the parameters that a view does not read itself: the question's own, which the server refuses where there is no such.
  rest(...own) { return this.pick(...new Set([...this.params.keys()].filter((k) => !own.includes(k)))); }

  // pick is the parameters of a question, by name.
  pick(...names) {
    const out = {};
    for (const n of names) {
      const list = this.params.getAll(n);
      if (list.length) out[n] = list.length === 1 ? list[0] : list;
    }
    return out;
  }
}
