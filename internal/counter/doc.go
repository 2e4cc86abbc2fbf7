// Package counter is what the counters of network ports mean: which stand for something
// wrong, what, where the kernel keeps them, and from which rate on they matter.
//
// Traffic and waiting for credits (port_xmit_wait) are not here: they count on every healthy machine. Congestion marks
// do too, and say something only beside those of peers. Nor are the completion errors that every job's end produces
// (req_cqe_error and its flush kind).
package counter
