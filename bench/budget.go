package main

import "fmt"

// figure is one line of the table.
type figure struct {
	what        string
	unit        string // ms, MB, %
	ours, floor samples
	budget      []limit
}

// limit is what the design allows.
type limit struct {
	text string
	met  func(figure) bool
}

// p50Within allows a multiple of the floor's median.
func p50Within(times float64) limit {
	return limit{fmt.Sprintf("p50 ≤ %g×", times), func(f figure) bool { return f.ours.p50() <= times*f.floor.p50() }}
}

// p99Within allows a multiple of the floor's 99th percentile.
func p99Within(times float64) limit {
	return limit{fmt.Sprintf("p99 ≤ %g×", times), func(f figure) bool { return f.ours.p99() <= times*f.floor.p99() }}
}

// under bounds the median itself.
func under(most float64, unit string) limit {
	return limit{"p50 < " + show(most, unit), func(f figure) bool { return f.ours.p50() < most }}
}

// worstUnder bounds the 99th percentile itself.
func worstUnder(most float64, unit string) limit {
	return limit{"p99 < " + show(most, unit), func(f figure) bool { return f.ours.p99() < most }}
}

// show writes a value with three digits or so.
func show(v float64, unit string) string {
	switch {
	case v != v:
		return "–"
	case v == 0:
		return "0 " + unit
	case v < 0.1 && v > -0.1:
		return fmt.Sprintf("%.3f %s", v, unit)
	case v < 10 && v > -10:
		return fmt.Sprintf("%.2f %s", v, unit)
	}
	return fmt.Sprintf("%.1f %s", v, unit)
}
