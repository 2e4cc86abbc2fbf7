// Package contracts has tests alone.
package contracts
