// Command redis is a Redis client, go-redis, unchanged but for its dialer, and a small server of
// the same protocol.
//
//	go run ./examples/redis                                   both nodes in this process
//	go build ./examples/redis && rawlane run -n 2 ./redis     a process for each, on kernel links
//
// Package bothways starts both ends and compares them: begin a program of your own with
// examples/web.
package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rawlane/rawlane/examples/bothways"
)

func main() { bothways.Main(time.Minute, serve, ask(bothways.Rounds)) }

func serve(listen bothways.Listen) (stop func(), err error) {
	l, err := listen("6379")
	if err != nil {
		return nil, err
	}
	s := &server{values: make(map[string]string)}
	bothways.Serving("redis", func() error {
		for {
			c, err := l.Accept()
			if err != nil {
				return err
			}
			go s.serve(c) // until the client closes
		}
	})
	return func() { _ = l.Close() }, nil
}

func ask(rounds int) func(context.Context, bothways.Way) error {
	return func(ctx context.Context, w bothways.Way) error {
		client := redis.NewClient(&redis.Options{Addr: w.Addr("6379"), Dialer: w.Dial, Protocol: 2,
			DisableIdentity: true, MaintNotificationsConfig: nil})
		defer func() { _ = client.Close() }()
		value := strings.Repeat("v", 64)
		if err := client.Set(ctx, "key", value, 0).Err(); err != nil {
			return err
		}
		if got, err := client.Get(ctx, "no such key").Result(); err == nil {
			return fmt.Errorf("a key that is not there is %q", got)
		} else if !errors.Is(err, redis.Nil) {
			return fmt.Errorf("a key that is not there: %w", err)
		}
		return w.Latency("Redis, GET", rounds, func() error {
			got, err := client.Get(ctx, "key").Result()
			if err == nil && got != value {
				return fmt.Errorf("%q, want %q", got, value)
			}
			return err
		})
	}
}
