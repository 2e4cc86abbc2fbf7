import { h, put, failure } from './dom.js';
import { slider } from './slider.js';
import { Load } from './load.js';
import { bytes, seconds } from './units.js';

// rounds plays a collective on the picture of a cluster: a button for each way of doing it, and a slider over its rounds.
// over has what is drawn: {topo, scene}.
export function rounds(api, ways, over, picture) {
  const stage = h('div', {});
  let timer = 0;
  const play = async (way) => {
    clearInterval(timer);
    put(stage, h('p', { class: 'quiet' }, 'Asking for the rounds …'));
    try {
      const { doc } = await api.ask('rounds', way);
      const text = h('p', { 'aria-live': 'polite' });
      const show = (i) => {
        const r = doc.rounds[i];
        const load = new Load({ links: r.links, time_s: r.time_s || 1, bottleneck: { text: r.phase } });
        picture.draw(over.scene, load.over(over.topo, over.scene));
        put(text, h('strong', {}, r.phase), `: ${r.sends.length} messages of up to ${bytes(Math.max(...r.sends.map((s) => s.bytes)))}; the busiest link needs ${seconds(r.time_s || 0)}. `, h('span', { class: 'quiet' }, sends(r, doc.names)));
      };
      const values = doc.rounds.map((r, i) => [i, `${i + 1} of ${doc.rounds.length}`]);
      const at = slider('Round', values, 0, show);
      let now = 0;
      const next = () => { if (!stage.isConnected || now + 1 >= values.length) clearInterval(timer); else { now++; at.moveTo(now); show(now); } };
      const again = h('button', { type: 'button', onclick: () => { clearInterval(timer); now = -1; next(); timer = setInterval(next, 1200); } }, 'Play');
      put(stage, at, again, text);
      show(0);
    } catch (error) { put(stage, failure(error)); }
  };
  return h('div', { class: 'rounds' }, h('p', {}, 'Round by round, the colours are the load of a round: ',
    ways.map((way) => [h('button', { type: 'button', onclick: () => play(way) }, `${way.l || ''} ${way.algo}`.trim()), ' '])), stage);
}

// sends are who sends to whom, as far as a line goes.
function sends(round, names) {
  const name = (rank) => names?.[rank] || `switch ${rank - (names?.length || 0)}`;
  const list = round.sends.slice(0, 8).map((s) => `${name(s.from)} → ${name(s.to)}`);
  return list.join(', ') + (round.sends.length > 8 ? ` and ${round.sends.length - 8} more` : '');
}
