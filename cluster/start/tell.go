package start

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/cluster/start/internal/pmi"
)

// tell gives each process what all say, in the order of their numbers. Node 0 puts it together: one
// server answers all, and n requests of each of n would take it minutes.
func (j *Job) tell(ctx context.Context, what, own string) ([]string, error) {
	key := func(kind string, k int) string { return fmt.Sprintf("rawlane-%s-%s-%d", what, kind, k) }
	if err := errors.Join(j.pmi.Put(ctx, key("of", j.Node), own), j.pmi.Fence(ctx)); err != nil {
		return nil, err
	}
	if j.Node == 0 {
		all, err := j.getAll(ctx, j.Size, func(k int) string { return key("of", k) })
		if err != nil {
			return nil, err
		}
		parts := pack(all)
		for k, part := range parts {
			err = errors.Join(err, j.pmi.Put(ctx, key("part", k), part))
		}
		if err = errors.Join(err, j.pmi.Put(ctx, key("parts", 0), strconv.Itoa(len(parts)))); err != nil {
			return nil, err
		}
	}
	if err := j.pmi.Fence(ctx); err != nil {
		return nil, err
	}
	text, err := j.pmi.Get(ctx, key("parts", 0))
	if err != nil {
		return nil, err
	}
	count, err := strconv.Atoi(text)
	if err != nil {
		return nil, err
	}
	parts, err := j.getAll(ctx, count, func(k int) string { return key("part", k) })
	if err != nil {
		return nil, err
	}
	return unpack(parts, j.Size)
}

func (j *Job) getAll(ctx context.Context, n int, key func(int) string) (all []string, err error) {
	for k := range n {
		value, err := j.pmi.Get(ctx, key(k))
		if err != nil {
			return nil, err
		}
		all = append(all, value)
	}
	return all, nil
}

// pack puts values into as few lines as it takes, each that is repeated with how often: "a*3,b".
// They have neither commas nor asterisks.
func pack(values []string) (lines []string) {
	line := ""
	for k := 0; k < len(values); {
		end := k + 1
		for end < len(values) && values[end] == values[k] {
			end++
		}
		word := values[k]
		if end-k > 1 {
			word += "*" + strconv.Itoa(end-k)
		}
		if line != "" && len(line)+1+len(word) > pmi.MaxValue {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += ","
		}
		line += word
		k = end
	}
	return append(lines, line)
}

// unpack returns the n values that are in lines.
func unpack(lines []string, n int) (values []string, err error) {
	for _, word := range strings.Split(strings.Join(lines, ","), ",") {
		value, times, repeated := strings.Cut(word, "*")
		count := 1
		if repeated {
			count, err = strconv.Atoi(times)
		}
		if err != nil || count < 1 || count > n-len(values) {
			return nil, fmt.Errorf("PMI: not the %d values of a job: %w", n, pmi.ErrProtocol)
		}
		values = append(values, slices.Repeat([]string{value}, count)...)
	}
	if len(values) != n {
		return nil, fmt.Errorf("PMI: %d of %d values: %w", len(values), n, pmi.ErrProtocol)
	}
	return values, nil
}
