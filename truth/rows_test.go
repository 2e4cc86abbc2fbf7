package truth

import (
	"fmt"
	"os"
	"regexp"
	"testing"
)

func TestRows(t *testing.T) {
	re := regexp.MustCompile(os.Getenv("ROWS"))
	if os.Getenv("ROWS") == "" {
		t.Skip()
	}
	for _, c := range load(t) {
		if !re.MatchString(c.ID) {
			continue
		}
		fmt.Println("##", c.ID)
		for i, p := range c.Points {
			run, _ := c.Predictor.Price(p.Op, c.Settings[i])
			fmt.Printf("%12d meas %10.1f pred %10.1f ratio %.2f %s/%s/%d launch %.1f lat %.1f sync %.1f mov %.1f %s\n", p.Op.Bytes, float64(p.Time)/1e6, float64(run.Time)/1e6, float64(run.Time)/float64(p.Time), c.Settings[i].Algo, c.Settings[i].Proto, c.Settings[i].Channels, float64(run.Parts.Launch)/1e6, float64(run.Parts.Latency)/1e6, float64(run.Parts.Sync)/1e6, float64(run.Parts.Moving)/1e6, run.Limit.Text)
		}
	}
}
