package doctor

import (
	"slices"
	"strings"

	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
)

// remedy is what a setting that helps says about the cause. People try settings
// before they ask, and which of them made a difference is often the best evidence
// there is.
type remedy struct {
	setting string // how the setting begins, in lower case
	id      string // of the finding it speaks for
	sure    float64
	applies func(c *Case) bool // nil: always
	cause   string
}

// remedies adds findings that settings speak for, and makes surer those that are
// there already.
func (c *Case) remedies(found []finding.Finding) []finding.Finding {
	if !c.Has(evidence.Helps) {
		return found
	}
	titles := map[string]Rule{}
	for _, r := range Rules() {
		titles[r.ID] = r
	}
	for _, r := range remedyTable {
		if r.applies != nil && !r.applies(c) {
			continue
		}
		o := c.helper(r.setting)
		if o == nil {
			continue
		}
		if i := slices.IndexFunc(found, func(f finding.Finding) bool { return f.ID == r.id }); i >= 0 {
			f := &found[i]
			f.Confidence = max(f.Confidence, r.sure)
			if f.Severity == finding.Note {
				f.Severity = finding.Warn
			}
			f.Evidence = first(append(c.quotes(o), f.Evidence...), maxEvidence)
			continue
		}
		rule := titles[r.id]
		f := finding.Finding{
			Severity: finding.Warn, Confidence: r.sure, Title: strings.ToUpper(rule.Says[:1]) + rule.Says[1:],
			Cause: "It works with " + strings.ToUpper(o.Arg(0)) + ": " + r.cause, Fix: "Keep the setting until the cause is gone; " + rule.Reference + " says what it does.", Evidence: c.quotes(o),
		}
		tidy(&f, &rule)
		found = append(found, f)
	}
	return found
}

// helper is a setting that is told to help and begins so.
func (c *Case) helper(setting string) *evidence.Observation {
	return c.Find(evidence.Helps, func(o *evidence.Observation) bool {
		return strings.HasPrefix(strings.ReplaceAll(o.Arg(0), " ", ""), setting)
	})
}

func roce(c *Case) bool     { return c.layer() == "RoCE" }
func notRoCE(c *Case) bool  { return c.layer() != "RoCE" }
func bonded(c *Case) bool   { return c.about("bond") || c.bondInUse() != nil }
func unbonded(c *Case) bool { return !bonded(c) }
func broke(c *Case) bool    { return c.broken() || c.is("wrong") }
func isWrong(c *Case) bool  { return c.is("wrong") || c.Has(evidence.TableWrong) }
func notWrong(c *Case) bool { return !isWrong(c) }

var remedyTable = []remedy{
	{"nccl_socket_ifname", "wrong-interface", 0.85, nil, "left alone, NCCL takes an interface that does not reach the other hosts."},
	{"nccl_ib_gid_index", "gid-index", 0.85, nil, "the GID that NCCL takes by itself is not the routable one."},
	{"nccl_ib_hca", "wrong-interface", 0.7, nil, "among all NICs there are some that belong to another network or do not reach."},
	{"nccl_ib_tc", "roce-loss", 0.75, nil, "only this traffic class is free of loss."},
	{"nccl_ib_sl", "fabric", 0.6, nil, "only this service level has the routes or buffers it needs."},
	{"nccl_ib_ece_enable=0", "roce-loss", 0.7, nil, "the NICs' enhanced connection establishment does not agree."},
	{"nccl_shm_disable=1", "shm-too-small", 0.7, broke, "shared memory is what fails."},
	{"nccl_nvls_enable=0", "nvls-failed", 0.8, broke, "multicast over NVLink is what fails."},
	{"nccl_p2p_disable=1", "iommu", 0.7, broke, "P2P between GPUs is what fails, for which a translating IOMMU is the usual reason."},
	{"nccl_p2p_disable=1", "acs", 0.62, func(c *Case) bool { return broke(c) && !c.in("geforce") }, "P2P between GPUs is what fails; ACS on the bridges above them redirects it."},
	{"nccl_net_gdr_level=0", "acs", 0.75, broke, "GPUDirect RDMA is what fails."},
	{"nccl_net_gdr_level=loc", "acs", 0.75, broke, "GPUDirect RDMA is what fails."},
	{"nccl_net_gdr_read=0", "acs", 0.65, broke, "GPUDirect RDMA is what fails."},
	{"nccl_net_gdr_level=sys", "gdr-off", 0.65, nil, "NIC and GPU are, or look, too far apart for GPUDirect RDMA."},
	{"nccl_net_gdr_level=5", "gdr-off", 0.65, nil, "NIC and GPU are, or look, too far apart for GPUDirect RDMA."},
	{"nccl_net_gdr_level=phb", "gdr-off", 0.65, nil, "NIC and GPU are, or look, too far apart for GPUDirect RDMA."},
	{"nccl_ib_disable=1", "gid-index", 0.6, func(c *Case) bool { return roce(c) && broke(c) }, "RoCE is what fails, and the GID index is its usual reason."},
	{"nccl_ib_disable=1", "net-mismatch", 0.5, func(c *Case) bool { return notRoCE(c) && broke(c) }, "InfiniBand is what fails: NICs that differ between hosts, or do not reach each other."},
	{"nccl_algo=", "ring-or-tree", 0.7, notWrong, "the algorithm that NCCL takes by itself is worse here."},
	{"nccl_proto=", "ring-or-tree", 0.55, notWrong, "the protocol that NCCL takes by itself is worse here."},
	{"nccl_proto=", "ll128-forced", 0.8, isWrong, "another protocol gives wrong values here."},
	{"nccl_topo_file", "vm-topology", 0.75, nil, "what NCCL finds by itself is not the machine's topology."},
	{"nccl_cross_nic", "fabric", 0.65, nil, "traffic between rails is what is slow or fails."},
	{"nccl_ib_adaptive_routing", "fabric", 0.75, nil, "static routes collide."},
	{"nccl_ib_qps_per_connection", "bond-one-port", 0.75, bonded, "one queue pair uses one port of the bond."},
	{"nccl_ib_qps_per_connection", "fabric", 0.65, unbonded, "one connection takes one path, and paths collide."},
	{"nccl_ib_timeout", "roce-loss", 0.6, roce, "packets are held up or lost for longer than the NIC waits."},
	{"nccl_ib_timeout", "bad-link", 0.6, notRoCE, "a link is away for longer than the NIC waits."},
	{"nccl_dmabuf_enable=0", "dmabuf", 0.75, nil, "registration by DMA-BUF is what fails."},
	{"nccl_ignore_cpu_affinity", "cpu-binding", 0.7, nil, "the cores that NCCL's threads were bound to are the wrong ones."},
	{"nccl_nsocks_perthread", "tcp-cpu-bound", 0.7, nil, "one socket does not fill the link."},
	{"nccl_socket_nthreads", "tcp-cpu-bound", 0.7, nil, "one thread does not fill the link."},
	{"nccl_pxn_disable=1", "ring-or-tree", 0.65, nil, "the way through another GPU's NIC (PXN) is what is slow or fails."},
	{"nccl_cumem", "cumem", 0.65, broke, "memory shared by CUDA's handles is what fails."},
	{"nccl_socket_family", "address-family", 0.8, nil, "the addresses that NCCL takes by itself are of a family that does not reach."},
	{"nccl_ib_merge_nics", "single-nic", 0.7, nil, "only one of several ports was in use."},
	{"nccl_mnnvl_enable=0", "imex", 0.75, nil, "NVLink between hosts is what fails."},
	{"nccl_hostid", "nodes-miscounted", 0.7, nil, "NCCL does not tell the hosts apart, or splits one."},
	{"nccl_ib_pci_relaxed_ordering", "numa", 0.5, nil, "ordered writes wait on this PCIe path."},
}
