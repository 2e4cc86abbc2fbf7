import { h, put } from './dom.js';

// What a newcomer should know, once: it stands above the views that ask about a cluster, covers nothing, and goes for good
// when it is closed.
const steps = [
  ['Describe the cluster', 'Choose a machine and a number of nodes, or upload what your tools print: nvidia-smi topo -m, an NCCL log, a cluster file.'],
  ['Ask', 'Predict says how fast a collective is and what limits it, Step where the time of a training step goes, Plan how to launch a job, Doctor why one is slow.'],
  ['Take the answer along', 'Every answer has a link to share, its JSON, and the command line that prints the same. Dotted words explain themselves when you point at them.'],
];

// tour gives a function that is told which view is shown.
export function tour(main) {
  if (localStorage.getItem('toured')) return () => {};
  const box = h('aside', { class: 'tour', 'aria-label': 'First steps' });
  const end = () => { localStorage.setItem('toured', '1'); box.remove(); };
  const show = (i) => {
    const [title, text] = steps[i];
    put(box, h('p', {}, h('strong', {}, `${i + 1} of ${steps.length}: ${title}. `), text),
      h('p', { class: 'row' }, i > 0 && h('button', { type: 'button', onclick: () => show(i - 1) }, 'Back'),
        i + 1 < steps.length && h('button', { type: 'button', class: 'main', onclick: () => show(i + 1) }, 'Next'),
        h('button', { type: 'button', onclick: end }, i + 1 < steps.length ? 'Skip' : 'Done')));
  };
  show(0);
  main.before(box);
  return (view) => { box.hidden = !['cluster', 'predict', 'step', 'plan'].includes(view); };
}
