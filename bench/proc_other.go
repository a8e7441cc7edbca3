//go:build !linux

package main

import "time"

type memory struct{ resident, private float64 }

var errLinuxOnly = &skipped{"it is measured on Linux only"}

func memoryOf(int) (memory, error)       { return memory{}, errLinuxOnly }
func cpuTime(int) (time.Duration, error) { return 0, errLinuxOnly }
func messageInPi(*lab) ([]figure, error) { return nil, errLinuxOnly }
func hookInPi(*lab) ([]figure, error)    { return nil, errLinuxOnly }
func startOfPi(*lab) ([]figure, error)   { return nil, errLinuxOnly }
