// Fill fills a store with what a fleet would have said in weeks of sweeps over
// all pairs, and times how long a server takes to start with it.
//
//	go run ./fill -dir /tmp/fill -nodes 200 -news 5000000
//	go run ./fill -dir /tmp/fill -time
//
// The folder is what `busbar serve --data` takes. News is stored without waiting for
// the disk, by one speaker for all nodes; all else about it is as agents say it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/hub"
)

func main() {
	dir := flag.String("dir", "", "the folder of the server")
	nodes := flag.Int("nodes", 200, "how many nodes the fleet has")
	news := flag.Int("news", 1_000_000, "how much they say")
	timed := flag.Bool("time", false, "start with what is there instead, and say how long that takes")
	crash := flag.Bool("crash", false, "leave the store as a killed server does")
	flag.Parse()
	err := fmt.Errorf("-dir: a folder is needed")
	switch {
	case *dir == "":
	case *timed:
		err = start(filepath.Join(*dir, "bus"), *crash)
	default:
		err = fill(filepath.Join(*dir, "bus"), *nodes, *news, *crash)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fill:", err)
		os.Exit(1)
	}
}

// start times a start.
func start(dir string, crash bool) error {
	began := time.Now()
	srv, err := bus.Start(bus.ServerConfig{Dir: dir, Listen: "-"})
	if err != nil {
		return err
	}
	opened := time.Now()
	b, err := srv.Connect(bus.Config{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := b.Ensure(ctx); err != nil {
		return err
	}
	last, err := b.Last(ctx)
	if err != nil {
		return err
	}
	ensured := time.Now()
	h := hub.New(hub.Config{Bus: hub.OnBus(b)})
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	select {
	case <-h.Ready():
	case err := <-done:
		return err
	}
	ready := time.Now()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	took := ready.Sub(ensured)
	fmt.Printf("the store opens in %v, the stream is there after %v; %d entries are read in %v, %.2f µs each; %d MB of "+
		"memory; ignored %v\n",
		opened.Sub(began).Round(time.Millisecond), ensured.Sub(opened).Round(time.Millisecond), last,
		took.Round(time.Millisecond),
		float64(took.Microseconds())/float64(max(last, 1)), m.Sys>>20, h.View().Ignored())
	if crash {
		return nil
	}
	cancel()
	if err := <-done; err != nil {
		return err
	}
	b.Close()
	srv.Close()
	return nil
}
