package campaign_test

import (
	"fmt"
	"log"

	"busbar.dev/plan/campaign"
	"busbar.dev/unit"
)

// A job of 16,384 GPUs that fails as often as Llama 3's did, with checkpoints of half a minute.
func ExampleFailures_Goodput() {
	f := campaign.Failures{Between: campaign.MTBF().Value / 16384, Save: 30, Restart: 10 * unit.Minute}
	g, err := f.Goodput(0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("an interruption every %v: checkpoints every %v leave %.0f%% of the time\n", g.Between, g.Best, 100*g.Share)
	// Output: an interruption every 3.09 h: checkpoints every 13.3 min leave 88% of the time
}

// What a run of a hundred billion tokens takes and costs.
func ExampleRun_Lasting() {
	run := campaign.Run{Step: 10, Tokens: 4 << 20, GPUs: 512, Rent: 2.5}
	bill := run.Lasting(100e9)
	fmt.Printf("%v, EUR %.0f\n", bill.Time, bill.Rent)
	// Output: 2.76 days, EUR 84772
}
