package main

import (
	"errors"
	"strings"
	"testing"
)

// Flags of other programs are answered with those that say the same here.
func TestMeantFlags(t *testing.T) {
	for text, want := range map[string]string{
		"unknown flag --batch-size":                    "--micro-batch",
		`unknown flag --gpus, did you mean "--gpu"?`:   "-l NODESxGPUS",
		`unknown flag --gpusx, did you mean "--gpus"?`: `did you mean "--gpus"?`,
	} {
		if got := unreadable(errors.New(text)); !strings.Contains(got, want) {
			t.Errorf("%s: %s", text, got)
		}
	}
}
