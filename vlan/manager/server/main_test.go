package server_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// testsAtOnce is the number of parallel tests that run at one time, unless -parallel is given: most of
// their time is waiting, for leases and for managers that do not answer.
const testsAtOnce = "8"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", testsAtOnce); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
