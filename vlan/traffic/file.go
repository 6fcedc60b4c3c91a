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

// maxLine bounds a line of a file, in bytes, and maxFile the file: maxFlows lines.
const maxLine, maxFile = 1000, maxFlows * 32

// SyntaxError is one fault in a file, with its line.
type SyntaxError = strictyaml.SyntaxError

// Read reads the traffic among n nodes: a flow in each line. What follows # is a comment.
//
//	0>8 1G      node 0 sends 1 Gbit/s to node 8
//	2-9 500M    2 and 9 send 500 Mbit/s to each other
//
// Flows of the same ends add up. Errors: ErrInvalid, which joins a *SyntaxError for each of the
// first lines that are wrong; the reader's.
func Read(name string, r io.Reader, n int) (Matrix, error) {
	var m Matrix
	var faults []error
	lines := bufio.NewScanner(io.LimitReader(r, maxFile+1))
	lines.Buffer(nil, maxLine)
	bytes, line := 0, 0
	fault := func(msg string) {
		faults = append(faults, &SyntaxError{File: name, Line: line, Msg: msg, Kind: ErrInvalid})
	}
	for lines.Scan() && len(faults) < strictyaml.MaxFaults {
		line++
		if bytes += len(lines.Bytes()) + 1; bytes > maxFile {
			return nil, fmt.Errorf("%s: %w: more than %d bytes", name, ErrInvalid, maxFile)
		}
		text, _, _ := strings.Cut(lines.Text(), "#")
		flows, err := parseLine(text, n)
		if err != nil {
			fault(err.Error())
		}
		m = append(m, flows...)
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		line++
		fault(fmt.Sprintf("a line of more than %d bytes", maxLine))
	} else if lines.Err() != nil {
		return nil, fmt.Errorf("%s: %w", name, lines.Err())
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return m.Normalise(), nil
}

// parseLine returns the flows of a line: none, one, or one each way.
func parseLine(text string, n int) (Matrix, error) {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return nil, nil
	}
	if len(fields) != 2 {
		return nil, fmt.Errorf("%q: want two nodes and a rate: 0>8 1G, or both ways: 0-8 1G", strings.TrimSpace(text))
	}
	left, right, oneWay := strings.Cut(fields[0], ">")
	if !oneWay {
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
	if from == to || min(from, to) < 0 || max(from, to) >= n {
		return nil, fmt.Errorf("%q: want two different nodes of 0 to %d", fields[0], n-1)
	}
	if oneWay {
		return Matrix{{from, to, rate}}, nil
	}
	return Matrix{{from, to, rate}, {to, from, rate}}, nil
}
