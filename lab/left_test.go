//go:build linux

package lab

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"busbar.dev/internal/test/eventually"
)

// world is what a lab could leave behind: network namespaces, interfaces, processes.
func world(t *testing.T) (spaces, links []string) {
	t.Helper()
	procs, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		if s, err := os.Readlink(p); err == nil && !slices.Contains(spaces, s) {
			if exe, err := os.Readlink(filepath.Join(filepath.Dir(filepath.Dir(p)), "exe")); err == nil && exe == self() {
				spaces = append(spaces, s)
			}
		}
	}
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		links = append(links, l.Name)
	}
	slices.Sort(spaces)
	slices.Sort(links)
	return spaces, links
}

// settled waits until the world is what it was.
func settled(t *testing.T, spaces, links []string) {
	t.Helper()
	var s, l []string
	if !eventually.Within(eventually.Limit, func() bool {
		s, l = world(t)
		return slices.Equal(s, spaces) && slices.Equal(l, links)
	}) {
		t.Fatalf("left behind: namespaces %v, before %v; interfaces %v, before %v", s, spaces, l, links)
	}
}

// noneLeft waits until the world is as it was, and looks into the folder.
func noneLeft(t *testing.T, folder Folder, spaces, links []string) {
	t.Helper()
	settled(t, spaces, links)
	if names, _ := folder.Names(); len(names) > 0 {
		t.Errorf("left in the folder: %v", names)
	}
}

func cycles(t *testing.T, usual int) int {
	if s := os.Getenv("BUSBAR_LAB_CYCLES"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return usual
}

func TestNothingIsLeftAfterDown(t *testing.T) {
	spaces, links := world(t)
	folder := Folder(filepath.Join(t.TempDir(), "labs"))
	for i := range cycles(t, 3) {
		_, err := Start(t.Context(), Config{
			Folder: folder, Name: "t", Plan: twoNodes(t), Program: self(), Args: holderArgs(), Rootless: i%2 == 1,
		})
		skipWithout(t, err)
		if err != nil {
			t.Fatalf("cycle %d: %v", i, err)
		}
		l, err := folder.Open("t")
		if err != nil {
			t.Fatal(err)
		}
		serve(t, l, "node1") // it does not end by itself
		if was, err := folder.Down("t"); !was || err != nil {
			t.Fatalf("cycle %d: %v, %v", i, was, err)
		}
	}
	noneLeft(t, folder, spaces, links)
}

// TestKilledAnywhere kills the program that starts a lab, or the holder, at random
// moments.
func TestKilledAnywhere(t *testing.T) {
	spaces, links := world(t)
	folder := Folder(filepath.Join(t.TempDir(), "labs"))
	mode := "root"
	if !privileged() {
		mode = "rootless"
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range cycles(t, 6) {
		cmd := exec.Command(self(), "start", string(folder), mode)
		var said bytes.Buffer
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(r.IntN(60)) * time.Millisecond) // a process is killed at any moment of its start
		if i%2 == 0 {
			cmd.Process.Kill()
		}
		cmd.Wait()
		if strings.Contains(said.String(), "needs either root") {
			t.Skipf("needs rights: %s", said.String())
		}
		if s, err := folder.read("t"); err == nil && s.Pid > 0 && i%4 != 0 {
			syscall.Kill(s.Pid, syscall.SIGKILL)
		}
		if i%3 == 0 {
			continue // the next start cleans
		}
		if _, err := folder.Down("t"); err != nil {
			t.Fatalf("kill %d: %v", i, err)
		}
	}
	if _, err := folder.Down("t"); err != nil {
		t.Fatal(err)
	}
	noneLeft(t, folder, spaces, links)
}

func TestStartIsCancelled(t *testing.T) {
	spaces, links := world(t)
	folder := Folder(filepath.Join(t.TempDir(), "labs"))
	for d := range 4 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(d)*5*time.Millisecond)
		_, err := Start(ctx, Config{Folder: folder, Name: "t", Plan: twoNodes(t), Program: self(), Args: holderArgs()})
		cancel()
		skipWithout(t, err)
		if err == nil {
			if _, err := folder.Down("t"); err != nil {
				t.Fatal(err)
			}
		}
		if names, _ := folder.Names(); len(names) > 0 {
			t.Errorf("left in the folder: %v", names)
		}
	}
	settled(t, spaces, links)
}
