package manager

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/transport"
)

// certificate writes a certificate for 127.0.0.1, which is its own CA, and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, b []byte) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", secret)
}

// lockedBuffer is written by one goroutine and read by another.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// startManager runs the verb until the test ends, and returns the address that it listens on by
// TCP.
func startManager(t *testing.T, args ...string) (address string) {
	t.Helper()
	return startManagerLogging(t, new(lockedBuffer), args...)
}

// startManagerLogging is startManager with a log for the test.
func startManagerLogging(t *testing.T, log *lockedBuffer, args ...string) (address string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	status := make(chan int, 1)
	go func() {
		status <- cli.Execute(ctx, cli.NewRoot(verbs), append([]string{"manager"}, args...), strings.NewReader(""), log, log)
	}()
	t.Cleanup(func() {
		cancel()
		if s := <-status; s != cli.ExitDone {
			t.Errorf("the manager's status is %d, and it said %s", s, log.String())
		}
	})
	listening := regexp.MustCompile(`msg=listening network=tcp address=(\S+)`)
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if m := listening.FindStringSubmatch(log.String()); m != nil && strings.Contains(log.String(), "msg=ready") {
			return m[1]
		}
	}
	t.Fatalf("it does not listen: %s", log.String())
	return ""
}

// The verbs reach a manager by TLS with client certificates, and say what is wrong without.
func TestRouteVerbsByTLS(t *testing.T) {
	cert, key := certificate(t)
	otherCert, otherKey := certificate(t)
	plan := filepath.Join(t.TempDir(), "plan.yaml")
	text := "vids: [1, 2]\nnodes:\n  - {name: n0, mac: \"02:00:00:00:00:01\", vid: 2}\n  - {name: n1, mac: \"02:00:00:00:00:02\", vid: 1}\n"
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := startManager(t, "--mac", "02:00:00:00:00:01", "--socket=", "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--tls-ca", cert)
	good := []string{"--manager", addr, "--tls-cert", cert, "--tls-key", key, "--tls-ca", cert}
	verb := func(status int, want string, args ...string) {
		t.Helper()
		out, errs, got := command(t, append([]string{"route"}, args...)...)
		if got != status || !strings.Contains(out+errs, want) {
			t.Errorf("route %q: status %d, printed %s%s; want %d and %q", args, got, out, errs, status, want)
		}
	}
	verb(cli.ExitFailed, "no plan (give it one: rawlane route load)", append([]string{"dump"}, good...)...)
	verb(cli.ExitDone, "2 routes changed", append([]string{"load", plan, "--reason", "first"}, good...)...)
	verb(cli.ExitDone, "VID 2    PCP 0  plan", append([]string{"show"}, good...)...)
	verb(cli.ExitDone, `"02:00:00:00:00:02", vid: 1}`, append([]string{"dump"}, good...)...)
	verb(cli.ExitDone, "plan by operator: 2 routes: first", append([]string{"log"}, good...)...)
	verb(cli.ExitDone, "# Destination", append([]string{"counters"}, good...)...)
	verb(cli.ExitFailed, "one-sided change: the plan changes pairs", append([]string{"apply", plan1(t), "--managers"}, good[1:]...)...)
	verb(cli.ExitDone, "changed", append([]string{"apply", plan1(t), "--partial", "--managers"}, good[1:]...)...)
	verb(cli.ExitDone, "# plan ", append([]string{"apply", plan1(t), "--partial", "--managers"}, good[1:]...)...)
	verb(cli.ExitDone, "  n0    "+idOf(t, plan1(t))+"  ", append([]string{"status", "--managers"}, good[1:]...)...)
	verb(cli.ExitDone, `"plan_id":"`+idOf(t, plan1(t))+`"`, append([]string{"status", "--json", "--managers"}, good[1:]...)...)
	verb(cli.ExitDone, "plan "+idOf(t, plan1(t))+" since version", append([]string{"show"}, good...)...)
	verb(cli.ExitFailed, "one-sided", append([]string{"rollback", "--managers"}, good[1:]...)...)
	verb(cli.ExitFailed, "manager unreachable", "log", "--manager", addr, "--tls-cert", otherCert, "--tls-key", otherKey, "--tls-ca", cert)
	verb(cli.ExitFailed, "manager unreachable", "log", "--manager", addr, "--tls-cert", cert, "--tls-key", key, "--tls-ca", otherCert)
	verb(cli.ExitFailed, "this address takes TLS alone (want a certificate, its key and the CA: --tls-cert, --tls-key and --tls-ca)", "log", "--manager", addr)
	verb(cli.ExitFailed, "no certificate in it (want PEM)", "log", "--manager", addr, "--tls-cert", cert, "--tls-key", key, "--tls-ca", plan)
	verb(cli.ExitMisused, "TLS wants all of --tls-cert, --tls-key and --tls-ca", "log", "--manager", addr, "--tls-cert", cert)

	plain := startManager(t, "--mac", "02:00:00:00:00:01", "--socket=", "--listen", "127.0.0.1:0")
	verb(cli.ExitFailed, "it does not speak TLS (leave --tls-cert, --tls-key and --tls-ca out)", "log", "--manager", plain, "--tls-cert", cert, "--tls-key", key, "--tls-ca", cert)

	_, errs, status := command(t, "manager", "--mac", "02:00:00:00:00:01", "--socket=", "--listen", "0.0.0.0:0")
	if status != cli.ExitFailed || !strings.Contains(errs, "not a loopback address, and no TLS: anybody could change the routes") {
		t.Errorf("without TLS: status %d, %s", status, errs)
	}
}

// At SIGHUP a manager uses the certificates that are in its files by then; if they cannot be read
// it goes on with the old ones.
func TestCertificatesAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		signals := make(chan os.Signal, 1)
		var log strings.Builder
		var outcome error
		read := 0
		ended := make(chan struct{})
		go func() {
			reloadOn(ctx, signals, func() error { read++; return outcome }, slog.New(slog.NewTextHandler(&log, nil)))
			close(ended)
		}()
		signals <- syscall.SIGHUP
		synctest.Wait()
		outcome = errors.New("no such file")
		signals <- syscall.SIGHUP
		synctest.Wait()
		cancel()
		<-ended
		if read != 2 || !strings.Contains(log.String(), "level=INFO") || !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "no such file") {
			t.Errorf("read %d times: %s", read, log.String())
		}
	})
}

// Without certificates a SIGHUP reads nothing, and the log does not say otherwise.
func TestHangupWithoutCertificates(t *testing.T) {
	_, reload, err := new(cli.TLSFiles).Reloading()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		signals := make(chan os.Signal, 1)
		var log strings.Builder
		ended := make(chan struct{})
		go func() {
			reloadOn(ctx, signals, reload, slog.New(slog.NewTextHandler(&log, nil)))
			close(ended)
		}()
		signals <- syscall.SIGHUP
		synctest.Wait()
		cancel()
		<-ended
		if !strings.Contains(log.String(), "nothing to read again") || strings.Contains(log.String(), "were read") {
			t.Errorf("%s", log.String())
		}
	})
}

func TestCertificateFilesThatChange(t *testing.T) {
	cert, key := certificate(t)
	var files cli.TLSFiles
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	files.Register(flags, "")
	if err := flags.Parse([]string{"--tls-cert", cert, "--tls-key", key, "--tls-ca", cert}); err != nil {
		t.Fatal(err)
	}
	config, reload, err := files.Reloading()
	if err != nil {
		t.Fatal(err)
	}
	serial := func() string {
		t.Helper()
		c, err := config.GetConfigForClient(nil)
		if err != nil || c.ClientAuth != tls.RequireAndVerifyClientCert || c.ClientCAs == nil {
			t.Fatalf("%+v, %v", c, err)
		}
		return string(c.Certificates[0].Certificate[0])
	}
	first := serial()
	if err := os.WriteFile(key, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := reload(); err == nil || serial() != first {
		t.Errorf("an empty key: %v", err)
	}
	otherCert, otherKey := certificate(t)
	for from, to := range map[string]string{otherCert: cert, otherKey: key} {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := reload(); err != nil || serial() == first {
		t.Errorf("another certificate: %v", err)
	}
}

// A scraper reads metrics without a certificate.
func TestReadOnlyListener(t *testing.T) {
	var log lockedBuffer
	addr := startManagerLogging(t, &log, "--mac", "02:00:00:00:00:01", "--socket=", "--listen", "127.0.0.1:0", "--listen-read-only", "127.0.0.1:0")
	m := regexp.MustCompile(`msg="listening, read-only" network=tcp address=(\S+)`).FindStringSubmatch(log.String())
	if m == nil || m[1] == addr {
		t.Fatalf("%s", log.String())
	}
	w, err := http.Get("http://" + m[1] + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if w.StatusCode != http.StatusOK {
		t.Errorf("%d", w.StatusCode)
	}
	for _, want := range []string{"every user of this machine can change the routes by this address", "without --state nothing outlives this manager"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("it does not say %q: %s", want, log.String())
		}
	}
}

// A manager that cannot listen leaves no state, which would count in place of the next --plan.
func TestManagerThatCannotListen(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	_, errs, status := command(t, "manager", "--mac", "02:00:00:00:00:01", "--socket", filepath.Join(dir, "socket"),
		"--listen-read-only", l.Addr().String(), "--state", filepath.Join(dir, "state"))
	if status != cli.ExitFailed || !strings.Contains(errs, "another process listens there") {
		t.Errorf("status %d: %s", status, errs)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// A second manager of one address says so.
func TestASecondManagerOfAnAddress(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it is known on Linux alone")
	}
	mac := transport.MAC{2, 0, 0, 9, 9, byte(os.Getpid())}
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	first := claim(mac, logger)
	if log.Len() > 0 {
		t.Errorf("the first: %s", log.String())
	}
	claim(mac, logger)()
	if !strings.Contains(log.String(), "another manager of this address runs here") {
		t.Errorf("the second: %q", log.String())
	}
	first()
	log.Reset()
	claim(mac, logger)()
	if log.Len() > 0 {
		t.Errorf("when the first has ended: %s", log.String())
	}
}

// An interface that there is not is answered with those that there are.
func TestInterfacesAreNamed(t *testing.T) {
	_, errs, status := command(t, "manager", "--interface", "eth99", "--socket=", "--listen", "127.0.0.1:0")
	if status != cli.ExitFailed || !strings.Contains(errs, "interface eth99: no such interface (there are: ") || !strings.Contains(errs, "lo") {
		t.Errorf("status %d, %s", status, errs)
	}
}

// One that has no Ethernet address is said to be none.
func TestInterfaceWithoutAnAddress(t *testing.T) {
	_, errs, status := command(t, "manager", "--interface", "lo", "--socket=", "--listen", "127.0.0.1:0")
	if status != cli.ExitFailed || !strings.Contains(errs, `interface lo: not an Ethernet interface (its address is "")`) {
		t.Errorf("status %d, %s", status, errs)
	}
}

// idOf is what "route check" says of a file.
func idOf(t *testing.T, file string) string {
	t.Helper()
	out, errs, status := command(t, "route", "check", file)
	_, id, ok := strings.Cut(strings.TrimSpace(out), "; id ")
	if status != cli.ExitDone || !ok {
		t.Fatalf("route check: status %d, printed %s%s", status, out, errs)
	}
	return id
}

// Operators see before a change what it does, and after it what all nodes say.
func TestRouteVerbsAskAllNodes(t *testing.T) {
	dir := t.TempDir()
	old, next := plan1(t), filepath.Join(dir, "next.yaml")
	text := "vids: [1, 2]\nnodes:\n  - {name: n0, mac: \"02:00:00:00:00:01\", vid: 2}\n  - {name: n1, mac: \"02:00:00:00:00:02\", vid: 1}\n"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	n0 := startManager(t, "--mac", "02:00:00:00:00:01", "--socket=", "--listen", "127.0.0.1:0", "--plan", old)
	n1 := startManager(t, "--mac", "02:00:00:00:00:02", "--socket=", "--listen", "127.0.0.1:0", "--plan", old)
	both := "--managers=" + n0 + "," + n1
	dead := "127.0.0.1:1"
	expect := func(status int, wants []string, args ...string) {
		t.Helper()
		out, errs, got := command(t, append([]string{"route"}, args...)...)
		for _, want := range wants {
			if got != status || !strings.Contains(out+errs, want) {
				t.Errorf("route %q: status %d, printed %s%s; want %d and %q", args, got, out, errs, status, want)
			}
		}
	}
	expect(cli.ExitDone, []string{"# dry run: nothing has changed", "unchanged        1  -\n", "1 pair would change"}, "apply", next, "--dry-run", both)
	expect(cli.ExitDone, []string{`"dry_run":true`, `"state":"unchanged"`, `"routes":1`, `"pairs":1`}, "apply", next, "--dry-run", "--json", both)
	expect(cli.ExitDone, []string{idOf(t, old), "unwatched"}, "status", both)
	expect(cli.ExitDone, []string{"default of 0: 1 -> 2", "pair 0-1: 1 -> 2"}, "diff", next, "--manager", n0)
	expect(cli.ExitDone, []string{"no difference"}, "diff", old, "--manager", n0)
	expect(cli.ExitDone, []string{"1 pair changed"}, "apply", next, "--reason", "better", both)
	expect(cli.ExitDone, []string{"# manager " + n0, "# manager " + n1, ": better (127.0.0.1:"}, "log", both)
	expect(cli.ExitDone, []string{"# manager " + n0, "# manager " + n1}, "counters", both)
	expect(cli.ExitDone, []string{"# manager " + n0, "# manager " + n1, "plan " + idOf(t, next)}, "show", both)
	expect(cli.ExitFailed, []string{"# manager " + n0, "manager 127.0.0.1:1: manager unreachable"}, "log", "--managers="+dead+","+n0)
	expect(cli.ExitMisused, []string{"want one of the two"}, "log", "--manager", n0, both)
	expect(cli.ExitFailed, []string{"nothing has changed; while nodes are down, leave their managers out and give --partial"}, "apply", old, both+","+dead)
	expect(cli.ExitFailed, []string{"one-sided change", "--partial"}, "rollback", "--managers", n0)
	expect(cli.ExitDone, []string{"# dry run: nothing has changed"}, "rollback", "--partial", "--dry-run", "--managers", n0)
	expect(cli.ExitDone, []string{idOf(t, old)}, "rollback", "--partial", "--managers", n0)
	expect(cli.ExitMisused, []string{"--watch -1s: want how long to wait"}, "status", "--watch=-1s", both)
}

// Nodes with different plans are named by whatever asks several managers, which then fails, and
// "route apply" mends it.
func TestRouteVerbsNameNodesThatDisagree(t *testing.T) {
	dir := t.TempDir()
	old, next := plan1(t), filepath.Join(dir, "next.yaml")
	text := "vids: [1, 2]\nnodes:\n  - {name: n0, mac: \"02:00:00:00:00:01\", vid: 2}\n  - {name: n1, mac: \"02:00:00:00:00:02\", vid: 1}\n"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	n0 := startManager(t, "--mac", "02:00:00:00:00:01", "--socket=", "--listen", "127.0.0.1:0", "--plan", old)
	n1 := startManager(t, "--mac", "02:00:00:00:00:02", "--socket=", "--listen", "127.0.0.1:0", "--plan", next)
	named := "managers have different plans: plan " + idOf(t, old) + ": n0 at " + n0 + "; plan " + idOf(t, next) + ": n1 at " + n1 + " (give all of them one: rawlane route apply)"
	both := "--managers=" + n0 + "," + n1
	expect := func(status int, want string, args ...string) {
		t.Helper()
		out, errs, got := command(t, append([]string{"route"}, args...)...)
		if got != status || !strings.Contains(out+errs, want) {
			t.Errorf("route %q: status %d, printed %s%s; want %d and %q", args, got, out, errs, status, want)
		}
	}
	expect(cli.ExitFailed, named, "status", both)
	expect(cli.ExitFailed, named, "status", "--json", both)
	expect(cli.ExitFailed, named, "control", "--topology", "vbft:2x2x1", both)
	expect(cli.ExitDone, "before, they had different plans: "+idOf(t, old)+": n0\n", "apply", next, both)
	expect(cli.ExitDone, idOf(t, next), "status", both)
}

// plan1 is another plan of the same nodes.
func plan1(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plan.yaml")
	text := "vids: [1, 2]\nnodes:\n  - {name: n0, mac: \"02:00:00:00:00:01\", vid: 1}\n  - {name: n1, mac: \"02:00:00:00:00:02\", vid: 1}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Who asks for nothing else has a manager on the Unix socket alone, which is for one group, and
// whose kernel tells who asks. Loopback TCP, open to all users of the machine, is asked for.
func TestDefaultListensOnTheSocketAlone(t *testing.T) {
	for name, want := range map[string]string{"socket": "/run/rawlane/manager.sock", "listen": "", "listen-read-only": ""} {
		if got := NewCommand().Flags().Lookup(name).DefValue; got != want {
			t.Errorf("--%s is %q, want %q", name, got, want)
		}
	}
}

// A manager with a state starts whatever has become of --plan: it says once what is wrong with it,
// and does not read a long one. Without a state a plan that cannot be read is an error.
func TestStateCountsWhateverBecameOfThePlan(t *testing.T) {
	plan, state := plan1(t), filepath.Join(t.TempDir(), "state")
	flags := []string{"--mac", "02:00:00:00:00:01", "--socket=", "--listen", "127.0.0.1:0", "--plan", plan, "--state", state}
	good, err := os.ReadFile(plan)
	if err != nil {
		t.Fatal(err)
	}
	const warning = "the plan given cannot be read; the state file has one, and counts"
	t.Run("first start", func(t *testing.T) { startManager(t, flags...) })
	for name, c := range map[string]struct {
		content string // empty: the file is gone
		warns   string
	}{
		"as before":         {string(good), ""},
		"gone":              {"", "no such file"},
		"a typing error":    {"vids: [1, 2\n", "--plan: "},
		"another":           {strings.ReplaceAll(string(good), "vid: 1", "vid: 2"), "has another plan than the one given"},
		"long, and no plan": {strings.Repeat("vids: [\n", maxCompared/8+1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(plan)
			if c.content != "" {
				if err := os.WriteFile(plan, []byte(c.content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var log lockedBuffer
			startManagerLogging(t, &log, flags...)
			said := log.String()
			if c.warns == "" && (strings.Contains(said, warning) || strings.Contains(said, "another plan")) || !strings.Contains(said, c.warns) {
				t.Errorf("it says %s; want %q", said, c.warns)
			}
			if strings.Count(said, warning) > 1 || !strings.Contains(said, "plan=true") {
				t.Errorf("it says %s", said)
			}
		})
	}
	_ = os.Remove(state)
	_ = os.Remove(plan)
	if _, errs, status := command(t, append([]string{"manager"}, flags...)...); status != cli.ExitFailed || !strings.Contains(errs, "--plan: plan "+plan) {
		t.Errorf("without a state: status %d, %s", status, errs)
	}
}
