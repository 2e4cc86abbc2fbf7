// Package nicstat asks the kernel for the counters that the driver of a network interface keeps
// beyond those of /sys: what `ethtool -S` prints. Pause frames, discards of priorities and errors
// of the line code are only there.
//
// They are read with the SIOCETHTOOL ioctl (Linux, include/uapi/linux/ethtool.h): how many there are
// (ETHTOOL_GSSET_INFO), their names (ETHTOOL_GSTRINGS), their values (ETHTOOL_GSTATS). Anybody may
// ask; there is no program to be run.
package nicstat
