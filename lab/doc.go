// Package lab makes a small cluster file real on one Linux machine: a network
// namespace per node, a shaped virtual cable per NIC, switches as bridges, uplinks
// with the rate that the oversubscription leaves them. Programs run inside as they
// would on the cluster: real packets, real contention.
//
// The package is not promised: it may change with the program.
//
// A Plan is the cluster in figures of the lab, and is plain data. Start builds it
// and leaves a holder behind, a process of our own that owns every namespace, cable
// and program of the lab. Nothing has a name outside it: when the holder ends, in
// whatever way, the kernel takes the lab apart. Only the files of its folder can be
// left over, and the next Start or Clean removes those.
//
// As an ordinary user the holder has a user namespace of its own, where the kernel
// allows that.
//
// # Inside nodes
//
// Links between the GPUs of a node are shaped too where this machine can push them
// at the lab's scale: GPUs have addresses, ranks bind to them and talk over the
// node's loopback, and classes of a token bucket there stand for the links. Else
// ranks of a node talk through shared memory.
//
// # Switches
//
// Bridges learn nothing and flood nothing. Every switch has a table that says for
// each destination by which cable it is reached, as the subnet manager of an
// InfiniBand network writes it; among cables that are equally short the
// destination's number on its leaf decides (D-mod-k). Several spines are therefore
// no loop, and which spine a pair of NICs uses can be foretold.
//
// # Stability
//
// The package serves the commands of busbar lab and is not stable: its types and the files of a lab may change in any
// release. A lab is reached by the release that made it.
package lab
