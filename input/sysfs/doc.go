// Package sysfs reads a Linux machine from its /sys and /proc: sockets, NUMA
// domains, the PCIe tree with trained against possible link speed and width,
// GPUs, and NICs with rate, MTU, state and error counters.
//
// It takes an fs.FS, so the live machine (os.DirFS("/")), a support bundle and
// a test look alike. A folder that is /sys itself, or only its class/infiniband,
// will do. The file system should tell where symbolic links point
// (fs.ReadLinkFS), since that is how /sys shows the tree.
//
// What is missing or may not be read is left unknown. A machine without GPUs or
// without InfiniBand is an ordinary machine. Not read: anything that needs a
// device opened or a driver asked, such as NVLink (nvidia-smi says that) or PCI
// configuration space; interfaces that are no hardware (bridges, bonds, veth).
package sysfs
