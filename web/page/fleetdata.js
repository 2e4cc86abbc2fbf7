import { Topology } from './topology.js';
import { compare } from './fleethosts.js';

// Fleet is what the server knows of nodes, findings and orders, kept up to date by its events.

// silentAfter is how long a node may say nothing: a little more than the server allows, which says so itself when asked.
const silentAfter = 40000;

export class Fleet {
  constructor(api) {
    this.api = api;
    this.nodes = new Map();
    this.orders = new Map();
    this.findings = [];
    this.past = [];
    this.kept = [];
    this.doing = new Map();
    this.watchers = [];
    this.later = new Map();
    this.answers = {};
    this.topology = null;
  }

  // watchParts calls a handler for each thing that changed: nodes, orders, findings, doing, kept, pairs, and
  // missed where figures may have come unheard. It gives what ends that.
  watchParts(handlers) {
    const w = (what) => { for (const [k, v] of Object.entries(what)) handlers[k]?.(v); };
    this.watchers.push(w);
    return () => { this.watchers = this.watchers.filter((x) => x !== w); };
  }

  tell(what) { for (const w of this.watchers) w(what); }

  // start asks for everything. A server that still reads what was stored is asked again; reading is told what it
  // says, and answers whether to go on.
  async start(reading) {
    for (let there = false; !there;) {
      try {
        await this.load();
        there = true;
      } catch (error) {
        if (error.reading === undefined || !reading(error.message)) throw error;
        await new Promise((done) => { setTimeout(done, 1000); });
      }
    }
    this.listen();
    // A browser has six lines to a server for all its pages together: one that is not looked at gives its line back.
    this.seen = () => {
      if (document.hidden) this.deaf();
      else if (!this.source) { this.listen(); this.again(); this.tell({ missed: true }); }
    };
    this.gone = () => this.deaf();
    document.addEventListener('visibilitychange', this.seen);
    window.addEventListener('pagehide', this.gone);
    window.addEventListener('pageshow', this.seen);
    this.timer = setInterval(() => { if (!document.hidden) this.again(); }, 30000);
  }

  listen() {
    if (document.hidden) return;
    let opened = false;
    this.source = this.api.events({
      beats: (list) => { for (const n of list) this.node(n, true); this.tell({ nodes: true }); },
      node: (n) => { this.node(n); this.topology = null; this.tell({ nodes: true }); },
      order: (o) => { this.orders.set(o.id, { ...this.orders.get(o.id), ...o }); this.tell({ orders: o.id }); },
      finding: (f) => { this.found(f); this.tell({ findings: true, nodes: true }); },
      doing: (d) => { this.doing.set(d.node, d); this.tell({ doing: d }); },
      measured: (m) => this.measured(m),
    });
    // What was missed while the line was cut is asked for.
    this.source.addEventListener('open', () => { if (opened) { this.again(); this.tell({ missed: true }); } opened = true; });
  }

  deaf() {
    this.source?.close();
    this.source = null;
  }

  end() {
    this.over = true;
    this.deaf();
    document.removeEventListener('visibilitychange', this.seen);
    window.removeEventListener('pagehide', this.gone);
    window.removeEventListener('pageshow', this.seen);
    clearInterval(this.timer);
    for (const t of this.later.values()) clearTimeout(t);
    this.watchers = [];
  }

  async again() {
    if (this.over) return;
    try {
      await this.load();
      this.tell({ nodes: true, orders: true, findings: true });
    } catch (error) { // the next time comes, and soon where the server has just been started
      if (error.reading !== undefined) setTimeout(() => this.again(), 2000);
    }
  }

  async load() {
    const [nodes, findings, orders, kept] = await Promise.all([
      this.api.ask('fleet/nodes', { brief: true }), this.api.ask('fleet/findings'), this.api.ask('fleet/orders'), this.api.ask('fleet/collectives')]);
    this.answers = { nodes, findings, orders, kept };
    const names = new Set(nodes.doc.nodes.map((n) => n.name));
    for (const name of this.nodes.keys()) if (!names.has(name)) this.nodes.delete(name);
    for (const n of nodes.doc.nodes) this.node(n);
    this.findings = findings.doc.findings;
    this.past = findings.doc.past;
    this.orders = new Map(orders.doc.orders.map((o) => [o.id, o]));
    this.kept = kept.doc.collectives;
  }

  node(n, beat) {
    const old = this.nodes.get(n.name);
    // Beats say nothing about ports.
    this.nodes.set(n.name, { ...(beat ? old : null), ...n, doing: n.doing, beatAt: n.age_s >= 0 ? Date.now() - 1000 * n.age_s : null });
  }

  found(f) {
    this.findings = this.findings.filter((x) => x.id !== f.id);
    if (f.cleared) {
      if (!this.past.some((x) => x.id === f.id && x.cleared === f.cleared)) this.past.push(f);
    } else this.findings.push(f);
    for (const n of this.nodes.values()) {
      const ids = this.findings.filter((x) => x.nodes.includes(n.name)).map((x) => x.id);
      n.findings = ids.length ? ids : undefined;
    }
  }

  measured({ node, at, measured }) {
    if (measured.records) {
      this.kept.push({ at, node, order: measured.order, sweep: measured.sweep, records: measured.records });
      this.tell({ kept: true });
    }
    const by = this.orders.get(measured.order)?.over || '';
    if (measured.pairs) this.tell({ pairs: measured.pairs.map((p) => ({ ...p, at, by })) });
    this.refresh(measured.order);
  }

  // refresh asks for an order about once a second, however much is measured.
  refresh(id) {
    if (!this.orders.has(id) || this.later.has(id)) return;
    this.later.set(id, setTimeout(async () => {
      this.later.delete(id);
      try {
        const answer = await this.api.ask(`fleet/orders/${encodeURIComponent(id)}`);
        this.orders.set(id, answer.doc);
        this.tell({ orders: id });
      } catch { /* an event says the rest */ }
    }, 900));
  }

  // list is all nodes in order, with the state that the page sees: silence brings no event.
  list() {
    return [...this.nodes.values()].sort((a, b) => compare(a.name, b.name));
  }

  static state(n) {
    if (n.state === 'up' && n.beatAt && Date.now() - n.beatAt > silentAfter) return 'silent';
    return n.state;
  }

  counts() {
    const out = { all: this.nodes.size, up: 0, silent: 0, left: 0, expected: 0, bad: 0 };
    for (const n of this.nodes.values()) {
      out[Fleet.state(n)]++;
      if (n.bad) out.bad++;
    }
    return out;
  }

  // bad are the nodes to keep jobs off.
  bad() { return this.list().filter((n) => n.bad).map((n) => n.name); }

  // worst are findings by how much they cost, and how sure they are.
  worst() {
    const rank = { error: 0, warn: 1, note: 2 };
    return [...this.findings].sort((a, b) => (rank[a.severity] - rank[b.severity]) || (b.confidence - a.confidence) || compare(b.since, a.since));
  }

  // map is the fleet as a topology, asked for once until a node changes.
  async map() {
    if (!this.topology) this.topology = Promise.all([this.api.ask('fleet/cluster'), this.api.ask('fleet/scene')]).then(([a, b]) => new Topology(a.doc, b.doc)).catch(() => new Topology({}));
    return this.topology;
  }
}
