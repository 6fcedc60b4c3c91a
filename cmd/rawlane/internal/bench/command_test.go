package bench

import (
	"os"
	"testing"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli/clitest"
	"github.com/rawlane/rawlane/internal/testbed"
)

func TestMain(m *testing.M) { os.Exit(testbed.Main(m)) }

// verbs are those that the tests here run.
var verbs = clitest.Verbs{NewCommand}

// command runs a verb in this process.
func command(t testing.TB, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	return verbs.Run(t, args...)
}
