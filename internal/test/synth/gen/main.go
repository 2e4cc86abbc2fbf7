// Command gen writes the synthetic corpus of package synth into a folder, for people to look at: tests make what they
// need for themselves.
//
//	go run ./internal/test/synth/gen DIR
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"busbar.dev/internal/test/synth"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "gen: expected the folder to write into, e.g. go run ./internal/test/synth/gen "+
			"/tmp/synthetic")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	files, err := synth.Files()
	if err != nil {
		return err
	}
	for _, f := range files {
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(f.Text), 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("%d files\n", len(files))
	return nil
}
