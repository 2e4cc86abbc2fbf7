// Package nvsmi reads what nvidia-smi prints: the matrix of path classes (topo
// -m) of every driver generation, the peer-access matrices (topo -p2p), the list
// of GPUs (-L) and of NVLinks (nvlink -s), the plain table, --query-gpu as CSV,
// -q and -q -x.
//
// Each form has a Match and a Read. The text may be part of a log, indented,
// coloured, cut off, or gathered from many hosts by pdsh,
// clush, dshbak or Ansible. What cannot be used is a warning with its line; only
// a text that holds nothing of the form is an error.
//
// The package names GPUs as NVML does: by index, PCI address and UUID. It knows
// nothing of CUDA ordinals, which depend on the environment of a process; see
// cluster.CUDAOrder. It refuses matrices of more than 1024 devices.
package nvsmi
