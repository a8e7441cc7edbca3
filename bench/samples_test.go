package main

import "testing"

func TestQuantile(t *testing.T) {
	hundred := make(samples, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for _, c := range []struct {
		s    samples
		q    float64
		want float64
	}{
		{samples{7}, 0.5, 7},
		{samples{7}, 0.99, 7},
		{samples{3, 1, 2}, 0.5, 2},
		{samples{3, 1, 2}, 0.99, 3},
		{hundred, 0.5, 50},
		{hundred, 0.99, 99},
		{hundred, 0, 1},
	} {
		if got := c.s.quantile(c.q); got != c.want {
			t.Errorf("quantile(%v) of %d samples = %v, want %v", c.q, len(c.s), got, c.want)
		}
	}
}
