package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A run that waits for its input ends when the context does.
func TestRunStops(t *testing.T) {
	for sig, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		ctx, cancel := context.WithCancelCause(context.Background())
		in, hold := io.Pipe()
		var stderr bytes.Buffer
		go func() {
			if _, err := hold.Write([]byte("GPU0")); err != nil {
				t.Error(err)
			}
			cancel(interrupted{sig})
		}()
		if code := run(ctx, in, io.Discard, &stderr, []string{"map", "-"}); code != want {
			t.Errorf("%v: exit code %d, want %d; standard error: %s", sig, code, want, stderr.String())
		}
		if n := strings.Count(stderr.String(), "\n"); n != 1 {
			t.Errorf("%v: %d lines of standard error, want one: %s", sig, n, stderr.String())
		}
		hold.Close()
	}
}

// A file that is being written is gone when the run stops, and does not appear
// later.
func TestUnfinishedFileGoes(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancelCause(context.Background())
	e := &env{ctx: ctx}
	begun, goOn, ended := make(chan bool), make(chan bool), make(chan error)
	err := e.untilDone(func() error {
		go func() {
			ended <- e.writeFile(filepath.Join(dir, "x.yaml"), func(w io.Writer) error {
				close(begun)
				<-goOn
				_, err := io.WriteString(w, "late")
				return err
			})
		}()
		<-begun
		cancel(interrupted{syscall.SIGTERM})
		<-goOn
		return nil
	})
	if code, ok := interruptedCode(io.Discard, err); !ok || code != 143 {
		t.Errorf("ended with %v, code %d", err, code)
	}
	left := func(when string) {
		t.Helper()
		files, err := os.ReadDir(dir)
		if err != nil || len(files) > 0 {
			t.Errorf("%s: left behind: %v, %v", when, files, err)
		}
	}
	left("after the signal")
	close(goOn)
	if err := <-ended; err == nil {
		t.Error("the file was finished after the end")
	}
	left("after the writer ended")
}
