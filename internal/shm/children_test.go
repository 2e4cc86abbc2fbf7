//go:build linux

package shm

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary starts itself again as the other processes: the variable says
// what to be, and the arguments follow on standard input, a line each.
const childEnv = "BUSBAR_SHM_CHILD"

func TestMain(m *testing.M) {
	role := os.Getenv(childEnv)
	if role == "" {
		os.Exit(m.Run())
	}
	roles := map[string]func(in *bufio.Scanner) error{
		"echo": beEcho, "sink": beSink, "flood": beFlood, "named": beNamed, "rank": beRank, "reader": beReader,
		"meeting": beMeeting,
	}
	if err := roles[role](bufio.NewScanner(os.Stdin)); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child is a started process.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(t testing.TB, role string, env ...string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), childEnv+"="+role), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &child{cmd: cmd, in: in, out: bufio.NewScanner(out)}
}

func (c *child) say(t testing.TB, line any) {
	t.Helper()
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		t.Fatal(err)
	}
}

func (c *child) hear(t testing.TB) string {
	t.Helper()
	if !c.out.Scan() {
		t.Fatalf("the child ended without a word: %v", c.out.Err())
	}
	return c.out.Text()
}

func (c *child) kill(t testing.TB) {
	t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait()
}

func readLine(in *bufio.Scanner) (string, error) {
	if !in.Scan() {
		return "", errors.Join(io.ErrUnexpectedEOF, in.Err())
	}
	return in.Text(), nil
}

func readNumbers(in *bufio.Scanner, to ...*int) error {
	for _, n := range to {
		s, err := readLine(in)
		if err != nil {
			return err
		}
		if *n, err = strconv.Atoi(s); err != nil {
			return err
		}
	}
	return nil
}

// openLine opens the segment whose handle is the next line.
func openLine(in *bufio.Scanner) (*Segment, error) {
	s, err := readLine(in)
	if err != nil {
		return nil, err
	}
	h, err := ParseHandle(s)
	if err != nil {
		return nil, err
	}
	return Open(h, h.Size)
}

// leftovers are the names that segments of ours have under /dev/shm.
func leftovers(t testing.TB) []string {
	t.Helper()
	names, err := filepath.Glob(dir + "/" + prefix + "test" + strconv.Itoa(os.Getpid()) + "*")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func testName(what string) string {
	return fmt.Sprintf("test%d-%s", os.Getpid(), what)
}

// rings makes a segment of two rings.
func rings(t testing.TB, message, number int) *Segment {
	t.Helper()
	size, err := RingSize(message, number)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Create(int64(2 * size))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ends are the consumer of the first ring and the producer of the second, or the
// other way round.
func ends(s *Segment, first bool) (*Producer, *Consumer, error) {
	half := len(s.mem) / 2
	out, in := s.mem[:half], s.mem[half:]
	if !first {
		out, in = in, out
	}
	p, err := NewProducer(out)
	if err != nil {
		return nil, nil, err
	}
	c, err := NewConsumer(in)
	return p, c, err
}

// attach is the child's side of rings whose handle is the next line; it says that it
// is ready.
func attach(in *bufio.Scanner) (*Producer, *Consumer, error) {
	s, err := openLine(in)
	if err != nil {
		return nil, nil, err
	}
	p, c, err := ends(s, false)
	if err == nil {
		fmt.Println("ready")
	}
	return p, c, err
}

// talk starts a child at the other side of two rings and returns our ends of them.
func talk(t testing.TB, what string, message, number int) (*child, *Producer, *Consumer) {
	t.Helper()
	s := rings(t, message, number)
	c := start(t, what)
	c.say(t, s.Handle())
	if got := c.hear(t); got != "ready" {
		t.Fatal(got)
	}
	if err := s.Settle(); err != nil {
		t.Fatal(err)
	}
	out, in, err := ends(s, true)
	if err != nil {
		t.Fatal(err)
	}
	return c, out, in
}

// beEcho sends every message back until the end.
func beEcho(in *bufio.Scanner) error {
	p, c, err := attach(in)
	if err != nil {
		return err
	}
	patience := &Patience{Limit: 20 * time.Second}
	for {
		m, err := c.Next(patience)
		if err == io.EOF {
			return p.Close(patience)
		}
		if err != nil {
			return err
		}
		if err := p.Send(m, patience); err != nil {
			return err
		}
		c.Release()
	}
}

// beSink takes messages until the end and answers with their count.
func beSink(in *bufio.Scanner) error {
	p, c, err := attach(in)
	if err != nil {
		return err
	}
	patience := &Patience{Limit: 20 * time.Second}
	count := uint64(0)
	for {
		if _, err = c.Next(patience); err != nil {
			break
		}
		c.Release()
		count++
	}
	if err != io.EOF {
		return err
	}
	return p.Send(binary.LittleEndian.AppendUint64(nil, count), patience)
}

// beFlood sends messages for ever.
func beFlood(in *bufio.Scanner) error {
	p, _, err := attach(in)
	if err != nil {
		return err
	}
	patience := &Patience{Limit: 20 * time.Second}
	for i := uint64(0); ; i++ {
		if err := p.Send(binary.LittleEndian.AppendUint64(nil, i), patience); err != nil {
			return err
		}
	}
}

// beNamed makes a named segment and stays.
func beNamed(in *bufio.Scanner) error {
	name, err := readLine(in)
	if err != nil {
		return err
	}
	s, err := CreateNamed(name, 8192)
	if err != nil {
		return err
	}
	copy(s.Bytes(), "hello")
	fmt.Println(s.Handle())
	_, err = readLine(in)
	return err
}

// beReader opens a segment and tells what it begins with.
func beReader(in *bufio.Scanner) error {
	s, err := openLine(in)
	if err != nil {
		return err
	}
	fmt.Println(strings.TrimRight(string(s.Bytes()[:16]), "\x00"))
	return s.Close()
}
