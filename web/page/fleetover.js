import { h, put } from './dom.js';
import { Latest } from './api.js';
import { Heat } from './fleetheat.js';
import { groupsOf, scaleOf, Table } from './fleetscale.js';
import { finding } from './fleetfindings.js';
import { badCard } from './fleetnodes.js';
import { final, progress, what } from './fleetorders.js';
import { line } from './share.js';
import { move, shown, tag, to } from './fleetwords.js';
import { count, plural } from './units.js';

// join is how other machines come to this server.
function join() {
  const loopback = /^(localhost|127\.|\[?::1)/.test(location.hostname);
  const at = `${location.protocol === 'https:' ? 'tls' : 'nats'}://${loopback ? 'SERVER' : location.hostname}:7642`;
  return h('div', { class: 'card' }, h('h2', {}, 'Let nodes join'),
    h('p', {}, 'On this machine, make credentials for each node:'), line('busbar serve token node NAME -o NAME.creds', 'make credentials for a node'),
    h('p', {}, 'On the node, with that file:'), line(`busbar agent --join ${at} --creds NAME.creds`, 'join from a node'),
    !loopback && h('p', {}, 'With --tls-self-signed, also copy self-signed.pem from the server\'s data folder to the node, and add --tls-ca self-signed.pem.'),
    loopback && h('p', {}, 'This server listens on loopback only. For other machines, start it with TLS:'), loopback && line('busbar serve --listen 0.0.0.0:7641 --bus-listen 0.0.0.0:7642 --tls-self-signed', 'serve for other machines'),
    h('p', { class: 'quiet' }, 'An agent reports devices, heartbeats and port states, and measures when ordered to. It runs no other commands.'));
}

// glance is every pair against its peers, small: what stands out is looked at elsewhere.
function glance({ state, api, fleet }) {
  const heat = new Heat({ label: 'Every pair of nodes against its peers: rows send, columns receive', onopen: (from, other) => move(state, { show: 'pairs', figure: 'peers', from, to: other }) });
  const root = h('div', { class: 'card', hidden: true }, h('div', { class: 'headline' }, h('h2', {}, 'Every pair against its peers, %'), to(state, { show: 'pairs', figure: 'peers' }, 'larger')), heat.box, heat.said, heat.legend);
  let table = null, later = 0;
  function draw() {
    const shown = table.relative(), scale = scaleOf('peers', shown.values);
    root.hidden = !table.known;
    if (table.known) heat.show(shown, scale, (i, j) => `${shown.names[i]} → ${shown.names[j]}: ${i === j ? 'a node with itself is not measured' : Number.isNaN(shown.at(i, j)) ? 'not measured' : scale.show(shown.at(i, j))}`);
  }
  const refresh = new Latest(async () => {
    if (fleet.nodes.size < 2) return;
    try {
      const [answer, topo] = await Promise.all([api.ask('fleet/pairs', { figure: 'rate' }), fleet.map()]);
      table = new Table(answer.doc, groupsOf(topo));
      draw();
    } catch { root.hidden = true; } // the part that is about pairs says why
  });
  const stopped = fleet.watchParts({ missed: () => refresh.go(), pairs: (all) => {
    const list = all.filter((p) => !p.by);
    if (!list.length) return;
    const known = table && list.every((p) => table.set(p.from, p.to, p.rate_GBps));
    if (!later) later = setTimeout(() => { later = 0; if (known) draw(); else refresh.go(); }, 3000);
  } });
  return { root, start: () => refresh.go(), end() { clearTimeout(later); stopped(); heat.end(); } };
}

// over is the fleet at a glance.
export function over({ state, api, fleet, share }) {
  const small = glance({ state, api, fleet });
  const tiles = h('dl', { class: 'figures' }), found = h('div', {}), bad = h('div', {}), runs = h('div', {}), first = h('div', { class: 'cards' });

  function tile(name, value, more) { return h('div', {}, h('dt', {}, name), h('dd', {}, value, more && h('small', {}, ` ${more}`))); }

  let was = '';
  function draw() {
    const c = fleet.counts();
    const open = [...fleet.orders.values()].filter((o) => !final(o));
    const now = JSON.stringify([c, fleet.findings, open]);
    if (now === was) return;
    was = now;
    put(tiles, tile('nodes', to(state, { show: 'nodes' }, count(c.all))), tile('up', count(c.up)), tile('unreachable', c.silent ? to(state, { show: 'nodes', is: 'silent' }, count(c.silent)) : '0'),
      c.left > 0 && tile('left', to(state, { show: 'nodes', is: 'left' }, count(c.left))), tile('unhealthy', c.bad ? to(state, { show: 'nodes', is: 'bad' }, count(c.bad)) : '0'),
      tile('findings', fleet.findings.length ? to(state, { show: 'findings' }, count(fleet.findings.length)) : '0'), tile('orders', to(state, { show: 'orders' }, count(open.length)), 'waiting or running'));
    const worst = fleet.worst();
    put(found, c.all > 1 && h('div', { class: 'card' }, h('h2', {}, 'Findings'), worst.length
      ? [h('ul', { class: 'findings' }, worst.slice(0, 3).map((f) => finding(state, f, true))), worst.length > 3 && h('p', {}, to(state, { show: 'findings' }, `all ${worst.length}`))]
      : h('p', {}, 'No known problems.')));
    put(bad, badCard(fleet));
    put(runs, open.length > 0 && h('div', { class: 'card' }, h('h2', {}, 'Orders'), h('ul', {}, open.slice(-5).reverse().map((o) => h('li', {}, to(state, { show: 'orders', order: o.id }, what(o)), ' ', tag(o.state), ` ${progress(o, fleet.doing).words}`)))));
    put(first, c.all < 2 && join());
  }

  const stopped = fleet.watchParts({ nodes: draw, orders: draw, findings: draw });
  return {
    controls: [],
    cards: [h('div', { class: 'card' }, tiles), h('div', { class: 'glance' }, h('div', { class: 'cards' }, found, runs, bad, first), small.root)],
    async start() { draw(); share.of(shown(fleet.answers.nodes, 'nodes --json')); await small.start(); },
    changed() {},
    end() { stopped(); small.end(); },
  };
}

// about is the fleet in a line.
export function about(fleet) {
  const c = fleet.counts();
  if (!c.all) return 'no node has joined';
  const open = [...fleet.orders.values()].filter((o) => o.state === 'running').length;
  return [`${plural(c.all, 'node')}: ${c.up} up${c.silent ? `, ${c.silent} unreachable` : ''}${c.left ? `, ${c.left} left` : ''}`, plural(fleet.findings.length, 'finding'), open && `${plural(open, 'order')} running`].filter(Boolean).join(' · ');
}

