package query

import (
	"fmt"
	"strings"
)

// conclude finds the least that is enough and says it.
func (d *NeedDoc) conclude() {
	for i := len(d.Rates) - 1; i >= 0 && d.Rates[i].Enough; i-- {
		d.Slowest = d.Rates[i].Gbps
	}
	for i := len(d.NICs) - 1; i >= 0 && d.NICs[i].Enough; i-- {
		d.Fewest = d.NICs[i].NICs
	}
	d.Slower = d.slowerByChoice()
	d.Text = strings.Join([]string{d.costless(), d.verdict(), d.choice(), d.upgrade()}, "")
}

// socketSource says what is known of the rate of kernel sockets.
const socketSource = "What kernel sockets move through a port is fitted to one published cluster; " +
	"more sockets and threads, NCCL_SOCKET_NTHREADS=4 NCCL_NSOCKS_PERTHREAD=4, may move more and cost nothing, but are not priced: measure with them before buying."

// costless says what settings of the job would do, before anything is bought.
func (d *NeedDoc) costless() string {
	text := ""
	for _, f := range d.Free {
		text += fmt.Sprintf("%s costs nothing: %s instead of %s. ", f.Setting, f.Step.Short(), d.Now.Step.Short())
	}
	if d.Sockets != "" {
		text += d.Sockets + " "
	}
	return text
}

// verdict says which network is enough.
func (d *NeedDoc) verdict() string {
	nics := fmt.Sprintf("%d NICs", d.Now.NICs)
	if d.Now.NICs == 1 {
		nics = "one NIC"
	}
	with := ""
	for _, r := range d.Rates {
		if r.Gbps == d.Slowest && r.Over > d.Within {
			with = " with " + r.Setting
		}
	}
	switch {
	case d.Slowest == 0:
		text := fmt.Sprintf("No network of up to %g Gb/s per NIC is enough: with an infinitely fast one the step is still %.0f%% longer.", d.Rates[len(d.Rates)-1].Gbps, 100*d.Endless.BestOver)
		if d.Endless.Limit != "" {
			text += " Its limit is then: " + d.Endless.Limit + "."
		}
		return text
	case d.Now.Enough && d.Fewest > 0 && d.Fewest < d.Now.NICs:
		return fmt.Sprintf("Enough per node: %s of %g Gb/s%s, or %d of today's %d.", nics, d.Slowest, with, d.Fewest, d.Now.NICs)
	case d.Slowest == d.Now.Gbps:
		return fmt.Sprintf("Enough per node: today's %s of %g Gb/s%s; slower ones are not.", nics, d.Slowest, with)
	}
	return fmt.Sprintf("Enough per node: %s of %g Gb/s%s; today's have %g Gb/s.", nics, d.Slowest, with, d.Now.Gbps)
}

// choice says what NCCL_ALGO would do on the cluster as it is.
func (d *NeedDoc) choice() string {
	if d.Now.Setting == "" {
		return ""
	}
	return fmt.Sprintf(" Today's step would be %s with %s, which costs nothing, instead of %s.", d.Now.Best.Short(), d.Now.Setting, d.Now.Step.Short())
}

// upgrade says which layer to buy first.
func (d *NeedDoc) upgrade() string {
	if len(d.Upgrades) == 0 {
		return ""
	}
	switch u := d.Upgrades[0]; {
	case d.Now.Enough && u.Gain < max(d.Within, 0.005):
		return " No layer of the fabric is worth upgrading for this job."
	case u.Gain < 0.005:
		return " No one layer of the fabric twice as fast would help."
	default:
		return fmt.Sprintf(" Of the upgrades the first in the table helps most: %s instead of %s.", u.Best.Short(), d.Now.Best.Short())
	}
}

// slowerByChoice says where a faster network makes the step slower because NCCL then chooses otherwise.
func (d *NeedDoc) slowerByChoice() string {
	var list []string
	slight := false
	for _, rows := range [][]NeedRow{d.Rates, d.NICs} {
		for i := 1; i < len(rows); i++ {
			was, is := &rows[i-1], &rows[i]
			if float64(is.Step) <= float64(was.Step)*(1+leastChoice) {
				slight = slight || is.Step > was.Step && is.Step.Short() != was.Step.Short()
				continue
			}
			text := fmt.Sprintf("%s instead of %s makes the step slower, %s instead of %s: NCCL's own cost model then chooses another algorithm or other channels.", is.What, was.What, is.Step.Short(), was.Step.Short())
			if d.Sockets != "" {
				text = fmt.Sprintf("%s instead of %s lets NCCL choose worse, %s instead of %s, which is no fault of the NIC: NCCL counts on the port's rate, and here one set of sockets is taken to move no more.", is.What, was.What, is.Step.Short(), was.Step.Short())
			}
			if is.Setting != "" {
				text += fmt.Sprintf(" With %s it would be %s.", is.Setting, is.Best.Short())
			} else {
				text += " NCCL_ALGO does not avoid it."
			}
			list = append(list, text)
		}
	}
	if len(list) == 0 && slight {
		return "Where a faster network is slower by less than 1%, NCCL chooses other channels, and the difference is too small to tell."
	}
	return strings.Join(list, " ")
}
