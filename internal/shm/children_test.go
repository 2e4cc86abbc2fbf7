//go:build linux

package shm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// The test binary starts itself again as the other processes: the variable says
// what to be, and the arguments follow on standard input, a line each.
const childEnv = "BUSBAR_SHM_CHILD"

func TestMain(m *testing.M) {
	role := os.Getenv(childEnv)
	if role == "" {
		os.Exit(m.Run())
	}
	roles := map[string]func(in *bufio.Scanner) error{"holder": beHolder, "reader": beReader}
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

func start(t testing.TB, role string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+role)
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

// beHolder makes a segment and stays.
func beHolder(in *bufio.Scanner) error {
	s, err := Create(8192)
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
