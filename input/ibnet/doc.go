// Package ibnet reads what the InfiniBand diagnostics print about a fabric:
// ibnetdiscover, ibnetdiscover -p, the net files of ibsim, iblinkinfo (with and
// without -l), perfquery (with and without -x) and ibqueryerrors.
//
// Each reader returns a cluster.Fragment with switches, hosts and cables. Two
// fragments of one fabric are joined by these identities, which all readers
// here use alike:
//
//   - a switch: Switch.GUID, sixteen lower-case hexadecimal digits without 0x, or
//     where a tool prints none Switch.LID;
//   - a switch port: the switch and End.Port, the port number;
//   - a host: its name, the first word of the description of its adapters;
//   - an adapter: Identity.UUID, its node GUID, or its label on the host;
//   - an adapter's port: Identity.GUID, the port GUID, which every tool prints.
//     Both are written 0x and sixteen digits, as the readers of hosts do.
//
// An adapter whose description holds no host name becomes a host named ca- and
// its GUID. A switch whose description is only the maker's text is named sw- and
// its GUID. perfquery prints neither GUID nor description; its port belongs to a
// switch named lid and the number.
//
// Every cable is one NetLink, whether one or both of its ends list it. A switch
// port of which only one side is known (down, or with counters and nothing else)
// is a NetLink whose B has Switch -1 and no hosts. Counters that are not zero are
// under "A.Name" and "B.Name", by end.
//
// Rates are what a cable carries after line encoding: 4xQDR signals 40 Gb/s and
// carries 32. A cable that ibnetdiscover lists has trained and answered, but the
// tool does not say whether it carries traffic: its state is unknown until
// iblinkinfo tells Active from Initialize.
//
// The package does not say which cable is slow, missing or wrong: it has no
// opinion on what a fabric should be. It refuses text in which none of the
// formats occurs. What it could not use it counts, in one Warning of a kind.
package ibnet
