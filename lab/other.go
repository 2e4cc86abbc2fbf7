//go:build !linux

package lab

import "context"

// Lab cannot be opened here.
type Lab struct{ State *State }

// Running cannot be started here.
type Running struct{}

// Start refuses.
func Start(context.Context, Config) (*State, error) { return nil, errOther }

// Hold refuses.
func Hold() error { return errOther }

// Open refuses.
func (f Folder) Open(string) (*Lab, error) { return nil, errOther }

// Down refuses.
func (f Folder) Down(string) (bool, error) { return false, errOther }

// Fault refuses.
func (l *Lab) Fault(Fault) ([]Fault, error) { return nil, errOther }

// Repair refuses.
func (l *Lab) Repair(string) ([]Fault, error) { return nil, errOther }

// Port refuses.
func (l *Lab) Port() (int, error) { return 0, errOther }

// Exec refuses.
func (l *Lab) Exec(context.Context, Program) (*Running, error) { return nil, errOther }

// Shell refuses.
func (l *Lab) Shell(context.Context, Program) (int, error) { return 0, errOther }

// Wait refuses.
func (r *Running) Wait() (int, error) { return 0, errOther }
