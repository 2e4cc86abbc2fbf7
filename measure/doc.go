// Package measure measures between the members of a job, of a list of hosts or of a fleet: every pair of them by TCP,
// by RDMA through perftest or by NCCL through busbar-gpu, and each member by itself.
//
// A Sweep measures pairs in rounds, and again what stands out, whoever the members are and by whatever means a pair is
// measured. A hub is rank 0 of a job: the others do its orders, within bounds that both sides check, and one that is
// killed, hangs or is cut off is part of the answer.
//
// The package is not promised: names may change between releases.
package measure
