package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// A command line that cannot be carried out ends with 2, one clear line and the usage; nothing is
// printed as a result.
func TestMisuse(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "no verb given"},
		{"help nonsense", `unknown verb "nonsense"`},
		{"help bench latncy", `unknown verb "latncy"; did you mean latency?`},
		{"benhc", `unknown verb "benhc"; did you mean bench?`},
		{"benhc latency --iters 5", `unknown verb "benhc"; did you mean bench?`},
		{"route shwo --manager unix:/x", `unknown verb "shwo"; did you mean show?`},
		{"route --manager unix:/x", "unknown flag: --manager (which verb? Flags of a verb go behind it)"},
		{"route --nope", "unknown flag: --nope"},
		{"bench latncy", `unknown verb "latncy"; did you mean latency?`},
		{"bench latency --nods 3", "unknown flag: --nods; did you mean --node or --nodes?"},
		{"-1", "unknown flag: -1 (an argument that begins with - goes behind --)"},
		{"nonsense", `unknown verb "nonsense"`},
		{"demo --nope", "unknown flag: --nope"},
		{"demo extra", `unexpected argument "extra"`},
		{"demo --interface a,b,c", "--interface a,b,c: names 3 (want 4, one for each node)"},
		{"demo --link fabric --interface a,b,c,d", "--interface: is for --link packet, ring, udp or xdp"},
		{"testbed list --name x", "--name: all beds are listed (leave it out)"},
		{"demo --link foo", `--link "foo": want one of fabric, packet, ring, shm, udp, xdp`},
		{"node --node 0 --listen 127.0.0.1", "--listen 127.0.0.1: where are the others? Give --seeds, or a --hostfile of addresses"},
		{"node --node 0 --listen 127.0.0.1:99999 --seeds 127.0.0.2", `--listen "127.0.0.1:99999": port 99999: want 65535 at most`},
		{"node --node 0 --listen [::1 --seeds ::2", `--listen "[::1": not an address (want an IP address or host name`},
		{"node --node 0 --listen 127.0.0.300 --seeds 127.0.0.2", `--listen "127.0.0.300": 127.0.0.300 is no IP address`},
		{"node --node 0 --seeds foo:bar", `--seeds: seed "foo:bar": port "bar" is neither a number nor the name of one`},
		{"node --node 0 --seeds 10.0.0.1,10.0.0.300", `--seeds: seed "10.0.0.300": 10.0.0.300 is no IP address`},
		{"node --node 0 --seeds 10.0.0.1:0", `--seeds: seed "10.0.0.1:0": nobody listens on port 0`},
		{"node --node 0 --seeds foo:65536", "port 65536: want 65535 at most"},
		{"node --node 0 --link ring --seeds 127.0.0.1", "--listen and --seeds are of --link udp, and not of ring"},
		{"node --node 0 --listen 127.0.0.1 --seeds 127.0.0.2 --interface lo", "--listen and --interface: want one of the two"},
		{"bench barrier --nics 2 --node 0 --seeds 127.0.0.1", "--nics 2: --listen and --seeds are for one"},
		{"run --segment a/b true", `--segment "a/b": not a name for a segment (want up to 32 letters`},
		{"bench latency --link shm --segment a/b", `--segment "a/b": not a name for a segment`},
		{"run --link fabric true", `--link "fabric": want one of packet, ring, shm, udp, xdp`},
		{"completion", "which shell? (bash, fish, powershell or zsh)"},
		{"completion csh", `unknown verb "csh"`},
		{"completion bash zsh", `unexpected argument "zsh"`},
		{"bench", "which benchmark? (latency, bandwidth, rate, logp, barrier, put, get, fifo, amo, conn, rpc, http, grpc, netrpc, mpi, idle or jitter)"},
		{"bench grpc --nodes 3", "--nodes 3: want 2, a client and a server"},
		{"bench http --size 2M", "--size 2097152: want at most 1048576"},
		{"proxy --to 1:x --node 0", "want --tcp, where programs connect, or --service"},
		{"proxy --tcp :1 --service x --to 1:x --node 0", "one of the two"},
		{"proxy --tcp :1 --node 0", "--to: where do connections go?"},
		{"proxy --tcp :1 --to x --node 0", `--to "x": want NODE:SERVICE`},
		{"proxy --tcp :1 --to 7:x --node 0", `--to "7:x": there are 2 nodes (give more --nodes)`},
		{"proxy --tcp 6379 --to 1:x --node 0", `--tcp "6379": want HOST:PORT`},
		{"proxy --tcp :65536 --to 1:x --node 0", "with a port of 0 to 65535"},
		{"proxy --tcp :1 --to web:x --node 0", `--to "web:x": want NODE:SERVICE, with the node's number`},
		{"proxy --tcp :1 --to 70000:x --node 0", "with the node's number"},
		{"proxy --tcp :1 --to 1: --node 0", `--to "1:": want NODE:SERVICE`},
		{"proxy --tcp :1 --to [1]:x --node 0", `--to "[1]:x": want NODE:SERVICE, with the node's number`},
		{"proxy --tcp :1 --node 0 --to 1:" + strings.Repeat("x", 300), "--to: a service of 300 bytes (want 1 to 255)"},
		{"proxy --service a:b --to :6379 --node 0", `--service "a:b": want a name of 1 to 255 bytes, without a colon`},
		{"proxy --service x --to web: --node 0", `--to "web:": want NODE:SERVICE, or HOST:PORT`},
		{"proxy --service x --to web:0 --node 0", `--to "web:0": want HOST:PORT, with a port of 1 to 65535`},
		{"proxy --service x --to web:65536 --node 0", "with a port of 1 to 65535"},
		{"proxy --service x --to web:nothing --node 0", "or the name of one"},
		{"proxy --tcp :1 --to 1:x", "which node is this? Give --node"},
		{"bench latency --link rign", `--link "rign": want one of fabric, packet, ring, shm, udp, xdp; did you mean ring?`},
		{"bench latency --link xdp --xdp-mode natve", `--xdp-mode "natve": want one of auto, zero-copy, native, generic; did you mean native?`},
		{"bench latency --link ring --xdp-mode native", "--xdp-mode: is for --link xdp"},
		{"bench latency --checksum hedaer", `--checksum: checksum "hedaer": want auto, payload, header`},
		{"bench latency --nodes 1", "--nodes 1: want 2 to 250"},
		{"bench latency --iters 0", "--iters 0: want 1 to"},
		{"bench latency --iters x", `--iters "x": want a whole number`},
		{"bench latency --iters 99999999999999999999", `--iters "99999999999999999999": want one that is not so large`},
		{"bench latency --iters", "--iters: a value is missing (want a whole number)"},
		{"bench latency --checksum", "--checksum: a value is missing (want COVERAGE)"},
		{"doctor --path", "--path: a value is missing (want ADDRESS[:PORT])"},
		{"doctor --path 127.0.0.1:99999", `--path "127.0.0.1:99999": want ADDRESS[:PORT]`},
		{"doctor --path 127.0.0.1,node3:0", `--path "node3:0": want ADDRESS[:PORT]`},
		{"doctor --path node3:", `--path "node3:": want ADDRESS[:PORT]`},
		{"doctor --path :27401", "with a port of 1 to 65535 or the name of one"},
		{"doctor --path [node3", `--path "[node3": want ADDRESS[:PORT]`},
		{"doctor --path=", "--path: empty (want a value, or leave the flag out)"},
		{"doctor --path ,", `--path "": want ADDRESS[:PORT]`},
		{"demo --interface=", "--interface: empty"},
		{"dump x --port=", "--port: empty"},
		{"bench latency --cluster -1", `--cluster "-1": want a whole number, 0 or more`},
		{"bench latency --size 1:x", `"x" is not a number of bytes`},
		{"bench latency --size 9:3", `"9:3": want FIRST:LAST`},
		{"bench latency --size 0:8", `"0:8": want FIRST:LAST`},
		{"bench latency --spin -1us", "--spin -1µs: want 0 to 1m0s"},
		{"bench latency --json --csv", "--json and --csv: want one of the two"},
		{"bench jitter --seconds 0", "--seconds 0: want 1 to 3600"},
		{"bench jitter --least 1ns", "--least 1ns: want 500ns to 1s"},
		{"bench jitter --cores 1,x", `--cores: "x": want 0 to 1023`},
		{"bench jitter --json --csv", "--json and --csv: want one of the two"},
		{"bench barrier --work 5", `--work "5": want a time with its unit, such as 500ms, 2s or 1m`},
		{"bench barrier --algo concurent", "did you mean concurrent?"},
		{"bench put --loss much", `--loss "much": want a number`},
		{"bench put --bytes 1T", `"1T" is not a number of bytes (want for example 1400, 64k or 1M)`},
		{"bench latency --size 4,x", `"x" is not a number of bytes`},
		{"bench latency --size -1", `"-1" is not a number of bytes`},
		{"bench latency --vid 4095", "--vid 4095: want 0 (priority only) to 4094"},
		{"bench latency --vid -1", "--vid -1: want 0 (priority only) to 4094"},
		{"bench latency --vid 5 --pcp 8", "--pcp 8: want 0 to 7"},
		{"bench latency --pcp 1", "--pcp and --dei are parts of a tag"},
		{"bench latency --mtu 10", "--mtu 10: want 46 to 65535"},
		{"bench latency --pin 0,1", "--pin: the fabric's nodes share one process"},
		{"bench latency --link ring --pin x,y", `--pin "x,y": want auto, none, or cores of`},
		{"bench latency --link fabric --interface eth0", "--link fabric is in memory"},
		{"bench latency --interface eth0", "which node is this? Give --node, 0 to 1"},
		{"bench latency --node 2", "--node 2: want 0 to 1, or more --nodes"},
		{"bench latency --node -1", "--node -1: want 0 to 1, or more --nodes"},
		{"bench latency --node 0 --interface eth0 --mtu 9000", "--mtu is for the fabric and for namespaces; set a real interface's with: ip link set eth0 mtu 9000"},
		{"bench latency --node 0 --mtu 9000", "ip link set NAME mtu 9000"},
		{"bench put --node 0 --interface eth0,eth1", "--interface eth0,eth1: names 2 (want 1, one for each network)"},
		{"bench latency --node 0 --timeout 0s", "--timeout 0s: want more than 0"},
		{"bench latency --beside udp", "--beside: there is no IP in memory"},
		{"bench latency --link ring --beside x", `"x": want udp, tcp or udp,tcp`},
		{"bench latency --size 4,9000 --iters 10", "--size 9000: too large: 9000 bytes, at most 1480 fit"},
		{"bench latency --size 1481 --iters 10", "at most 1480 fit (a larger --mtu, or bench put, which writes any length)"},
		{"bench rate --link ring --mtu 1400 --size 1381", "--size 1381: too large: 1381 bytes, at most 1380 fit"},
		{"bench logp --iters 0", "--iters 0: want 1 to"},
		{"bench logp --window 5", "unknown flag: --window"},
		{"bench bandwidth --window 0", "--window 0: want 1 to 1024"},
		{"bench bandwidth --batch 0", "--batch 0: want 1 to 1024"},
		{"bench rate --batch 2000", "--batch 2000: want 1 to 1024"},
		{"bench latency --batch 2", "unknown flag: --batch"},
		{"barrier", "which? ("},
		{"barrier nonsense", `unknown verb "nonsense"`},
		{"barrier show --algo nonsense", "there is no \"nonsense\" (there are: shuffle, tree:K,"},
		{"barrier show --algo tree:1", `"1": want a number of 2 to`},
		{"barrier show --nodes 0", "--nodes 0: want 1 to 5000"},
		{"barrier show --nodes 5001", "--nodes 5001: want 1 to 5000"},
		{"barrier show --nics 65", "--nics 65: want 1 to 64"},
		{"barrier show --nics 0", "--nics 0: want 1 to 64"},
		{"barrier show --nics 2 --algo stripe:2:star", `--nics 2: algorithm "stripe:2:star" says itself how many`},
		{"barrier show --rank 8", "--rank 8: want 0 to 7"},
		{"barrier show --rank 1 --svg x", "--rank is for text and JSON"},
		{"barrier show --nodes 513 --svg x", "--svg with --nodes 513: want 1 to 512"},
		{"barrier show --svg -", "--svg -: want the name of a file (standard output has the text; a file called - is ./-)"},
		{"route optimise --topology flat:2 --pattern alltoall --out -", "--out -: want the name of a file"},
		{"sim vbft --experiment fig9 --plot -", "--plot -: want the name of a file"},
		{"bench latency --iters 1 --capture -", "--capture -: want the name of a file"},
		{"bench latency --link shm --iters 1 --capture -", "--capture -: want the name of a file"},
		{"key -", "FILE -: want the name of a file"},
		{"barrier show --os -1us", "--os -1µs: want 0 to 1s"},
		{"barrier show --l 2", `--l "2": want a time with its unit`},
		{"barrier show --nodes 4000 --algo repeated:4000:repeated:4000:repeated:4000:repeated:4000:repeated:4000:shuffle:star:star:star:star:star", "too many levels?"},
		{"route vlans", "--topology: which network?"},
		{"route vlans --topology vbft:2x2", "vbft takes 3 numbers, not 2 (there are: flat:HOSTS,"},
		{"route vlans --topology flat:2 --format xml", `--format "xml": want one of table, cisco, bridge, yaml, json`},
		{"route vlans --topology flat:2 --format bridge --port-name foo", `--port-name: port name "foo": want a name with one %d`},
		{"route vlans --topology flat:2 --paths 2", "--paths is for --compute"},
		{"route vlans --topology flat:2 --compute --paths -1", "--paths -1: want 1 or more"},
		{"route vlans --topology flat:2 --compute --first-vid 4095", "--first-vid 4095: want 1 to 4094"},
		{"route vlans --topology flat:2 --compute --first-vid 4000 --max-vlans 96", "--max-vlans 96: want 1 to 95, from VID 4000 on"},
		{"route vlans --topology flat:2 --compute --tries 1025", "--tries 1025: want 1 to 1024"},
		{"sim", "which? (vbft, mcd, mbcf or cenju)"},
		{"sim mcd --nodes 4", "--nodes without --algo: the figures have hosts of their own"},
		{"sim mcd --algo shuffle --nodes 65", `--nodes: "65" hosts (want 2 to 64)`},
		{"sim mcd --algo tre:2", "did you mean tree:2 or tree:3 or"},
		{"sim mbcf --json --csv", "--json and --csv: want one of the two"},
		{"sim mbcf 5", `unexpected argument "5"`},
		{"sim vbft", `--experiment "": want one of fig9, fig11`},
		{"sim vbft --experiment fig10", `--experiment "fig10": want one of fig9, fig11; did you mean fig11?`},
		{"sim vbft --experiment fig9 --iterations 5", "--iterations is for fig11"},
		{"sim vbft --experiment fig11 --barrier", "--barrier is for fig9"},
		{"sim vbft --experiment fig9 --seconds 0", "--seconds 0: want 0.01 to 1800"},
		{"sim vbft --experiment fig9 --seconds NaN", "--seconds NaN: want 0.01 to 1800"},
		{"sim vbft --experiment fig9 --queue 5", "--queue 5: want 1542, a full frame, to"},
		{"sim vbft --experiment fig9 --window 5", "--window 5: want 1448, what a frame carries, to"},
		{"sim vbft --experiment fig9 --rate fast", `--rate: rate "fast": want bits per second`},
		{"sim vbft --experiment fig9 --rate 5K", "--rate 5K: want 1M to 1T"},
		{"sim vbft --experiment fig9 --topology flat:16", "--topology flat:16: it has 1 VIDs (want two at least)"},
		{"sim vbft --experiment fig9 --topology vbft:3x2x1", "it has 3 hosts (want an even number)"},
		{"sim vbft --experiment fig9 --topology vbft:0x2x1", `topology "vbft:0x2x1"`},
		{"sim vbft --experiment fig9 --topology vbft:4x4x4@1K", "host node0: a rate of 1K (want 1M to 1T)"},
		{"sim vbft --experiment fig11 --topology vbft:2x2x1", "it has 2 hosts (want one of [4 16 64 256])"},
		{"sim vbft --experiment fig11 --iterations 0", "--iterations 0: want 1 to 1000"},
		{"sim vbft --experiment fig11 --compute -1s", "--compute -1s: want 0 to 1s"},
		{"sim cenju --experiment fig12", `--experiment "fig12": want one of throughput, sweep, latency`},
		{"sim cenju --json --csv", "--json and --csv: want one of the two"},
		{"sim cenju --csv", "--csv: of which --experiment? (one of throughput, sweep, latency)"},
		{"sim cenju --experiment sweep --plot x", "--plot is for throughput"},
		{"sim cenju --plot -", "--plot -: want the name of a file"},
		{"sim cenju --size 1M", "--size 1048576: want 64 to 131072"},
		{"sim cenju --fifo 100", "bad machine: FIFO of 100 bytes (want 512, a packet, to 65536)"},
		{"sim cenju --network 0", "bad machine: Network of 0 MB/s (want 1 to 100000)"},
		{"node", "which node is this?"},
		{"node --node 0 --link fabric", "--link fabric is in memory"},
		{"node --node 0 --stay -1s", "--stay -1s: want 0 or more"},
		{"ping", "which node? (want its number)"},
		{"ping x", `node "x": want a number, 0 to 65534`},
		{"ping 0", "node 0: is the one that asks"},
		{"ping 2", "node 2: there are 2 nodes (give more --nodes)"},
		{"ping 2 --interface eth0 --node 0", "node 2: there are 2 nodes (give more --nodes)"},
		{"ping 1 --interface eth0 --node 1", "node 1: is the one that asks"},
		{"ping 1 --vid 4095", "--vid 4095: want 0 (priority only) to 4094"},
		{"ping 1 --vid -1", "--vid -1: want 0 (priority only) to 4094"},
		{"ping 1 --vids 1,x", `"x": want VIDs of 0 (priority only) to 4094, ranges such as 2-5, or untagged`},
		{"ping 1 --vids 5-2", `"5-2": want VIDs`},
		{"ping 1 --vid 1 --all-vids", "--vid, --vids and --all-vids: want one of them"},
		{"ping 1 --pcp 8", "--pcp 8: want 0 to 7"},
		{"ping 1 --pcp 1", "--pcp is part of a tag: give --vids, too"},
		{"ping 1 --count 0", "--count 0: want 1 to"},
		{"ping 1 --size 15", "--size 15: want 16 or more"},
		{"ping 1 --size 0", "--size 0: want 16 or more"},
		{"ping 1 --size 1481", "--size 1481: too large: 1481 bytes, at most 1480 fit"},
		{"matrix --size 99999", "--size 99999: too large: 99999 bytes, at most 1480 fit"},
		{"ping 1 --wait 999us", "--wait 999µs: want 1ms or more"},
		{"matrix --nodes 1", "--nodes 1: want 2 to 250"},
		{"matrix --rate -1s", "--rate -1s: want 0 or more"},
		{"matrix --check --rate 1s", "--rate and --check: want one of the two"},
		{"route show --managers=", "--managers: empty (want a value, or leave the flag out)"},
		{"route log --managers=", "--managers: empty"},
		{"bench latency --key-file=", "--key-file: empty"},
		{"run --hosts= true", "--hosts: empty"},
		{"testbed up --name=", `--name "": want up to 32 letters`},
		{"key a b", `unexpected argument "b"`},
		{"ping 1 2", `unexpected argument "2"`},
		{"dump x y", `unexpected argument "y"`},
		{"route diff x y z", `unexpected argument "z"`},
		{"route show x --tls-cert x --tls-key x --tls-ca x", "--tls-cert, --tls-key and --tls-ca: are for managers"},
		{"route diff x y --tls-ca x", "--tls-cert, --tls-key and --tls-ca: are for managers"},
		{"route show --manager unix:/none --node 3", "--node: is for a plan's file"},
		{"matrix x", `unexpected argument "x"`},
		{"manager --failover --mac 02:00:00:00:00:01", "--failover: by which interface? (give --interface in place of --mac)"},
		{"dump", "want one capture file"},
		{"dump x --payload -1", "--payload -1: want 0 or more"},
		{"dump x --ethertype 5", "--ethertype 0x0005: want 0x0600 or more"},
		{"switch eth0", "a switch needs two ports at least"},
		{"switch eth0 eth0", "port eth0: given twice"},
		{"switch eth0 eth1:access=0", `VID "0": want 1 to 4094, or a range such as 2-5`},
		{"switch eth0 eth1:trunk=", `VID "": want 1 to 4094`},
		{"switch eth0 eth1:trunk=1,5-2", `VID "5-2": want 1 to 4094`},
		{"switch eth0 eth1:trunk=1-4095", `VID "1-4095": want 1 to 4094`},
		{"switch eth0 eth1:trunk=1-2-3", `VID "1-2-3": want 1 to 4094`},
		{"switch eth0 eth1:access=1,2", "want INTERFACE, INTERFACE:access=VID"},
		{"switch eth0 eth1:access=1-2", "want INTERFACE, INTERFACE:access=VID"},
		{"switch eth0 eth1:other=1", "want INTERFACE, INTERFACE:access=VID"},
		{"switch eth0 eth1:other", "want INTERFACE, INTERFACE:access=VID"},
		{"switch eth0 :trunk=1", "want INTERFACE, INTERFACE:access=VID"},
		{"switch eth0 eth1 --ageing 0s", "want more than 0"},
		{"bench latency --manager unix:/x", "--manager: is of one node: give --node"},
		{"bench latency --node 0 --manager unix:/x --vid 5", "--vid and --manager: want one of the two"},
		{"bench latency --node 0 --manager nonsense", `manager address "nonsense" (want unix:PATH or HOST:PORT)`},
		{"manager --mac x", `--mac: MAC "x": not an address`},
		{"manager --mac 01:00:5e:00:00:01", "--mac 01:00:5e:00:00:01: no station's address (want this node's)"},
		{"manager --mac 00:00:00:00:00:00", "--mac 00:00:00:00:00:00: no station's address"},
		{"manager --mac 02:00:00:00:00:01 --interface eth0", "--mac and --interface: want one of the two"},
		{"manager --mac 02:00:00:00:00:01 --socket= ", "neither --socket nor --listen: no client could reach it"},
		{"manager --mac 02:00:00:00:00:01 --tls-cert x", "TLS wants all of --tls-cert, --tls-key and --tls-ca"},
		{"manager --mac 02:00:00:00:00:01 --failover", "--failover: by which interface?"},
		{"manager --mac 02:00:00:00:00:01 --tls-cert x --tls-key x --tls-ca x", "--tls-cert, --tls-key and --tls-ca are for --listen"},
		{"manager --mac 02:00:00:00:00:01 --discard-state", "--discard-state: of which file? (give --state)"},
		{"manager --mac 02:00:00:00:00:01 --key-file x", "--key-file authenticates a failover's probes: give --failover, too"},
		{"grant --check x --rules y", "--check and --rules: want one of the two"},
		{"grant --check x --socket y", "--check and --socket: want one of the two"},
		{"grant --check x --json", "--check and --json: want one of the two"},
		{"route log --manager unix:/x --tls-cert x --tls-key x --tls-ca x", "--tls-cert, --tls-key and --tls-ca are for TCP"},
		{"route status --managers unix:/x,unix:/y --tls-cert x --tls-key x --tls-ca x", "--tls-cert, --tls-key and --tls-ca are for TCP"},
		{"manager extra", `unexpected argument "extra"`},
		{"manager --mac 02:00:00:00:00:01 --listen x", `--listen "x": want HOST:PORT`},
		{"manager --mac 02:00:00:00:00:01 --listen-read-only :99999", `--listen-read-only ":99999": want HOST:PORT`},
		{"route apply", "want one plan's file"},
		{"route apply x --lease 2m", "--lease 2m0s: want 1ms to 1m0s"},
		{"route rollback", "which managers? Give --managers, a file or a list"},
		{"route rollback --managers nonsense", `manager address "nonsense" (want unix:PATH or HOST:PORT), and there is no such file`},
		{"route log --manager nonsense", `--manager: manager address "nonsense"`},
		{"route show x --manager unix:/x", `unexpected argument "x"`},
		{"route control", "which network? Give --topology"},
		{"route control --topology vbft:0x1x1", "vbft:0x1x1"},
		{"route control --topology vbft:2x2x2 --managers unix:/x --period -1s", "--period -1s: want 10ms to 24h0m0s"},
		{"route control --topology vbft:2x2x2 --managers unix:/x --period 1000000h", "--period 1000000h0m0s: want 10ms to 24h0m0s, or 0 for 1s"},
		{"route control --topology vbft:2x2x2 --managers unix:/x --period 1ns", "--period 1ns: want 10ms to 24h0m0s, or 0 for 1s"},
		{"route control --topology vbft:2x2x2 --managers unix:/x --hysteresis 61", "--hysteresis 61: want 0 to 60"},
		{"route control --topology vbft:2x2x2 --managers http://x:7", `manager address "http://x:7": is a URL (want unix:PATH or HOST:PORT)`},
		{"bench barrier --work 1000000h", "--work 1000000h0m0s: want 0 to 1s"},
		{"bench barrier --peer-timeout 1ns", "--peer-timeout 1ns: want 1ms or more"},
		{"bench barrier --mpi-transport shm", "--mpi-transport: is for --compare-mpi"},
		{"bench barrier --table x --algo shuffle,tree:3", "--table x: is for --algo auto (shuffle,tree:3 is given)"},
		{"node --node 0 --manager unix:/x --pcp 3", "--pcp and --dei are parts of a tag: the manager's routes have their own"},
		{"tune --ranks x", `--ranks: "x": want whole numbers`},
		{"tune --ranks 2,,3", `--ranks: "": want whole numbers`},
		{"route control --topology vbft:2x2x2 --managers unix:/x --gain NaN", "--gain NaN: want 0 or more, and less than 1"},
		{"route control --topology vbft:2x2x2 --managers unix:/x --gain 1", "--gain 1: want 0 or more, and less than 1"},
		{"route control --topology vbft:2x2x2 --managers unix:/x --hysteresis -1", "--hysteresis -1"},
		{"route control --topology vbft:2x2x2 --managers unix:/x --max-changes -1", "--max-changes -1"},
		{"run", "which program?"},
		{"run -n 0 true", "-n 0: want 1 to 250"},
		{"run --nics 9 true", "--nics 9: want 1 to 8"},
		{"run --link shm --mtu 9000 true", "--mtu: is for network interfaces (not with --link shm)"},
		{"run --hosts x -n 0 true", "-n 0: want 1 or more"},
		{"testbed", "which? (up, down, exec or list)"},
		{"testbed up --name a/b", `--name "a/b": want up to 32 letters`},
		{"testbed up --nodes 0", "--nodes 0: want 1 to 250"},
		{"testbed exec x true", `node "x": want a number`},
		{"testbed exec 0 --name x", "--name: stands before the node's number"},
		{"testbed exec 0", "want a node's number and a program"},
	} {
		t.Run(c.args, func(t *testing.T) {
			out, errs, status := Command(t, strings.Fields(c.args)...)
			if status != cli.ExitMisused {
				t.Errorf("exit status %d, want %d", status, cli.ExitMisused)
			}
			line, rest, _ := strings.Cut(errs, "\n")
			if !strings.HasPrefix(line, "rawlane") || !strings.Contains(line, c.want) || !strings.HasPrefix(rest, "Usage: rawlane") {
				t.Errorf("said\n%swant a line with %q, and the usage", errs, c.want)
			}
			if out != "" && c.args != "" {
				t.Errorf("printed %q", out)
			}
		})
	}
}

// Flags whose values are texts of any kind say that one is missing, and no word of package pflag's.
func TestMisuse_TextIsMissing(t *testing.T) {
	for _, args := range []string{"demo --interface", "bench latency --hostfile", "dump --port"} {
		_, errs, status := Command(t, strings.Fields(args)...)
		if status != cli.ExitMisused || !strings.Contains(errs, ": a value is missing\n") {
			t.Errorf("%s: status %d, %s", args, status, errs)
		}
	}
}

// A port that somebody has is told with what helps.
func TestFailures_PortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, errs, status := Command(t, "proxy", "--tcp", taken.Addr().String(), "--to", "1:x", "--node", "0")
	if status != cli.ExitFailed || !strings.Contains(errs, "(another process listens there: end that one, or") {
		t.Errorf("status %d, %s", status, errs)
	}
}

// A node that the host file does not list, or more nodes than it lists, are refused before the others are looked for.
func TestMisuse_NodeThatIsNotListed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, []byte("0 127.0.0.1:7001\n1 127.0.0.1:7002\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"ping 2":                               "node 2: " + file + " lists 2 nodes",
		"proxy --tcp 127.0.0.1:0 --to 2:redis": `--to "2:redis": ` + file + " lists 2 nodes",
		"barrier trace --late 2:1ms":           "--late 2:1ms: " + file + " lists 2 nodes",
		"tune --ranks 2,3":                     "--ranks 3: want 2 to the number of nodes (2)",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var out, errs bytes.Buffer
		words := append(strings.Fields(args), "--link", "udp", "--node", "0", "--hostfile", file)
		status := cli.Execute(ctx, cli.NewRoot(verbs), words, strings.NewReader(""), &out, &errs)
		if status != cli.ExitMisused || !strings.Contains(errs.String(), want+"\n") {
			t.Errorf("%s: status %d, %s", args, status, &errs)
		}
	}
}

// What fails though the command line was right ends with 1 and one line that says what to do.
func TestFailures(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"bench latency --capture /nonexistent/file --iters 10", "--capture /nonexistent/file: no such file or directory"},
		{"bench latency --node 0 --hostfile /nonexistent", "--hostfile /nonexistent: no such file or directory (want a line for each node, such as 0 10.0.0.1:7401"},
		{"bench latency --node 0 --hostfile /", "/: is a folder (want a file with a line for each node)"},
		{"route check /nonexistent", "plan /nonexistent: no such file or directory (rawlane route optimise --out makes one"},
		{"route apply /nonexistent --managers unix:/x", "plan /nonexistent: no such file or directory (rawlane route optimise"},
		{"route load /nonexistent", "plan /nonexistent: no such file or directory (rawlane route optimise"},
		{"route optimise --topology vbft:2x2x2 --traffic /nonexistent", `--traffic /nonexistent: no such file or directory (want a file with a flow in each line, such as "0>8 1G")`},
		{"manager --mac 02:00:00:00:00:01 --plan /nonexistent", "--plan: plan /nonexistent: no such file or directory (rawlane route optimise"},
		{"barrier show --svg /nonexistent/file", "--svg /nonexistent/file: no such file or directory (want a file in a folder that is there"},
		{"barrier show --svg /", "--svg /: is a directory"},
		{"sim vbft --experiment fig9 --topology /nonexistent", "/nonexistent"},
		{"dump /nonexistent", "open /nonexistent: no such file or directory"},
		{"dump main.go", "(want a file of --capture, or of tcpdump -w)"},
		{"dump -", "not a capture: it has fewer than four bytes"},
		{"manager --mac 02:00:00:00:00:01 --socket /proc/none/s", "(want a folder that is there and that this user may write to: --socket chooses)"},
		{"key /nonexistent/k", "no such file or directory (want a file in a folder that is there and that you may write to)"},
		{"manager --mac 02:00:00:00:00:01 --state /nonexistent/s", "state /nonexistent/s: open /nonexistent/s.lock: no such file or directory (want a file in a folder that is there"},
		{"route show --manager unix:/nonexistent", "no such file or directory (is a manager running there?)"},
		{"doctor --interface nonexistent", "nonexistent: no such interface (there are: "},
		{"run /nonexistent", `program "/nonexistent": no such file or directory`},
		{"run no-such-program", `program "no-such-program": not found in PATH (want its path, as ./no-such-program)`},
		{"run --hosts /nonexistent -n 251 true", "--hosts /nonexistent: no such file or directory (want a line for each host: NAME, NAME:SLOTS"},
		{"run --hosts testdata/hosts --remote-shell /nonexistent true", `--remote-shell: exec: "/nonexistent": stat /nonexistent: no such file or directory`},
		{"run --hosts testdata/hosts --remote-shell false true", "host node1: exit status 1\n"},
		{"testbed down --name none-of-that-name", "there is none (rawlane testbed up --name none-of-that-name)"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
			out, errs, status := Command(t, strings.Fields(c.args)...)
			if status != cli.ExitFailed || !strings.HasPrefix(errs, "rawlane") || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
				t.Errorf("status %d, said\n%swant status %d and one line with %q", status, errs, cli.ExitFailed, c.want)
			}
			if out != "" {
				t.Errorf("printed %q", out)
			}
		})
	}
}

// An argument that is empty, as a variable of a script is that is not set, is none; those of a program
// are its own.
func TestMisuse_EmptyArgument(t *testing.T) {
	for want, args := range map[string][]string{
		"which file?":            {"key", ""},
		"which program?":         {"run", "-n", "1", ""},
		"which node?":            {"ping", ""},
		"want one plan's file":   {"route", "check", ""},
		"--key-file: empty":      {"run", "--key-file", "", "true"},
		"want one capture file,": {"dump", ""},
	} {
		if _, errs, status := Command(t, args...); status != cli.ExitMisused || !strings.Contains(errs, want) {
			t.Errorf("%q: status %d, %s", args, status, errs)
		}
	}
	if _, errs, status := Command(t, "run", "--link", "shm", "-n", "1", "test", ""); status != cli.ExitFailed {
		t.Errorf("an empty argument of a program: status %d, %s", status, errs)
	}
}
