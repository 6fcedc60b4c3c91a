package topology

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Rate is bits per second, in each of the two directions of a cable.
type Rate float64

// Common rates.
const (
	Mbps Rate = 1e6
	Gbps Rate = 1e9
)

// units are the units of rates, the largest first. The exponent is that of ten.
var units = []struct {
	letter   string
	exponent int
}{{"T", 12}, {"G", 9}, {"M", 6}, {"K", 3}, {"", 0}}

// ParseRate reads a rate as String writes it: a positive number, and K, M, G or T for thousands of
// bits per second and so on. 2.5G is two and a half gigabits per second.
func ParseRate(s string) (Rate, error) {
	for _, u := range units {
		number, ok := strings.CutSuffix(s, u.letter)
		if !ok || strings.Trim(number, "0123456789.") != "" {
			continue
		}
		f, err := strconv.ParseFloat(number+"e"+strconv.Itoa(u.exponent), 64)
		if err == nil && Rate(f).Valid() {
			return Rate(f), nil
		}
	}
	return 0, fmt.Errorf("rate %q: want bits per second as 100M, 1G or 2.5G", s)
}

// String formats r as 1G, in the largest unit that keeps it exact.
func (r Rate) String() string {
	for _, u := range units {
		scaled := float64(r) / math.Pow10(u.exponent)
		if math.Abs(scaled) < 1 && u.exponent > 0 {
			continue
		}
		s := strconv.FormatFloat(scaled, 'f', -1, 64) + u.letter
		if back, err := ParseRate(s); err == nil && back == r {
			return s
		}
	}
	return strconv.FormatFloat(float64(r), 'f', -1, 64)
}

// Valid reports whether a cable may have that rate.
func (r Rate) Valid() bool { return r > 0 && !math.IsInf(float64(r), 0) }
