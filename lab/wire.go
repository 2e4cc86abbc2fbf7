package lab

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// request is what a client asks of the holder.
type request struct {
	Do   string `json:"do"` // exec, end, status, port, fault, heal, down
	Node string `json:"node,omitempty"`
	// Args, Env and Dir are the program's; its standard streams come as descriptors.
	Path     string   `json:"path,omitempty"`
	Args     []string `json:"args,omitempty"`
	Env      []string `json:"env,omitempty"`
	Dir      string   `json:"dir,omitempty"`
	Terminal bool     `json:"terminal,omitempty"`
	Fault    Fault    `json:"fault,omitzero"`
	What     string   `json:"what,omitempty"`
}

// answer is what the holder says.
type answer struct {
	Error  string  `json:"error,omitempty"`
	Bad    bool    `json:"bad,omitempty"` // the request was wrong, not the machine
	Code   int     `json:"code,omitempty"`
	Port   int     `json:"port,omitempty"`
	Faults []Fault `json:"faults,omitempty"`
}

// maxMessage bounds what either side reads at once: an environment is the largest.
const maxMessage = 4 << 20

// pack is a message with its length before it.
func pack(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(b) > maxMessage {
		return nil, fmt.Errorf("a message of %d bytes; at most %d", len(b), maxMessage)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...), nil
}

// unpack reads the rest of a message whose length was read.
func unpack(r io.Reader, head [4]byte, v any) error {
	n := binary.BigEndian.Uint32(head[:])
	if n > maxMessage {
		return fmt.Errorf("a message of %d bytes; at most %d", n, maxMessage)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// receive reads a message.
func receive(r io.Reader, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	return unpack(r, head, v)
}

// send writes a message.
func send(w io.Writer, v any) error {
	b, err := pack(v)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}
