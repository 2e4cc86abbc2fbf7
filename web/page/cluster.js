import { h, s, put, say, table, failure, strange, plain } from './dom.js';
import { Latest } from './api.js';
import { Share } from './share.js';
import { clusterPicker, clusterWord, hardware, refused, choice, entry, field } from './pick.js';
import { Topology } from './topology.js';
import { Load, kindNames } from './load.js';
import { Picture } from './picture.js';
import { sample } from './scene.js';
import { measured } from './measured.js';
import { shown } from './fleetwords.js';
import { facts, card } from './facts.js';
import { plural, rate, percent, count } from './units.js';

export const ops = ['all_reduce', 'reduce_scatter', 'all_gather', 'broadcast', 'reduce', 'all_to_all', 'sendrecv'].map((x) => [x, x.replaceAll('_', ' ')]);

const known = ['c', 'gpu', 'nic', 'm', 'op', 'size', 'l', 'at', 'sel'];

// The topology as a picture: the whole cluster, a group of nodes, one node.
export async function show(root, state, api) {
  const share = new Share(state);
  const about = h('p', { 'aria-live': 'polite' });
  const crumbs = h('ol', { class: 'crumbs', 'aria-label': 'where in the cluster' });
  const side = h('aside', { class: 'card side', 'aria-label': 'facts', tabindex: '0' });
  const legend = h('div', {});
  const more = h('div', { class: 'cards' });
  const said = h('div', { class: 'said' });
  let topo = null, load = new Load(null), scene = null, asked = 0;
  const scenes = new Map(); // of this cluster, by what is shown
  const picture = new Picture({ onchoose: (key) => choose(key), onopen: (key) => open(key) });
  const stage = h('div', { class: 'stage' }, h('div', {}, crumbs, picture.root, legend), side, more);

  const joined = await api.ask('fleet/nodes', { brief: 1 }).then((a) => a.doc.nodes || []).catch(() => []);
  const loads = choice([['', 'nothing'], ...(joined.length ? [['health', 'measured health of the fleet']] : []), ...ops], state.get('op'), (v) => state.set({ op: v, ...(v === 'health' ? { c: 'fleet' } : {}) }));
  const ofLoad = h('div', { class: 'cards' }, entry(state, 'size', 'Size, bytes', { otherwise: '1G' }, 'Such as 64M or 1G, of each rank’s data.'), entry(state, 'l', 'Layout', { placeholder: 'all, or 2x4' }, 'Nodes × GPUs per node (default: all GPUs).'));
  const turn = () => { ofLoad.hidden = !state.get('op') || state.get('op') === 'health'; }; // nothing else has a size
  turn();
  put(root, h('div', { class: 'view' },
    h('header', {}, h('div', {}, h('h1', {}, 'Cluster'), about), share.root), said, strange(state, known),
    h('section', { class: 'controls', 'aria-label': 'what is shown' }, await clusterPicker(api, state, { fleet: joined.length > 0 }),
      h('fieldset', {}, h('legend', {}, 'Colour by'), field('Load of a collective, or health', loads), ofLoad)),
    h('section', { class: 'cards', 'aria-label': 'picture' }, stage)));

  function choose(key) {
    state.set({ sel: key }, { quiet: true });
    const what = key.split('/')[0];
    put(side, facts(topo, key, load, scene.byKey.get(key)), load.said && load.said(key.split('/')[1]), (what === 'pod' || what === 'node') && h('button', { type: 'button', onclick: () => open(key) }, what === 'pod' ? 'Look at this group' : 'Look inside'));
    say(side.querySelector('h2')?.textContent || '');
  }

  function open(key) {
    const [what, name] = key.split('/');
    if (!['pod', 'node', 'device', 'port', 'ports', 'bus'].includes(what)) { choose(key); return; }
    picture.held = true;
    state.set({ at: name }, { push: true });
  }

  // drawn is the scene of a node, or of the whole cluster.
  async function drawn(c, at) {
    const name = `${c} ${at}`;
    if (scenes.has(name)) return scenes.get(name);
    const answer = c === 'fleet' ? await api.ask('fleet/scene', { at }) : await api.ask('scene', { c, at, ...hardware(state) });
    const byKey = new Map();
    const walk = (list) => list.forEach((m) => { if (m.key) byKey.set(m.key, m); if (m.marks) walk(m.marks); });
    walk(answer.doc.marks);
    scenes.set(name, Object.assign(answer.doc, { byKey }));
    return answer.doc;
  }

  function draw() {
    const at = state.get('at');
    const pod = topo.podOf.get(at);
    const host = topo.byName.get(at) || (topo.hosts.length === 1 && topo.hosts[0]);
    stage.classList.toggle('wide', scene.width > 1100); // small type otherwise, on a laptop
    picture.draw(scene, load.over(topo, scene));
    if (pod?.w) picture.show(pod);
    const steps = [['', topo.doc.name || 'this machine']];
    const of = host && topo.pods.find((p) => p.hosts.includes(host));
    if (of && topo.pods.length > 1 && of.hosts.length > 1) steps.push([of.id, of.name]);
    if (pod) steps.push([pod.id, pod.name]);
    if (host && topo.hosts.length > 1) steps.push([host.name, host.name]);
    put(crumbs, steps.map(([to, name], i) => h('li', {}, i < steps.length - 1 ? h('button', { type: 'button', class: 'plain', onclick: () => state.set({ at: to, sel: '' }, { push: true }) }, name) : h('span', { 'aria-current': 'location' }, name))));
    const key = state.get('sel');
    if (key && picture.mark(key)) choose(key);
    else put(side, overview(topo, load));
    put(legend, load.legend ? load.legend() : load.row ? loadLegend(load) : kinds(scene));
  }

  // turnTo shows another part of the same cluster; the answer to an earlier question is not drawn over that to a later.
  async function turnTo() {
    const mine = ++asked;
    try {
      const next = await drawn(clusterWord(state), nodeAt());
      if (mine !== asked) return;
      scene = next;
      draw();
      if (picture.held) picture.enter();
      picture.held = false;
    } catch (error) { put(said, failure(error)); }
  }

  function nodeAt() { const at = state.get('at'); return /^pod\d+$/.test(at) ? '' : at; }

  const refresh = new Latest(async () => {
    picture.root.classList.add('busy');
    const c = clusterWord(state);
    try {
      scenes.clear();
      const [answer, next, checked] = await Promise.all([c === 'fleet' ? api.ask('fleet/cluster') : api.ask('map', { c, ...hardware(state) }), drawn(c, nodeAt()), c === 'fleet' ? null : api.ask('map', { c, audit: 1, ...hardware(state) })]);
      load = new Load(null);
      refused(said);
      stage.hidden = false;
      let second = null;
      if (state.get('op') === 'health') load = await measured(api, new Topology(answer.doc, next));
      else if (state.get('op') && c === 'fleet') put(said, h('p', { class: 'note' }, 'Loads are predicted for presets and files; the fleet shows what was measured. Colour it by its health, or upload its cluster file.'));
      else if (state.get('op')) {
        try {
          second = await api.ask('predict', { c, ...hardware(state), l: state.get('l'), op: state.get('op'), size: state.get('size', '1G'), links: true });
          load = new Load(second.doc.rows.find((r) => r.chosen) || second.doc.rows[0]);
        } catch (error) { refused(said, error); }
      }
      share.of(c === 'fleet' ? shown(answer) : answer, second);
      const sum = answer.doc.summary;
      about.textContent = `${plural(sum.nodes, 'node')} · ${plural(sum.gpus, 'GPU')} · ${plural(sum.nics, 'NIC')}${sum.switches ? ` · ${plural(sum.switches, 'switch').replace('switchs', 'switches')}` : ''}`;
      const started = performance.now();
      asked++;
      scene = next;
      topo = new Topology(answer.doc, scene);
      draw();
      picture.svg.getBoundingClientRect(); // lays it out now
      stage.dataset.drawn = String(Math.round(performance.now() - started));
      put(more, audit(checked?.doc || answer.doc), outline(topo), c !== 'fleet' && h('details', { class: 'card' }, h('summary', {}, 'The same as drawn by busbar map -o FILE.svg'), h('p', {}, h('a', { href: `${answer.url}${answer.url.includes('?') ? '&' : '?'}o=svg`, target: '_blank', rel: 'noopener' }, 'open the drawing'))));
    } catch (error) {
      refused(said, error);
      stage.hidden = true; // it shows another cluster
      put(more);
      about.textContent = '';
      share.of({ url: `/api/map`, command: error.command });
    }
    picture.root.classList.remove('busy');
  });
  state.watch((changes) => {
    turn();
    if ('c' in changes) state.set({ at: '', sel: '' }, { quiet: true });
    if ('at' in changes && !('c' in changes) && topo) turnTo();
    else refresh.go();
  });
  await refresh.go();
}

// kinds explains the lines and boxes of a scene.
function kinds(scene) {
  return h('ul', { class: 'legend', 'aria-label': 'kinds of links' }, (scene.legend || []).map((x) => h('li', {}, sample(x), x.text)),
    [['gpu', 'nvlink', 'GPU'], ['nic', 'net', 'NIC or switch']].map(([fill, line, text]) => h('li', {}, h('span', { class: 'swatch', style: { background: `var(--s-${fill})`, outline: `1px solid var(--s-${line})` } }), text)), h('li', {}, 'wider: faster'));
}

function overview(topo, load) {
  const sum = topo.doc.summary;
  const net = topo.network;
  const list = [['nodes', count(sum.nodes)], ['GPUs', `${count(sum.gpus)}${sum.gpus_per_node ? ` (${sum.gpus_per_node} per node)` : ''}`], ['NICs', count(sum.nics)]];
  if (net.kind) list.push(['network', `${net.kind}${net.rails ? `, ${net.rails} rails` : ''}`]);
  if (net.oversubscription) list.push(['oversubscribed', `${net.oversubscription.value} : 1`, net.oversubscription.from, net.oversubscription.source]);
  return h('div', {},
    load.text && h('p', { class: 'note' }, h('strong', {}, 'Bottleneck: '), load.text, load.where && ` (${load.where})`),
    card(topo.doc.name || 'this machine', 'the whole cluster', list),
    h('p', { class: 'quiet' }, 'Choose an element of the picture for its facts. Arrow keys move, Enter selects and then opens, + − 0 zoom.'));
}

export function loadLegend(load) {
  const steps = ['below 25%', 'to 50%', 'to 75%', 'to 90%', 'above 90%'];
  return h('ul', { class: 'legend', 'aria-label': 'load of links' }, h('li', {}, 'link load:'),
    steps.map((text, i) => h('li', {}, s('svg', { viewBox: '0 0 30 12', 'aria-hidden': 'true' }, s('path', { class: `wire load load${i}`, d: 'M0 6H30' })), text)),
    load.where && h('li', {}, s('svg', { viewBox: '0 0 30 12', 'aria-hidden': 'true' }, s('path', { class: 'wire load4 tight', d: 'M3 6H27' })), 'glow, red frame: the bottleneck'),
    Object.entries(load.kinds).map(([kind, x]) => h('li', {}, `busiest ${kindNames[kind] || kind}: ${percent(x)}`)),
    !load.each && h('li', {}, 'each link shows the load of the busiest link of its kind'));
}

// audit is what was found, and what no source says, so that it could not be looked at.
function audit(doc) {
  if (!doc.audit) return null;
  return h('div', { class: 'card' }, h('h2', {}, 'Audit'), doc.audit.length ? h('ul', { class: 'findings' }, doc.audit.map((f) => h('li', { class: `finding ${f.severity}` },
    h('p', {}, h('span', { class: `tag ${f.severity}` }, f.severity), ' ', h('strong', {}, f.where || ''), ' ', plain(f.text)), f.fix && h('p', { class: 'quiet' }, plain(f.fix)))))
    : h('p', {}, doc.unchecked?.length ? 'No problems found in what could be checked.' : 'No problems found; every rule could be checked.'),
  doc.unchecked?.length > 0 && h('details', { open: true }, h('summary', {}, `Not checked, as no source says it (${doc.unchecked.length})`), h('ul', {}, doc.unchecked.map((x) => h('li', {}, plain(x))))));
}

// outline is the picture in words.
function outline(topo) {
  const rows = topo.pods.slice(0, 200).map((p) => {
    const t = Topology.trunk(p.leaves);
    return [p.name, String(p.hosts.length), p.leaves.length <= 8 ? p.leaves.map((x) => x.name).join(', ') : `${p.leaves.length} leaves`, t.cables ? `${t.cables} cables, ${rate(t.rate)}` : ''];
  });
  return h('details', { class: 'card' }, h('summary', {}, 'The picture as a table'),
    table('Groups of nodes behind the same leaves', [{ text: 'nodes' }, { text: 'count', n: true }, { text: 'leaves' }, { text: 'uplinks' }], rows),
    topo.tiers.length > 0 && table('Switches', [{ text: 'tier' }, { text: 'switches', n: true }, { text: 'model' }], topo.tiers.map((t) => [t.name, String(t.list.reduce((n, x) => n + (x.count || 1), 0)), t.list[0].model || ''])));
}
