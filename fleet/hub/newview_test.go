package hub

// NewView is a view of an empty stream.
func NewView() *View { return newView(nil, 0) }
