import { h } from './dom.js';

// Terms of the field that a label cannot explain. A label that has one shows it when somebody points at it or reaches it by Tab.
const terms = {
  MFU: 'Model FLOPS utilization: the floating-point operations that the model needs, divided by what the GPUs could do in the time of the step.',
  busbw: 'Bus bandwidth, as nccl-tests defines it: the rate of a call, scaled by the operation so that it can be compared with the bandwidth of the hardware.',
  'bus bandwidth': 'As nccl-tests defines it: the rate of a call, scaled by the operation so that it can be compared with the bandwidth of the hardware.',
  ZeRO: 'Sharding among data-parallel ranks: 1 shards the optimizer state, 2 gradients too, 3 parameters too (FSDP).',
  'Tensor parallel': 'Each layer is split across GPUs, which all-reduce activations several times per layer; usually within a node.',
  'Pipeline stages': 'Layers are divided among groups of GPUs; micro-batches flow through them. Stages that wait are the bubble.',
  'Context parallel': 'A sequence is divided among GPUs, which exchange keys and values in attention.',
  'Expert parallel': 'Experts of a mixture-of-experts model are divided among GPUs; tokens travel to their experts by all-to-all.',
  'Virtual stages': 'Each GPU holds several parts of the pipeline that are not neighbours: a smaller bubble, more traffic.',
  'micro-batch': 'Sequences that a GPU processes at once.',
  'global batch': 'Sequences of all GPUs together between two updates of the parameters.',
  'Weak scaling': 'Every node gets as much work as before: the global batch grows with the nodes.',
  'Strong scaling': 'The global batch stays the same and is divided among more nodes.',
};

// term is a label with its explanation, or the text where there is none.
export function term(text, name = text) {
  const about = terms[name];
  return about ? h('abbr', { class: 'term', tabindex: '0', title: about, 'data-about': about }, text) : text;
}
