package doctor

import "slices"

// Rules are all rules, area by area. Where one finding explains another, the root
// stands first.
func Rules() []Rule {
	return slices.Concat(fleetRules(), measuredRules(), launchRules(), crashRules(), processRules(), subnetRules(), interfaceRules(), networkRules(), rdmaRules(), pcieRules(), settingRules(), misspeltRules(), planRules(), speedRules(), programRules(), toldRules(), moreRules())
}

const (
	userGuide = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/"
	trouble   = userGuide + "troubleshooting.html"
	envGuide  = userGuide + "env.html"
)
