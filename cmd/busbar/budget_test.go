package main

import (
	"os"
	"path/filepath"
	"testing"

	"busbar.dev/internal/test/budget"
)

// TestBudget holds the checkout and the surface of the command to budget.txt, and with -update brings that down to what
// there is.
func TestBudget(t *testing.T) {
	root := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skip("no checkout of git, which knows what belongs to it: clone the repository to run this")
	}
	now, err := budget.Checkout(root)
	if err != nil {
		t.Fatal(err)
	}
	parser, err := newParser(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range callable(parser.Model.Children) {
		if node.Parent == parser.Model.Node {
			now["commands"]++
		}
		called := node
		if node.DefaultCmd != nil {
			called = node.DefaultCmd
		}
		if called.Leaf() {
			for _, group := range called.AllFlags(true) {
				now["flags "+commandWords(node)] += len(group)
			}
		}
	}
	name := filepath.Join(root, "budget.txt")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	most, err := budget.Read(data)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		most = most.Lowered(now)
		if err := os.WriteFile(name, []byte(most.Text()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, over := range most.Over(now) {
		t.Error(over)
	}
}
