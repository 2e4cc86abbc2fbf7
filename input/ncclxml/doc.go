// Package ncclxml reads and writes NCCL topology XML: what NCCL dumps with
// NCCL_TOPO_DUMP_FILE and takes with NCCL_TOPO_FILE, in NCCL's dialect (system
// version 1, nvlink) and RCCL's (version 2, xgmi).
//
// Read takes the file itself or a log that contains it, several dumps in one
// text, dumps cut off at the end (with a warning), and files that people wrote
// with nothing but pci elements. It refuses a text without a system element, and
// follows no XML entities.
//
// What the format says, and how it is taken:
//
//   - A cpu element is a NUMA domain. Sockets and host bridges are not in the
//     format. Every pci element right below a cpu is given a host bridge of its
//     own, because servers have one per root port group; only devices on bus 0 of
//     one PCI domain, as virtual machines have them, share one.
//   - link_speed and link_width are what the two ends could do, not what they
//     trained to: NCCL reads max_link_speed and max_link_width (GPUs in 2.30.7
//     and later excepted). They go into Link.GTs and Link.Lanes and leave the
//     maxima unknown, so that nobody concludes from them that a link trained well.
//   - A pci element is a GPU, a NIC or a bridge by what is inside it, else by its
//     class. Without either it is a device of unknown kind, never a guessed GPU.
//   - GPUs without a gpu element are numbered in PCI order, as NVML numbers them.
//   - All NVSwitches are one device, as NCCL itself has it.
//   - guid is written by NCCL in the byte order of the network; it is turned
//     round so that it equals what ibstat prints. It is the card's system image
//     GUID, which is also the port's where a card has one port.
//   - RCCL's sm attribute counts compute units and is not kept; gcn is the
//     architecture.
//
// Not kept: rank, latency, maxconn, keep, and RCCL's arch flags.
//
// Write gives one node in the form that NCCL's own parser accepts, which is less
// than XML: single spaces, double quotes, values under 255 characters, at most
// 255 elements. It says what NCCL reads. What the format has no word for is not in it:
// sockets, host bridges, GPU models, rates and latencies of links inside
// the node (lanes and transfer rates are), the maxima of links, memory, peak
// speeds, measured pairs, MTU, ports that are down, MIG slices, where a figure
// came from, and what belongs to one machine (UUIDs, counters).
// Who wants all of that back writes a cluster file.
//
// A device without an address gets one in a domain that is made up. It is no device of the machine, so NCCL drops it:
// a file for a real machine needs the real addresses of its GPUs and NICs.
package ncclxml
