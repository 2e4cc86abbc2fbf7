// Package ibstat reads what a host says about its own RDMA adapters: ibstat,
// ibstatus and ibv_devinfo (with and without -v).
//
// Each reader returns a node without a host name, since none of the tools prints
// one, with a NIC for each adapter. Where a text holds the output of several
// hosts, an adapter name that comes again with another GUID begins a further
// node. GUIDs are written 0x and sixteen digits, as everywhere for NICs.
//
// Rates are as the tool states them, which for QDR and slower is the signalling
// rate (40 for 4X QDR, of which 32 carry data). The rate of a port that is down
// is left out: the standard lets such a port answer anything. Down, disabled and
// polling ports are all Down.
package ibstat
