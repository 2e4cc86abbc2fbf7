package nccllog

import (
	"cmp"
	"strings"
)

// connKey is what makes two lines the same connection.
type connKey struct {
	comm           string
	channel, index int
	from, to       int
	dir, via       string
}

// parseConnection reads "Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0", which
// began with "Ring" up to 2.5.
func parseConnection(r *Record) any {
	head, via, ok := strings.Cut(r.Text, " via ")
	if !ok {
		return nil
	}
	var buf [8]string // one more than such a message has
	f := buf[:0]
	for word := range strings.FieldsSeq(head) {
		if len(f) == len(buf) {
			break
		}
		f = append(f, word)
	}
	if len(f) < 5 {
		return nil
	}
	n := newConnection(r, f[1])
	f = f[2:]
	if f[0] == ":" {
		f = f[1:]
	}
	if n.Channel < 0 || len(f) < 3 || f[1] != "->" || len(f) > 4 {
		return nil
	}
	var okFrom, okTo bool
	n.From, okFrom = end(f[0])
	n.To, okTo = end(f[2])
	if !okFrom || !okTo {
		return nil
	}
	if len(f) == 4 {
		n.Dir = strings.Trim(f[3], "[]")
		if n.Dir != "send" && n.Dir != "receive" {
			return nil
		}
	}
	return n.way(via)
}

// newConnection begins a connection over "00/0", in the memory of one that nobody needs any more where there is such.
func newConnection(r *Record, channel string) *Connection {
	n := cmp.Or(r.spare, new(Connection))
	*n = Connection{Index: -1, NetDev: -1, Proxy: -1, First: r.At}
	channel, index, slash := strings.Cut(channel, "/")
	if n.Channel = number(channel); slash {
		n.Index = number(index)
	}
	return n
}

// end reads the rank of "12[101c0]"; 2.4 printed the rank alone in places.
func end(s string) (rank int, ok bool) {
	num, dev, bracket := strings.Cut(s, "[")
	rank = number(num)
	return rank, bracket == strings.HasSuffix(dev, "]") && rank >= 0 && allDigits(num) && (num[0] != '0' || num == "0")
}

// way reads how the two ends are connected.
func (n *Connection) way(via string) any {
	if v, tail, ok := strings.Cut(via, " comm "); ok { // RCCL
		via = v
		f := strings.Fields(tail)
		if len(f) >= 3 && f[1] == "nRanks" {
			n.Comm, n.NRanks = f[0], max(number(f[2]), 0)
		}
	}
	if !n.parseVia(via) {
		return nil
	}
	return n
}

// connection files a connection, equal ones once.
func (c *Reader) connection(r *Record, n *Connection) {
	full := len(c.conns) >= c.maxConns
	if full && c.brief { // who wants the first alone misses none
		return
	}
	key := connKey{n.Comm, n.Channel, n.Index, n.From, n.To, n.Dir, n.Via}
	if c.conns[key] {
		return
	}
	if full {
		c.drop("connections")
		return
	}
	kept := *n
	kept.Host = r.Host
	for _, s := range []*string{&kept.Comm, &kept.Via, &kept.Net, &kept.Transport, &kept.Dir} {
		*s = c.intern(*s)
	}
	key.comm, key.via, key.dir = kept.Comm, kept.Via, kept.Dir
	c.conns[key] = true
	c.log.Connections = append(c.log.Connections, kept)
}

// parseVia reads "P2P/CUMEM/read", "SHM/direct/direct", "NET/IB/0(7)/GDRDMA". Names with blanks are "P2P/direct
// pointer", "direct shared memory" (up to 2.12) and those of network plugins. Of a network's device the number follows,
// and in brackets the local rank that acts for this one.
func (n *Connection) parseVia(s string) bool {
	cut := 0 // where a blank is still part of the name
	for _, name := range [...]string{"direct shared memory", "P2P/direct pointer"} {
		if strings.HasPrefix(s, name) {
			cut = len(name)
		}
	}
	switch n.Transport, _, _ = strings.Cut(s, "/"); n.Transport {
	case "P2P", "SHM":
	case "NET":
		name := len("NET/")
		// The device is the first part after the name that begins with a digit.
		for cut = name + 1; cut < len(s) && (s[cut-1] != '/' || s[cut] < '0' || s[cut] > '9'); {
			cut++
		}
		if cut >= min(len(s), 200) {
			return false
		}
		n.Net = s[name : cut-1]
		rest := strings.TrimLeft(s[cut:], "0123456789")
		n.NetDev = number(s[cut : len(s)-len(rest)])
		if proxy, _, ok := strings.Cut(rest, ")"); ok && proxy[0] == '(' {
			n.Proxy = number(proxy[1:])
		}
	default:
		if cut == 0 {
			return false
		}
		n.Transport = "SHM"
	}
	n.Via = s
	if i := strings.IndexByte(s[cut:], ' '); i >= 0 {
		n.Via = s[:cut+i]
	}
	n.GDR = strings.Contains(n.Via, "/GDRDMA")
	return len(n.Via) <= 200
}
