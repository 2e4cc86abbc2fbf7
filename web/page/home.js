import { h, put, failure } from './dom.js';
import { send } from './api.js';
import { intake } from './doctor.js';
import { clusterPicker, modelPicker } from './pick.js';

// The two questions that people come with; each leads to the view that answers it.
export async function show(root, state, api) {
  const said = h('div', {});
  const go = (path) => { history.pushState(null, '', path); window.dispatchEvent(new PopStateEvent('popstate')); };
  const take = async (files) => {
    try { go(`/doctor?file=${(await send(...files)).id}`); } catch (error) { put(said, failure(error)); }
  };
  put(root, h('div', { class: 'home' },
    h('section', { class: 'card controls', 'aria-labelledby': 'fast' }, h('h1', { id: 'fast' }, 'How fast should my job be?'),
      h('p', {}, 'Choose a model and the machines: the time of a training step, what limits it, and how far more nodes help.'),
      await modelPicker(api, state, 'llama3-70b'), await clusterPicker(api, state, { here: false, otherwise: 'dgx-h100:8' }),
      h('button', { type: 'button', class: 'main', onclick: () => go(`/step${location.search}`) }, 'Show how fast'),
      h('p', { class: 'quiet' }, 'Also: ', h('a', { href: '/plan' }, 'the best way to run it'), ', ', h('a', { href: '/predict' }, 'one collective'), ', ', h('a', { href: '/cluster' }, 'the machines as a picture'))),
    h('section', { class: 'card controls', 'aria-labelledby': 'slow' }, h('h1', { id: 'slow' }, 'Why is it slow?'),
      h('p', {}, 'Give the logs of a job that is slow, broken or hung: the cause, the fix, and the lines that show it.'),
      said, intake(take),
      h('p', { class: 'quiet' }, 'While a job runs: ', h('a', { href: '/jobs' }, 'its collectives'), ', ', h('a', { href: '/fleet' }, 'the nodes and their links')))));
}
