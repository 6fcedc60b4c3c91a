//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The twins are what a Go programmer writes otherwise: a ping-pong with package net. They are this
// program, started anew with these words before the arguments.
const twinPrefix = "twin-"

// twinPort is the port that an echo listens on.
const twinPort = "7778"

// twin is twin-echo NETWORK IP or twin-ping NETWORK IP SIZE ITERS.
func twin(args []string) {
	var err error
	switch {
	case len(args) == 3 && args[0] == twinPrefix+"echo":
		err = twinEcho(args[1], net.JoinHostPort(args[2], twinPort))
	case len(args) == 5 && args[0] == twinPrefix+"ping":
		err = twinPing(args[1], net.JoinHostPort(args[2], twinPort), args[3], args[4])
	default:
		err = errors.New("this is not meant to be run by hand")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "twin:", err)
		os.Exit(1)
	}
}

func twinEcho(network, address string) error {
	if network == "udp" {
		c, err := net.ListenPacket(network, address)
		if err != nil {
			return err
		}
		fmt.Println("ready")
		b := make([]byte, 2048)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return err
			}
			if _, err := c.WriteTo(b[:n], from); err != nil {
				return err
			}
		}
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	c, err := l.Accept() // TCP_NODELAY is Go's default
	if err != nil {
		return err
	}
	_, err = io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c}) // without splice(2), which is for bulk
	return err
}

func twinPing(network, address, sizeText, itersText string) error {
	size, err1 := strconv.Atoi(sizeText)
	iters, err2 := strconv.Atoi(itersText)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	c, err := net.Dial(network, address)
	if err != nil {
		return err
	}
	b := make([]byte, size)
	h := hdrhistogram.New(1, int64(10*time.Second), 3)
	for i := range iters + iters/10 {
		start := time.Now()
		if _, err := c.Write(b); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, b); err != nil {
			return err
		}
		if i >= iters/10 { // those before warm up
			if err := h.RecordValue(int64(time.Since(start) / 2)); err != nil {
				return err
			}
		}
	}
	_, err = fmt.Println(h.Min(), h.ValueAtQuantile(50), h.ValueAtQuantile(99), h.Max())
	return err
}
