package engine

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// The handshake: the side that accepts sends a challenge, the other answers with who it is, a
// challenge of its own and a code over all of it that only the secret can make; the first
// answers with a code in turn. Everything has a fixed length, so that a stranger cannot make
// us keep anything.
//
// The version goes up with everything that ranks must have in common: what they say to each other,
// and what Pick picks.
const (
	greeting  = "busbar\x00"
	version   = 6
	nonceLen  = 32
	helloLen  = len(greeting) + 1 + nonceLen
	answerLen = len(greeting) + 1 + 1 + 1 + 4 + 4 + 4 + 8 + nonceLen + sha256.Size
	finalLen  = 1 + sha256.Size
	patience  = 5 * time.Second // for a stranger
)

// purpose is what a connection is for.
type purpose uint8

const (
	forControl purpose = 1
	forData    purpose = 2
)

// hello is who a connection is from.
type hello struct {
	purpose    purpose
	conn       int
	epoch      uint32
	rank, size int
	work       uint64 // of the words of Config.Work
}

// Refusal is why a connection was refused.
type Refusal uint8

// Refusals, as they are counted and as they travel.
const (
	Garbage     Refusal = iota + 1 // something that does not speak our language, or nothing at all
	OtherMake                      // another version of the protocol
	WrongSecret                    // the secret or the job is another
	WrongGroup                     // the right job, but another size, epoch or an impossible rank
	Taken                          // the rank is there already
	TooMany                        // too many at once that had not proven themselves
	Untrusted                      // no certificate of the job's authority, where the job has TLS
	OtherWork                      // the right job, told to do something else
	Late                           // the others have begun without it
	refusals
)

var refusalWords = [refusals]string{
	Garbage: "it does not speak busbar's protocol", OtherMake: "it is another version of busbar",
	WrongSecret: "its secret or its job is another", WrongGroup: "it belongs to a group of another size or epoch",
	Taken: "its rank is taken", TooMany: "too many connections at once",
	Untrusted: "it shows no certificate of the job's authority",
	OtherWork: "it was told to do something else: its flags are others", Late: "it came too late: the others have begun",
}

func (r Refusal) String() string {
	if r == 0 || r >= refusals {
		return "it was refused"
	}
	return refusalWords[r]
}

// Refused is a connection that was turned away.
type Refused struct {
	From string // its address
	Rank int    // what it claimed to be; -1 where it did not come to say so
	Why  Refusal
}

func (r Refused) String() string {
	who := "a connection"
	if r.Rank >= 0 {
		who = fmt.Sprintf("rank %d", r.Rank)
	}
	return fmt.Sprintf("%s from %s was refused: %s", who, r.From, r.Why)
}

// final reports a refusal that will not be another one at the next try.
func final(err error) bool {
	var refused *refusedError
	if errors.As(err, &refused) {
		return refused.why != Garbage && refused.why != Taken && refused.why != TooMany
	}
	var forbidden *forbiddenError
	return errors.As(err, &forbidden) || isCertificateError(err)
}

// certain reports a refusal by the very job that was looked for.
func certain(err error) bool {
	var refused *refusedError
	return errors.As(err, &refused) && (refused.why == OtherWork || refused.why == OtherMake)
}

// refusedError is the refusal as the side sees it that was refused.
type refusedError struct {
	why    Refusal
	theirs byte // their version, of OtherMake
}

func (e *refusedError) Error() string {
	if e.why == Garbage {
		return "what answered is no rank of busbar"
	}
	if e.theirs != 0 {
		return fmt.Sprintf("refused: it is another version of busbar, with version %d of the protocol; here it is %d; run "+
			"the same busbar on all ranks", e.theirs, version)
	}
	return "refused: " + e.why.String()
}

// jobKey is the key of a job's codes.
func jobKey(job, secret string) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(h, "busbar job %q", job)
	return h.Sum(nil)
}

// workKey is a short form of what the ranks are to do.
func workKey(words string) uint64 {
	if words == "" {
		return 0
	}
	sum := sha256.Sum256([]byte(words))
	return binary.LittleEndian.Uint64(sum[:])
}

func code(key []byte, who string, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	io.WriteString(h, who)
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

func (h hello) encode(nonce []byte) []byte {
	b := make([]byte, 0, answerLen)
	b = append(b, greeting...)
	b = append(b, version, byte(h.purpose), byte(h.conn))
	b = binary.LittleEndian.AppendUint32(b, h.epoch)
	b = binary.LittleEndian.AppendUint32(b, uint32(h.rank))
	b = binary.LittleEndian.AppendUint32(b, uint32(h.size))
	b = binary.LittleEndian.AppendUint64(b, h.work)
	return append(b, nonce...)
}

// decodeHello reads what encode wrote and a code after it. The rank is one of the size.
func decodeHello(b []byte) (h hello, why Refusal) {
	if len(b) != answerLen || string(b[:len(greeting)]) != greeting {
		return h, Garbage
	}
	b = b[len(greeting):]
	if b[0] != version {
		return h, OtherMake
	}
	rank, size := binary.LittleEndian.Uint32(b[7:]), binary.LittleEndian.Uint32(b[11:])
	h = hello{
		purpose: purpose(b[1]), conn: int(b[2]), epoch: binary.LittleEndian.Uint32(b[3:]),
		rank: int(min(rank, maxSize)), size: int(min(size, maxSize+1)), work: binary.LittleEndian.Uint64(b[15:]),
	}
	if rank >= size || size > maxSize || h.conn >= maxConns || h.purpose != forControl && h.purpose != forData {
		return h, WrongGroup
	}
	return h, 0
}

// introduce is the handshake of the side that dialled.
func introduce(c net.Conn, key []byte, h hello) error {
	c.SetDeadline(time.Now().Add(patience))
	defer c.SetDeadline(time.Time{})
	var theirs [helloLen]byte
	if _, err := io.ReadFull(c, theirs[:]); err != nil {
		return fmt.Errorf("no greeting: %w", err)
	}
	if string(theirs[:len(greeting)]) != greeting {
		return &refusedError{why: Garbage}
	}
	if theirs[len(greeting)] != version {
		c.Write(append([]byte(greeting), version)) // so that it knows as well
		return &refusedError{why: OtherMake, theirs: theirs[len(greeting)]}
	}
	nonce := make([]byte, nonceLen)
	rand.Read(nonce)
	body := h.encode(nonce)
	if _, err := c.Write(append(body, code(key, "dial", theirs[:], body)...)); err != nil {
		return err
	}
	var final [finalLen]byte
	if _, err := io.ReadFull(c, final[:]); err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	if final[0] != 0 {
		return &refusedError{why: Refusal(final[0])}
	}
	if !hmac.Equal(final[1:], code(key, "accept", body, theirs[:])) {
		return errors.New("the other side does not know the secret")
	}
	return nil
}

// receiveHello is the handshake of the side that accepts, up to the point where who it is has
// been proven; answer ends it.
func receiveHello(c net.Conn, key []byte) (h hello, answer func(Refusal) error, why Refusal) {
	c.SetDeadline(time.Now().Add(patience))
	mine := append([]byte(greeting), version)
	nonce := make([]byte, nonceLen)
	rand.Read(nonce)
	mine = append(mine, nonce...)
	var theirs [answerLen]byte
	if _, err := c.Write(mine); err != nil {
		return h, nil, Garbage
	}
	const first = len(greeting) + 1 // another version may have more or less to say after it
	if _, err := io.ReadFull(c, theirs[:first]); err != nil || string(theirs[:len(greeting)]) != greeting {
		return h, nil, Garbage
	}
	if theirs[first-1] != version {
		return h, nil, OtherMake
	}
	if _, err := io.ReadFull(c, theirs[first:]); err != nil {
		return h, nil, Garbage
	}
	body, mac := theirs[:answerLen-sha256.Size], theirs[answerLen-sha256.Size:]
	answer = func(r Refusal) error {
		final := append([]byte{byte(r)}, make([]byte, sha256.Size)...)
		if r == 0 {
			copy(final[1:], code(key, "accept", body, mine))
		}
		_, err := c.Write(final)
		c.SetDeadline(time.Time{})
		return err
	}
	h, why = decodeHello(theirs[:])
	if !hmac.Equal(mac, code(key, "dial", mine, body)) {
		why = WrongSecret
	}
	return h, answer, why
}
