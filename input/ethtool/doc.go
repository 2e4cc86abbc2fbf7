// Package ethtool reads what ethtool says about network interfaces: ethtool IF (speed, link, supported modes), ip link
// (also -s: state, MTU, counters), ethtool -i IF (driver, firmware, PCI address), ethtool -k IF (offloads), ethtool -g
// IF (rings) and ethtool -S IF (counters), in any number and order in one text.
//
// It returns one node without a host name, with a NIC for each interface. What
// -i and -S print does not name the interface. They get it from a shell prompt before them ("$ ethtool -i eth0"), or
// from the block before them where blocks of one interface evidently stand together; else the NIC has no label.
//
// A speed that the driver does not know, zero and -1 are unknown. The greatest supported mode is what the port could
// do. Of the counters, those are kept that stand for something wrong (see internal/counter), and are not zero. The
// loopback interface, bridges, tunnels and containers' cables are no NICs and are left out.
package ethtool
