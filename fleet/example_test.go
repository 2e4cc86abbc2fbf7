package fleet_test

import (
	"fmt"

	"busbar.dev/fleet"
)

// A message of another machine is decoded and checked in one step.
func ExampleDecode() {
	for _, text := range []string{
		`{"seq":7,"at":"2026-03-01T12:00:00Z","node":"gpu01","kind":"link","link":{"port":"mlx5_0/1","up":false,"state":"INIT"}}`,
		`{"seq":8,"at":"2026-03-01T12:00:01Z","node":"gpu01","kind":"order"}`,
	} {
		e, err := fleet.Decode[fleet.Event]([]byte(text))
		if err != nil {
			fmt.Println("refused:", err)
			continue
		}
		fmt.Println(e.Node, e.Kind, e.Link.Port, e.Link.Up, e.Link.State)
	}
	// Output:
	// gpu01 link mlx5_0/1 false INIT
	// refused: event of kind "order": the field of "order" must be set if and only if it is of that kind
}
