package nccllog

import (
	"strings"
	"unicode/utf8"
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
	f := fields(buf[:0], head)
	if len(f) < 5 {
		return nil
	}
	n := reuse[Connection](r)
	*n = Connection{Index: -1, NetDev: -1, Proxy: -1, First: r.At, N: 1}
	ch, index, slash := strings.Cut(f[1], "/")
	if n.Channel = number(ch); slash {
		n.Index = number(index)
	}
	f = f[2:]
	if f[0] == ":" {
		f = f[1:]
	}
	if n.Channel < 0 || len(f) < 3 || f[1] != "->" || len(f) > 4 {
		return nil
	}
	var okFrom, okTo bool
	n.From, n.FromDev, okFrom = end(f[0])
	n.To, n.ToDev, okTo = end(f[2])
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

// reuse is memory for a message: that of one that nobody needs any more, where it is of the same type.
func reuse[T any](r *Record) *T {
	if m, ok := r.spare.(*T); ok {
		r.spare = nil
		return m
	}
	return new(T)
}

// fields appends the words of a text as strings.Fields finds them; it stops when the list is full.
func fields(list []string, s string) []string {
	for len(list) < cap(list) {
		from := 0
		for from < len(s) && (s[from] == ' ' || s[from] >= '\t' && s[from] <= '\r') {
			from++
		}
		to := from
		for to < len(s) && s[to] != ' ' && (s[to] < '\t' || s[to] > '\r') {
			if s[to] >= utf8.RuneSelf { // there are other blanks
				return append(list, strings.Fields(s[from:])...)
			}
			to++
		}
		if from == to {
			break
		}
		list, s = append(list, s[from:to]), s[to:]
	}
	return list
}

// parseCollNet reads "CollNet 00/0 : 3 [send] via COLLNET/SHARP/0/GDRDMA".
func parseCollNet(r *Record) any {
	head, via, _ := strings.Cut(r.Text, " via ")
	f := strings.Fields(head)
	if len(f) != 5 || f[2] != ":" {
		return nil
	}
	ch, index, slash := strings.Cut(f[1], "/")
	n := &Connection{
		Channel: number(ch), Index: -1, NetDev: -1, Proxy: -1, From: number(f[3]), To: -1, Dir: strings.Trim(f[4], "[]"),
		First: r.At, N: 1,
	}
	if slash {
		n.Index = number(index)
	}
	if n.Channel < 0 || n.From < 0 {
		return nil
	}
	return n.way(via)
}

// end splits "12[101c0]"; 2.4 printed the rank alone in places.
func end(s string) (rank int, dev string, ok bool) {
	num, dev, bracket := strings.Cut(s, "[")
	rank = number(num)
	dev, closed := strings.CutSuffix(dev, "]")
	return rank, dev, bracket == closed && rank >= 0 && allDigits(num) && (num[0] != '0' || num == "0")
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
	if n.kind = n.parseVia(via); n.Via == "" {
		return nil
	}
	return n
}

// connection files a connection, equal ones once.
func (c *collector) connection(r *Record, n *Connection) {
	if !c.via.countText(n.kind, n.First, maxShapes) {
		c.drop("ways of connecting")
	}
	key := connKey{n.Comm, n.Channel, n.Index, n.From, n.To, n.Dir, n.Via}
	if i, ok := c.conns[key]; ok {
		c.log.Connections[i].N++
		return
	}
	if len(c.conns) >= c.maxConns {
		if !c.brief { // who wants the first alone misses none
			c.drop("connections")
		}
		return
	}
	kept := *n
	kept.Host, kept.kind = r.Host, ""
	for _, s := range []*string{&kept.Comm, &kept.Via, &kept.Net, &kept.Transport, &kept.FromDev, &kept.ToDev, &kept.Dir} {
		*s = c.intern(*s)
	}
	key.comm, key.via, key.dir = kept.Comm, kept.Via, kept.Dir
	c.conns[key] = len(c.log.Connections)
	c.log.Connections = append(c.log.Connections, kept)
}

// parseVia reads "P2P/CUMEM/read", "SHM/direct/direct", "NET/IB/0(7)/GDRDMA".
// Names with blanks are "P2P/direct pointer", "direct shared memory" and those of
// network plugins. It returns the way without device numbers.
func (n *Connection) parseVia(s string) string {
	if rest, ok := strings.CutPrefix(s, "direct shared memory"); ok { // up to 2.12
		n.Via, n.Transport = s[:len(s)-len(rest)], "SHM"
		return n.Via
	}
	n.Transport, _, _ = strings.Cut(s, "/")
	switch n.Transport {
	case "P2P", "SHM", "NET", "COLLNET":
	default:
		return ""
	}
	cut := 0 // where a blank is still part of the name
	if rest, ok := strings.CutPrefix(s, "P2P/direct pointer"); ok {
		cut = len(s) - len(rest)
	}
	dev := -1
	if n.Transport == "NET" || n.Transport == "COLLNET" {
		// The device is the first part after the name that begins with a digit.
		for i := len(n.Transport) + 2; i < len(s) && i < 200; i++ {
			if s[i-1] == '/' && s[i] >= '0' && s[i] <= '9' {
				dev = i
				break
			}
		}
		if dev < 0 {
			return ""
		}
		n.Net = s[len(n.Transport)+1 : dev-1]
		cut = dev
	}
	n.Via = s
	if i := strings.IndexByte(s[cut:], ' '); i >= 0 {
		n.Via = s[:cut+i]
	}
	if len(n.Via) > 200 {
		n.Via = ""
		return ""
	}
	n.GDR = strings.Contains(n.Via, "/GDRDMA")
	n.Shared = strings.Contains(n.Via, "/Shared")
	if dev < 0 {
		return n.Via
	}
	return n.device(dev)
}

// device reads the number of the network's device, and in brackets the local
// rank that acts for this one.
func (n *Connection) device(at int) string {
	rest := n.Via[at:]
	d := 0
	for d < len(rest) && rest[d] >= '0' && rest[d] <= '9' {
		d++
	}
	n.NetDev = number(rest[:d])
	kind := n.Via[:at] + "*"
	rest = rest[d:]
	if inner, after, ok := strings.Cut(rest, ")"); ok && strings.HasPrefix(inner, "(") {
		if n.Proxy = number(inner[1:]); n.Proxy >= 0 {
			return kind + "(*)" + after
		}
	}
	return kind + rest
}
