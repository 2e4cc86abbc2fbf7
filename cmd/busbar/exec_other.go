//go:build !linux

package main

import (
	"errors"

	"busbar.dev/internal/failure"
	"busbar.dev/launch"
)

func allowed() ([]int, error) { return nil, errors.New("only Linux says") }

func become(*launch.Binding, []string) error {
	return failure.Cannot(errors.New("exec binds processes to cores, which it does on Linux only"))
}
