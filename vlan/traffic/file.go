package traffic

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/vlan/internal/strictyaml"
	"github.com/rawlane/rawlane/vlan/topology"
)

// maxTrafficLine bounds a line of a traffic's file, in bytes, and maxTrafficFile the file: maxFlows lines.
const maxTrafficLine, maxTrafficFile = 1000, maxFlows * 32

// Read reads who sends how much to whom among n nodes: a flow in each line. What follows # is a comment.
//
//	0>8 1G      node 0 sends 1 Gbit/s to node 8
//	2-9 500M    2 and 9 send 500 Mbit/s to each other
//
// Flows of the same ends add up. Errors: ErrInvalid, with a SyntaxError for each of the
// first lines that are wrong; the reader's.
func Read(name string, r io.Reader, n int) (Matrix, error) {
	var t Matrix
	var faults []error
	lines := bufio.NewScanner(io.LimitReader(r, maxTrafficFile+1))
	lines.Buffer(nil, maxTrafficLine)
	bytes, line := 0, 0
	for lines.Scan() && len(faults) < strictyaml.MaxFaults {
		line++
		if bytes += len(lines.Bytes()) + 1; bytes > maxTrafficFile {
			return nil, fmt.Errorf("%s: %w: more than %d bytes", name, ErrInvalid, maxTrafficFile)
		}
		text, _, _ := strings.Cut(lines.Text(), "#")
		if strings.TrimSpace(text) == "" {
			continue
		}
		flows, err := parseFlows(text, n)
		if err != nil {
			faults = append(faults, &strictyaml.SyntaxError{File: name, Line: line, Msg: err.Error(), Kind: ErrInvalid})
		}
		t = append(t, flows...)
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		faults = append(faults, &strictyaml.SyntaxError{File: name, Line: line + 1, Msg: fmt.Sprintf("a line of more than %d bytes", maxTrafficLine), Kind: ErrInvalid})
	} else if lines.Err() != nil {
		return nil, fmt.Errorf("%s: %w", name, lines.Err())
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return t.Normalise(), nil
}

// parseFlows reads a line.
func parseFlows(text string, n int) (Matrix, error) {
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return nil, fmt.Errorf("%q: want two nodes and a rate: 0>8 1G, or both ways: 0-8 1G", strings.TrimSpace(text))
	}
	left, right, one := strings.Cut(fields[0], ">")
	if !one {
		left, right, _ = strings.Cut(fields[0], "-")
	}
	from, errFrom := strconv.Atoi(left)
	to, errTo := strconv.Atoi(right)
	if errFrom != nil || errTo != nil {
		return nil, fmt.Errorf("%q: want two nodes: 0>8, or both ways: 0-8", fields[0])
	}
	rate, err := topology.ParseRate(fields[1])
	if err != nil {
		return nil, err
	}
	flows := Matrix{{from, to, rate}}
	if !one {
		flows = append(flows, Flow{to, from, rate})
	}
	if from == to || min(from, to) < 0 || max(from, to) >= n {
		return nil, fmt.Errorf("%q: want two different nodes of 0 to %d", fields[0], n-1)
	}
	return flows, nil
}
