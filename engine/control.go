package engine

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

// note is a kind of message on a control connection.
type note uint8

const (
	noteMember  note = iota + 1 // a rank's address, to rank 0
	noteTable                   // everybody's, from rank 0
	noteAlive                   // eight bytes: what the rank is doing
	noteSuspect                 // a rank lost its connection to another
	noteVerdict                 // rank 0 names the rank because of which the group has failed
	noteBye                     // a rank leaves as it should
	noteAbort                   // rank 0 gives up before all have come
	noteParting                 // rank 0 has nothing more to do, and waits for the others to leave
	noteAsk                     // rank 0 asks whether a rank lives that another has lost
	noteHere                    // it does
	noteOrder                   // of a star: what a rank is to do
	noteReply                   // and what came of it
)

// Bounds of what a note may say.
const (
	maxText    = 1 << 10 // bytes of a text
	maxName    = 255     // of a host's name or identity
	maxZone    = 64      // of the zone of an address
	maxAddrs   = 32      // of a rank
	maxMember  = 8 << 10 // of a member as it travels
	maxVerdict = 16 << 10
	maxBody    = 9 << 20 // of an order or a reply: the longest answer of busbar-gpu, and what is around it
	maxSilence = 1e8     // seconds
)

// lengths are the bounds of a note's body in a group of so many ranks.
func (k note) lengths(size int) (least, most int64) {
	switch k {
	case noteMember:
		return 2, maxMember
	case noteTable:
		return 2, int64(size) * maxMember
	case noteAlive:
		return 8, 8
	case noteSuspect, noteVerdict:
		return 2, maxVerdict
	case noteAbort:
		return 0, maxText
	case noteOrder, noteReply:
		return 0, maxBody
	}
	return 0, 0
}

// message is a note whose fields have been checked: its ranks are of the group, its texts short and printable, its
// addresses such that something can listen there.
type message struct {
	kind    note
	state   uint64   // of noteAlive
	member  member   // of noteMember
	table   []member // of noteTable, by rank
	verdict verdict  // of noteSuspect and noteVerdict
	text    string   // of noteAbort
	body    []byte   // of noteOrder and noteReply, whose words are not the engine's
}

// control is a control connection. Reads have one reader; writes may come from anywhere.
type control struct {
	c     net.Conn
	peer  int // the rank at the other end
	size  int // of the group
	wmu   sync.Mutex
	out   [16]byte
	in    [64]byte
	limit time.Duration
}

// send writes a message.
func (c *control) send(kind note, body []byte) error {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	c.c.SetWriteDeadline(time.Now().Add(c.limit))
	b := c.out[:5]
	if len(body) > len(c.out)-5 {
		b = make([]byte, 5, 5+len(body))
	}
	binary.LittleEndian.PutUint32(b, uint32(len(body)))
	b[4] = byte(kind)
	_, err := c.c.Write(append(b, body...))
	return err
}

func (c *control) sendJSON(kind note, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return c.send(kind, b)
}

// receive reads and checks a message. What is not allowed now, or says what cannot be, is a protocolError.
func (c *control) receive(allowed ...note) (message, error) {
	if _, err := io.ReadFull(c.c, c.in[:5]); err != nil {
		return message{}, err
	}
	kind, n := note(c.in[4]), int64(binary.LittleEndian.Uint32(c.in[:]))
	if !slices.Contains(allowed, kind) {
		return message{},
			&protocolError{c.peer, fmt.Sprintf("it sent a control message of kind %d, which has no place here", kind)}
	}
	if least, most := kind.lengths(c.size); n < least || n > most {
		return message{}, &protocolError{
			c.peer, fmt.Sprintf("it sent a control message of kind %d with %d bytes; expected %d to %d", kind, n, least, most),
		}
	}
	body := c.in[:min(n, int64(len(c.in)))]
	if n <= int64(len(c.in)) {
		if _, err := io.ReadFull(c.c, body); err != nil {
			return message{}, err
		}
	} else {
		var b bytes.Buffer // memory grows with what has come, not with what is claimed
		if k, err := io.CopyN(&b, c.c, n); err != nil {
			return message{}, fmt.Errorf("a control message of %d bytes ends after %d: %w", n, k, err)
		}
		body = b.Bytes()
	}
	m, err := decodeNote(kind, body, c.size)
	if err != nil {
		return m, &protocolError{
			c.peer, fmt.Sprintf("it sent a control message of kind %d: %s", kind, printable(err.Error(), maxName)),
		}
	}
	return m, nil
}

// decodeNote checks a note's body; nothing else reads it.
func decodeNote(kind note, body []byte, size int) (m message, err error) {
	m.kind = kind
	switch kind {
	case noteMember:
		m.member, err = decodeMember(body, size)
	case noteTable:
		m.table, err = decodeTable(body, size)
	case noteAlive:
		m.state = binary.LittleEndian.Uint64(body)
	case noteSuspect, noteVerdict:
		m.verdict, err = decodeVerdict(body, size)
	case noteAbort:
		m.text = printable(string(body), maxText)
	case noteOrder, noteReply:
		m.body = bytes.Clone(body)
	}
	return m, err
}

// printable is a text of at most so many bytes that does nothing to a terminal.
func printable(s string, most int) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s[:min(len(s), most)], ""))
}

// member is what the others know of a rank.
type member struct {
	Rank  int              `json:"rank"`
	Host  string           `json:"host"`
	Pid   int              `json:"pid"`
	Addrs []netip.AddrPort `json:"addrs"`
	Boot  string           `json:"boot,omitempty"` // tells hosts apart, and network namespaces with them
}

func decodeMember(b []byte, size int) (m member, err error) {
	if err := json.Unmarshal(b, &m); err != nil {
		return m, err
	}
	return m, m.check(size)
}

// check refuses a member that cannot be one, and makes its texts printable.
func (m *member) check(size int) error {
	m.Host, m.Boot = printable(m.Host, maxName), printable(m.Boot, maxName)
	switch {
	case m.Rank < 0 || m.Rank >= size:
		return fmt.Errorf("rank %d of %d", m.Rank, size)
	case m.Pid < 1 || m.Pid > math.MaxInt32:
		return fmt.Errorf("rank %d is process %d", m.Rank, m.Pid)
	case len(m.Addrs) < 1 || len(m.Addrs) > maxAddrs:
		return fmt.Errorf("rank %d has %d addresses; expected 1 to %d", m.Rank, len(m.Addrs), maxAddrs)
	}
	for _, a := range m.Addrs {
		if a.Port() == 0 || a.Addr().IsMulticast() || len(a.Addr().Zone()) > maxZone {
			return fmt.Errorf("rank %d listens at %.80q, which is no address to listen at", m.Rank, a)
		}
	}
	return nil
}

// decodeTable is all members, by rank.
func decodeTable(b []byte, size int) (table []member, err error) {
	if err := json.Unmarshal(b, &table); err != nil {
		return nil, err
	}
	if len(table) != size {
		return nil, fmt.Errorf("a table of %d members; expected %d", len(table), size)
	}
	for r := range table {
		if err := table[r].check(size); err != nil {
			return nil, err
		}
		if table[r].Rank != r {
			return nil, fmt.Errorf("rank %d in the place of rank %d", table[r].Rank, r)
		}
	}
	return table, nil
}

// verdict is why a group has failed, as it travels.
type verdict struct {
	Rank    int     `json:"rank"`
	Cause   Cause   `json:"cause"`
	Text    string  `json:"text,omitempty"`
	Doing   string  `json:"doing,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
}

func decodeVerdict(b []byte, size int) (v verdict, err error) {
	if err := json.Unmarshal(b, &v); err != nil {
		return v, err
	}
	v = v.short()
	switch {
	case v.Rank < 0 || v.Rank >= size:
		return v, fmt.Errorf("it blames rank %d of %d", v.Rank, size)
	case !slices.Contains(causes, v.Cause):
		return v, fmt.Errorf("the unknown cause %.20q", v.Cause)
	case !(v.Seconds >= 0 && v.Seconds <= maxSilence):
		return v, fmt.Errorf("a silence of %g s", v.Seconds)
	}
	return v, nil
}

// short is the verdict with texts that may travel: what another program printed may be long.
func (v verdict) short() verdict {
	v.Text, v.Doing = printable(v.Text, maxText), printable(v.Doing, maxText)
	return v
}
