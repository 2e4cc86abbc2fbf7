package engine

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
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

// maxNote limits a message on a control connection: the table of the greatest group.
const maxNote = maxSize * 512

// control is a control connection. Reads have one reader; writes may come from anywhere.
type control struct {
	c     net.Conn
	wmu   sync.Mutex
	out   [16]byte
	in    [5]byte
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

// receive reads a message; short ones into buf.
func (c *control) receive(buf []byte) (note, []byte, error) {
	if _, err := io.ReadFull(c.c, c.in[:]); err != nil {
		return 0, nil, err
	}
	n := binary.LittleEndian.Uint32(c.in[:])
	if n > maxNote {
		return 0, nil, fmt.Errorf("a control message claims %d bytes; at most %d are believed", n, maxNote)
	}
	if int(n) <= len(buf) {
		_, err := io.ReadFull(c.c, buf[:n])
		return note(c.in[4]), buf[:n], err
	}
	// Memory grows with what has come, not with what is claimed.
	var b bytes.Buffer
	if k, err := io.CopyN(&b, c.c, int64(n)); err != nil {
		return 0, nil, fmt.Errorf("a control message of %d bytes ends after %d: %w", n, k, err)
	}
	return note(c.in[4]), b.Bytes(), nil
}

// member is what the others know of a rank.
type member struct {
	Rank  int      `json:"rank"`
	Host  string   `json:"host"`
	Pid   int      `json:"pid"`
	Addrs []string `json:"addrs"`
	Boot  string   `json:"boot,omitempty"` // tells hosts apart, and network namespaces with them
}

// verdict is why a group has failed, as it travels.
type verdict struct {
	Rank    int     `json:"rank"`
	Cause   Cause   `json:"cause"`
	Text    string  `json:"text,omitempty"`
	Doing   string  `json:"doing,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
}
