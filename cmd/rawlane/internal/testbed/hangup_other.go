//go:build !unix

package testbed

import "os"

// waitHangup does not return: there is no such thing here.
func waitHangup(*os.File) { select {} }
