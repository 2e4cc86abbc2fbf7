import { h, put } from './dom.js';

// The measurements of a fleet.
export async function show(root) {
  put(root, h('div', { class: 'view' }, h('header', {}, h('h1', {}, 'Fleet')),
    h('div', { class: 'card empty', style: { 'grid-column': '1 / -1' } },
      h('p', {}, 'No nodes have joined this server.'))));
}
