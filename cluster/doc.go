// Package cluster is the one model of a cluster that every reader fills and
// every command uses: what is there, what is joined, how fast, and who says so.
//
// A cluster has few kinds of node and many nodes. A NodeType is a graph of
// devices and links; a Host is a name and the index of its type; a Network
// holds switches and the links between them and runs of hosts. Ten thousand
// equal nodes are therefore one graph and ten thousand small records, and a
// node that differs (a link trained down, a missing NIC) is a type of its own.
//
// Readers return a Fragment, which is a partial cluster: a node without a host
// name, hosts without devices, a fabric without hosts. Join merges fragments
// into a Cluster and reports every contradiction as a Warning. Unknown is
// neither zero nor false: figures are Facts with an Origin, answers are Tri.
//
// All rates are one direction unless a name says duplex.
//
// The package imports the standard library and busbar/unit only. It performs no
// input or output.
package cluster
