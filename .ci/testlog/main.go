// Command testlog reads the output of "go test -json", prints what a person wants to see of it (packages, their times, skipped
// tests with their reason), and closes with the failures, each with its output, their names, and a line of counts. A
// test that began and has no end has failed: its program was ended under it. With -no-skips a skipped test is a
// failure, unless it says that a program is not installed, or that it was asked to be short, or runs under the race detector.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds
}

type log struct {
	passed, failed, skipped, forbidden int
	output                             map[string][]string
	running                            map[string]bool
	failures, names                    []string // the last that is printed: where a log is read first
}

func (l *log) add(e event, noSkips bool) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output", "build-output":
		if strings.HasPrefix(e.Output, "=== ") {
			return
		}
		l.output[key] = append(l.output[key], e.Output)
		return
	case "run":
		l.running[key] = true
		return
	case "pass":
		if e.Test == "" {
			fmt.Printf("ok   %s %.0fs\n", e.Package, e.Elapsed)
		} else {
			l.passed++
		}
	case "fail", "build-fail":
		if e.Test != "" {
			l.failed++
		}
		l.fail(key)
	case "skip":
		if e.Test == "" {
			return
		}
		l.skipped++
		why := strings.Join(l.output[key], "")
		fmt.Printf("skip %s\n%s", key, why)
		if noSkips && !strings.Contains(why, "not installed") && !strings.Contains(why, "[short] skip") && !strings.Contains(why, "[race] skip") {
			l.forbidden++
		}
	default:
		return
	}
	delete(l.output, key)
	delete(l.running, key)
}

func (l *log) fail(key string) {
	l.failures = append(l.failures, fmt.Sprintf("FAIL %s\n%s", key, strings.Join(l.output[key], "")))
	l.names = append(l.names, "FAIL "+key+"\n")
}

// failRunning fails what began and has no end. What a program prints as it dies is the output of one of these.
func (l *log) failRunning() {
	for _, key := range slices.Sorted(maps.Keys(l.running)) {
		l.failed++
		l.fail(key)
	}
}

func main() {
	noSkips := flag.Bool("no-skips", false, "a skipped test is a failure")
	flag.Parse()
	l := log{output: map[string][]string{}, running: map[string]bool{}}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		var e event
		if json.Unmarshal(in.Bytes(), &e) != nil {
			fmt.Println(in.Text())
			continue
		}
		l.add(e, *noSkips)
	}
	l.failRunning()
	fmt.Print(strings.Join(append(l.failures, l.names...), ""))
	fmt.Printf("%d passed, %d failed, %d skipped\n", l.passed, l.failed, l.skipped)
	if l.forbidden > 0 {
		fmt.Printf("%d tests were skipped though we are root\n", l.forbidden)
	}
	if l.failed > 0 || l.forbidden > 0 || in.Err() != nil {
		os.Exit(1)
	}
}
