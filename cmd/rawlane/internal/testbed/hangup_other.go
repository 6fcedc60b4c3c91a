//go:build !unix

package testbed

import "os"

// isHungUp cannot tell here.
func isHungUp(*os.File) bool { return false }

// waitHangup does not return: there is no such thing here.
func waitHangup(*os.File) { select {} }
