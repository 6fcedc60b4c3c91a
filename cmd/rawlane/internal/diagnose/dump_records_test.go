package diagnose

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/decode"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/rawnet"
	"github.com/rawlane/rawlane/rpc"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/capture"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// conversation captures what two nodes say to each other over connections and calls, on the ports
// of rawnet and rpc, or on others. Node 0 asks, and its frames are captured.
func conversation(t *testing.T, file string, netCfg rawnet.Config, rpcCfg rpc.Config) {
	t.Helper()
	out, err := os.Create(file)
	must(t, err)
	recorder := capture.NewFile(out)
	synctest.Test(t, func(t *testing.T) {
		cfg := mcdtest.Config{Endpoint: mcd.Config{Spin: -1}}
		cfg.Wrap = func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
			if node != 0 {
				return l
			}
			recorded, err := recorder.Wrap(l)
			must(t, err)
			return recorded
		}
		eps := mcdtest.Open(t, 2, cfg)
		streams(t, eps, netCfg)
		calls(t, eps, rpcCfg)
	})
	must(t, recorder.Close())
	must(t, out.Close())
}

// streams has node 0 dial a service that echoes, and one that there is not; and send a packet.
func streams(t *testing.T, eps []*mcd.Endpoint, cfg rawnet.Config) {
	t.Helper()
	asker, err := rawnet.Open(eps[0], cfg)
	must(t, err)
	server, err := rawnet.Open(eps[1], cfg)
	must(t, err)
	listener, err := server.Listen("echo")
	must(t, err)
	served := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			served <- err
			return
		}
		_, err = io.Copy(conn, conn)
		_ = conn.Close()
		served <- err
	}()
	conn, err := asker.Dial("rawlane", "1:echo")
	must(t, err)
	_, err = conn.Write([]byte("hello"))
	must(t, err)
	_, err = io.ReadFull(conn, make([]byte, 5))
	must(t, err)
	must(t, conn.Close())
	must(t, <-served)
	if _, err := asker.Dial("rawlane", "1:nowhere"); err == nil {
		t.Error("nobody listens, and a Dial succeeds")
	}
	p, err := asker.ListenPacket("me")
	must(t, err)
	to, err := asker.Resolve("1:dns")
	must(t, err)
	_, err = p.WriteTo([]byte("where?"), to)
	must(t, err)
	must(t, asker.Close())
	must(t, server.Close())
}

// calls has node 0 call a service of node 1, one that there is not, and one that it gives up on.
func calls(t *testing.T, eps []*mcd.Endpoint, cfg rpc.Config) {
	t.Helper()
	asker, err := rpc.Open(eps[0], cfg)
	must(t, err)
	server, err := rpc.Open(eps[1], cfg)
	must(t, err)
	_, err = server.Serve("echo", rpc.ServerConfig{Handler: func(_ context.Context, _ mcd.NodeID, req, resp []byte) ([]byte, error) {
		return append(resp, req...), nil
	}})
	must(t, err)
	_, err = server.Serve("never", rpc.ServerConfig{Handler: func(ctx context.Context, _ mcd.NodeID, _, _ []byte) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	must(t, err)
	_, err = asker.Call(t.Context(), 1, "echo", []byte("hi"))
	must(t, err)
	if _, err := asker.Call(t.Context(), 1, "nothing", nil); err == nil {
		t.Error("nobody serves it, and a Call succeeds")
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if _, err := asker.Call(ctx, 1, "never", nil); err == nil {
		t.Error("a Call that was cancelled succeeds")
	}
	synctest.Wait()
	must(t, asker.Close())
	must(t, server.Close())
}

// wantRecords are what a conversation says, as dump shows it. Numbers of streams and calls are N.
var wantRecords = []string{
	`stream N, dialer: open "echo", accepts bytes before 262144`,
	`stream N, acceptor: accept, accepts bytes before 262144`,
	`stream N, dialer: data, 5 bytes "hello"`,
	`stream N, acceptor: data, 5 bytes "hello"`,
	`stream N, dialer: open "nowhere", accepts bytes before 262144`,
	`stream N, acceptor: refuse: nobody listens`,
	`packet from "me" to "dns", 6 bytes "where?"`,
	`call N: request "echo", 2 bytes "hi"`,
	`call N: response: done, 2 bytes "hi"`,
	`call N: request "nothing"`,
	`call N: response: nobody serves it`,
	`call N: request "never"`,
	`call N: cancellation`,
	`hello from`, `bye from`,
}

var numbers = regexp.MustCompile(`(stream|call) [0-9a-f]+`)

func dumpedRecords(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, status := command(t, append([]string{"dump"}, args...)...)
	if status != cli.ExitDone || errs != "" || strings.Contains(out, "malformed") || !strings.Contains(out, " 0 of them faulty") {
		t.Fatalf("status %d: %s%s", status, errs, out)
	}
	return numbers.ReplaceAllString(out, "$1 N")
}

// What connections, packets and calls say is shown in words, and in JSON as fields.
func TestDump_Records(t *testing.T) {
	file := filepath.Join(t.TempDir(), "talk.pcapng")
	conversation(t, file, rawnet.Config{}, rpc.Config{})
	out := dumpedRecords(t, file)
	for _, want := range wantRecords {
		if !strings.Contains(out, " | "+want) {
			t.Errorf("%s is not shown", want)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
	if out := dumpedRecords(t, file, "--payload", "0"); strings.Contains(out, `"hello"`) || !strings.Contains(out, `data, 5 bytes`) {
		t.Error("with --payload 0 data is shown, or its length is not")
	}
	var services []string
	out, _, _ = command(t, "dump", file, "--json")
	for line := range strings.Lines(out) {
		var r struct {
			Message struct {
				Records []struct{ Record, Service string }
			}
		}
		must(t, json.Unmarshal([]byte(line), &r))
		for _, rec := range r.Message.Records {
			if rec.Service != "" {
				services = append(services, rec.Record+" "+rec.Service)
			}
		}
	}
	if got, want := strings.Join(services, ", "), "open echo, open nowhere, request echo, request nothing, request never"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Ports that are not the default are named.
func TestDump_Ports(t *testing.T) {
	file := filepath.Join(t.TempDir(), "talk.pcapng")
	conversation(t, file, rawnet.Config{Port: 11, PacketPort: 12}, rpc.Config{Port: 13})
	if out := dumpedRecords(t, file); strings.Contains(out, "stream N") {
		t.Error("records are seen on a port that nobody has named")
	}
	for port := range uint8(3) {
		defer decode.RegisterPort(11+port, nil)
	}
	out := dumpedRecords(t, file, "--port", "rawnet=11,packets=12", "--port", "rpc=13", "--port", "memfifo=253")
	for _, want := range wantRecords {
		if !strings.Contains(out, " | "+want) {
			t.Errorf("%s is not shown", want)
		}
	}
	for _, wrong := range []string{"rpc", "rpc=", "rpc=256", "rpc=-1", "mcd=3", "=3", "barrier=256", "discovery=3"} {
		if _, errs, status := command(t, "dump", file, "--port="+wrong); status != cli.ExitMisused || !strings.Contains(errs, "--port "+wrong) {
			t.Errorf("--port %q: status %d, %s", wrong, status, errs)
		}
	}
}

// A capture of a benchmark of barriers shows what its nodes say to each other: at the start, and in
// barriers, whose last message is a multicast.
func TestDump_Barriers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "barriers.pcapng")
	if _, errs, status := command(t, "bench", "barrier", "--nodes", "3", "--algo", "tree:3", "--iters", "5", "--capture", file); status != cli.ExitDone {
		t.Fatal(errs)
	}
	out, _, _ := command(t, "dump", file)
	for _, want := range []string{
		`254 unicast .* \| barrier \d+ of group [0-9a-f]{16} epoch 1, generation 2: notify, label \d+\n`,
		`254 multicast .* \| barrier \d+ of group [0-9a-f]{16} epoch 1, generation 2: notify, label \d+\n`,
		`252 unicast .* \| exchange: (fetch|part) 1 of life [0-9a-f]{8} to [0-9a-f]{8},`,
		`252 broadcast .* \| exchange: done 1 of life [0-9a-f]{8} to 0{8}\n`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%s is not shown", want)
		}
	}
	if strings.Contains(out, "malformed") {
		t.Error("something is malformed")
	}
	if t.Failed() {
		t.Log(out[:min(len(out), 5000)])
	}
}
