// Package snapshot reads a machine from an archive of its /sys and /proc: a tar
// file, plain or compressed with gzip or bzip2, as hwloc-gather-topology and
// support scripts make them.
//
// The archive is unpacked into memory only, within bounds: entries beyond the
// limits are refused, files are cut at the length that a sysfs attribute can
// have, and links that leave the archive lead nowhere.
package snapshot
