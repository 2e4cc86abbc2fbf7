// Site writes the documents of a checkout as plain HTML with a search, which needs neither a server nor anything from
// elsewhere:
//
//	go run -C tools/pack ./site -root ../.. -o site
//
// Pages keep the paths of their Markdown files. The reference is what the commands print about themselves. A link that
// leads nowhere, or to a heading that is not there, is an error.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("site: ")
	root := flag.String("root", ".", "root of the checkout")
	out := flag.String("o", "site", "folder to write to, relative to the root; it is emptied")
	program := flag.String("busbar", "", "program whose help becomes the reference (default: built from the checkout)")
	flag.Parse()
	if err := run(*root, filepath.Join(*root, *out), *program); err != nil {
		log.Fatal(err)
	}
}

func run(root, out, program string) error {
	pages, err := documents(os.DirFS(root))
	if err != nil {
		return err
	}
	helps, err := reference(root, program)
	if err != nil {
		return err
	}
	s, err := build(os.DirFS(root), append(pages, helps...))
	if err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	for name, data := range s.files {
		at := filepath.Join(out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(at, data, 0o666); err != nil {
			return err
		}
	}
	log.Printf("%d pages, %d files, %d links checked; open %s", len(s.pages), len(s.files), s.links,
		filepath.Join(out, "index.html"))
	return nil
}

// source is a page before it is HTML.
type source struct {
	path string // of the Markdown file, relative to the root
	text []byte
}

// documents are all Markdown files that people read: those of the root, and docs.
func documents(root fs.FS) ([]source, error) {
	names, err := fs.Glob(root, "*.md")
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(root, "docs", func(name string, d fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".md" {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var list []source
	for _, name := range names {
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return nil, err
		}
		list = append(list, source{name, text})
	}
	return list, nil
}

// reference is a page for each command with what --help prints, and one that lists them.
func reference(root, program string) ([]source, error) {
	dir, err := os.MkdirTemp("", "busbar-site-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if program == "" {
		program = filepath.Join(dir, "busbar")
		cmd := exec.Command("go", "build", "-trimpath", "-o", program, "./cmd/busbar")
		cmd.Dir, cmd.Stderr = root, os.Stderr
		if err := cmd.Run(); err != nil {
			return nil, err
		}
	}
	if out, err := exec.Command(program, "man", "--dir", dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("busbar man: %w: %s", err, out)
	}
	names, err := filepath.Glob(filepath.Join(dir, "busbar-*.1"))
	if err != nil || len(names) == 0 {
		return nil, errors.Join(err, errors.New("busbar man wrote no pages"))
	}
	slices.Sort(names)
	var list []source
	index := "# Commands and their flags\n\n"
	for _, n := range names {
		command := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(n), "busbar-"), ".1")
		help, err := exec.Command(program, command, "--help").Output()
		if err != nil {
			return nil, fmt.Errorf("busbar %s --help: %w", command, err)
		}
		text := "# busbar " + command + "\n\n"
		if _, err := os.Stat(filepath.Join(root, "docs", "manual", command+".md")); err == nil {
			text += "[Examples and explanations](../manual/" + command + ".md)\n\n"
		}
		list = append(list, source{"docs/reference/" + command + ".md", []byte(text + "```\n" + string(help) + "```\n")})
		index += "- [" + command + "](" + command + ".md)\n"
	}
	return append(list, source{"docs/reference/README.md", []byte(index)}), nil
}
