package cluster

// Linked reports whether GPUs of the node have links of their own: NVLink, xGMI
// and the like.
func (t *NodeType) Linked() bool {
	for i := range t.Links {
		switch t.Links[i].Kind {
		case NVLink, XGMI, Gaudi:
			return true
		}
	}
	return false
}
