package clusterfile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/lazyre"
	"busbar.dev/unit"
)

// nodeType makes a node type from whichever of the three forms is used.
func (f *typeForm) nodeType(name string) (*cluster.NodeType, error) {
	short := f.GPUs != "" || f.NICs != "" || f.NVLink != "" || f.Sockets != 0 || f.GPUsPerSwitch != 0
	switch {
	case len(f.Devices) > 0 && short:
		return nil, errors.New("both devices and a short description (gpus, nics, …); give one")
	case len(f.Devices) > 0:
		d := cluster.TypeDoc{
			Name: name, Preset: f.Preset, Trays: f.Trays, Tree: f.Tree, Devices: f.Devices, Links: f.Links, Pairs: f.Pairs,
		}
		return d.NodeType()
	case f.Preset != "" && short:
		return nil, errors.New("both preset and a short description; give one (busbar map PRESET -o yaml prints a preset " +
			"in full, to edit)")
	case f.Preset != "":
		t, err := hardware.Node(f.Preset)
		if err != nil {
			return nil, err
		}
		t.Name = name
		return t, nil
	case !short:
		return nil, errors.New("expected preset, gpus, nics or devices")
	}
	return f.build(name)
}

// number is "8 x H100", "8x H100", "8 × H100", "8 H100" or "8H100"'s first part.
var number = lazyre.New(`^\s*([+-]?\d+)\s*(?:[x×*]\s*|\s+)(\S.*)$`)

// backwards is "H100 x 8", which people write too.
var backwards = lazyre.New(`^(.*\S)\s*[x×*]\s*(\d+)\s*$`)

// counted reads "8 x H100", "8 H100" or "H100" (one).
func counted(s string) (int, string, error) {
	if m := number.FindStringSubmatch(s); m != nil {
		n, err := strconv.Atoi(m[1])
		if err != nil || n < 1 || n > 1024 {
			return 0, "", fmt.Errorf("%q: expected 1 to 1024 of them", s)
		}
		return n, strings.TrimSpace(m[2]), nil
	}
	if m := backwards.FindStringSubmatch(s); m != nil {
		return 0, "", fmt.Errorf("%q: the count comes first: %s x %s", s, m[2], m[1])
	}
	if strings.TrimSpace(s) == "" {
		return 0, "", errors.New("empty; expected e.g. 8 x H100")
	}
	return 1, strings.TrimSpace(s), nil
}

// build makes a node type from the short form. GPUs and NICs are spread evenly over the sockets, of one NUMA domain
// each.
func (f *typeForm) build(name string) (*cluster.NodeType, error) {
	spec := hardware.Spec{MTU: max(f.MTU, 0), Source: format}
	var gpu hardware.GPUModel
	if f.GPUs != "" {
		n, model, err := counted(f.GPUs)
		if err != nil {
			return nil, fmt.Errorf("gpus: %w", err)
		}
		// A name with a memory size that the model does not have is another card, or a slip.
		var ok bool
		gpu, ok = hardware.GPUByName(model)
		if m := memory.FindStringSubmatch(model); !ok || m != nil &&
			!strings.Contains(strings.ToLower(gpu.Title+" "+gpu.Name+" "+strings.Join(gpu.Names, " ")), m[1]) {
			return nil, fmt.Errorf("gpus: no GPU %q in the catalogue; `busbar list hardware gpu` lists them", model)
		}
		spec.Count, spec.GPU = n, gpu.Name
	}
	if err := f.parseNICs(&spec); err != nil {
		return nil, fmt.Errorf("nics: %w", err)
	}
	sockets := cmp.Or(f.Sockets, 2)
	if sockets < 1 || sockets > 16 {
		return nil, fmt.Errorf("sockets: %d; expected 1 to 16", sockets)
	}
	for i := 0; f.CoresPer > 0 && i < sockets; i++ {
		spec.CPULists = append(spec.CPULists, fmt.Sprintf("%d-%d", i*f.CoresPer, (i+1)*f.CoresPer-1))
	}
	var err error
	if spec.Join, err = f.joined(gpu, spec.Count); err != nil {
		return nil, fmt.Errorf("nvlink: %w", err)
	}
	spec.Tree = fmt.Sprintf("%d*socket smp", sockets) + f.devices(&spec, sockets)
	t, err := spec.Node(name)
	if err != nil {
		return nil, err
	}
	return t, t.Check()
}

// memory is the size in a GPU's name: 80 of A100-SXM4-80GB.
var memory = lazyre.New(`(?i)(\d+) ?GB\b`)

// maxPort is faster than any port sold: beyond it somebody wrote bytes for bits.
const maxPort = 1600 * unit.Gbps

// netKinds are the families a file may name, each with the names people use for it.
const netKinds = "infiniband ib|roce|ethernet eth|efa|slingshot|omnipath opa|gpudirect-tcpx tcpx|gpudirect-tcpxo " +
	"tcpxo|nvlink"

func netKind(s string) (cluster.NetKind, error) {
	for family := range strings.SplitSeq(netKinds, "|") {
		if names := strings.Fields(family); slices.Contains(names, strings.ToLower(strings.TrimSpace(s))) {
			return cluster.NetKind(names[0]), nil
		}
	}
	return "", fmt.Errorf("%q is no network; one of infiniband, roce, ethernet, efa, slingshot, omnipath, "+
		"gpudirect-tcpx, nvlink", s)
}

// parseNICs reads "8 x 400Gb/s infiniband", "2 x 200 Gb/s" or "1 x HDR".
func (f *typeForm) parseNICs(spec *hardware.Spec) error {
	if f.NICs == "" {
		return nil
	}
	n, rest, err := counted(f.NICs)
	if err != nil {
		return err
	}
	words := strings.Fields(rest)
	speed, kind := words[0], words[1:]
	if len(kind) > 0 && strings.Trim(speed, "0123456789.") == "" {
		speed, kind = speed+kind[0], kind[1:] // 200 Gb/s, as we print it
	}
	p, err := hardware.ParsePortSpeed(speed)
	if err != nil {
		return err
	}
	if p.Rate > maxPort {
		return fmt.Errorf("%s is %s, more than any port; Gb/s (bits) meant?", speed, p.Rate.Bits())
	}
	if len(kind) > 0 {
		if p.Kind, err = netKind(strings.Join(kind, " ")); err != nil {
			return err
		}
	}
	spec.NICs, spec.Port, spec.Kind = n, p.Rate, p.Kind
	return nil
}

// devices are the GPUs and NICs in the words of hardware.Spec. With at least as many
// NICs as GPUs each GPU has its NICs on its own PCIe switch, else NICs hang on root
// complexes of their own unless gpus_per_switch groups them.
func (f *typeForm) devices(s *hardware.Spec, sockets int) string {
	group, switches := f.GPUsPerSwitch, 0
	if group == 0 && s.Count > 0 && s.NICs >= s.Count {
		group = 1
	}
	if group > 0 {
		switches = (s.Count + group - 1) / group
	}
	var b strings.Builder
	for i := range switches {
		fmt.Fprintf(&b, " numa%d(root(switch))", i*sockets/switches)
	}
	for i := range s.Count {
		if group > 0 {
			fmt.Fprintf(&b, " switch%d(gpu)", i/group)
		} else {
			fmt.Fprintf(&b, " numa%d(root(gpu))", i*sockets/s.Count)
		}
	}
	for i := range s.NICs {
		if switches > 0 {
			fmt.Fprintf(&b, " switch%d(nic)", i*switches/s.NICs)
		} else {
			fmt.Fprintf(&b, " numa%d(root(nic))", i*sockets/s.NICs)
		}
	}
	return b.String()
}

// joined is how the GPUs are joined, in the words of hardware.Spec. Where the file does not say it is as boards with
// these GPUs join them: modules sit on boards with NVLink, cards have it only with a bridge.
func (f *typeForm) joined(gpu hardware.GPUModel, n int) (string, error) {
	each := gpu.Links / max(n-1, 1)
	if f.NVLink != "" && f.NVLink != "none" && gpu.Links == 0 {
		return "", fmt.Errorf("%s has none", gpu.Name)
	}
	switch {
	case f.NVLink == "none", f.NVLink == "" && (n < 2 || !gpu.Module()):
		return "none", nil
	case f.NVLink == "switch", f.NVLink == "" && gpu.LinkKind == cluster.NVLink && gpu.Links >= 12 && n > 4:
		return "nvswitch", nil
	case f.NVLink == "mesh" && (n < 2 || each < 1):
		return "", fmt.Errorf("mesh: %s has %d links, too few for %d GPUs; use switch, pairs or none", gpu.Name, gpu.Links, n)
	case f.NVLink == "mesh", f.NVLink == "" && each >= 1:
		return "mesh", nil
	case f.NVLink == "pairs", f.NVLink == "":
		return "bridge 2", nil
	}
	return "", fmt.Errorf("%q; one of switch, mesh, pairs, none", f.NVLink)
}
