// Package osdep holds what Unix and Windows do differently: file locks, owners of files, process groups and limits.
//
// On Windows a function that has no counterpart reports that, or answers as for a file or process that nobody else
// uses.
package osdep
