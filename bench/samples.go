package main

import (
	"math"
	"slices"
	"time"
)

// samples are measurements of one thing, in one unit.
type samples []float64

// quantile returns the smallest sample that is not below a share q of them:
// with few samples the 99th percentile is the worst.
func (s samples) quantile(q float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

func (s samples) p50() float64 { return s.quantile(0.50) }
func (s samples) p99() float64 { return s.quantile(0.99) }

// ms is a duration as the samples hold it.
func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
