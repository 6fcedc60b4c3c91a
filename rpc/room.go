package rpc

import "context"

// roomContext is a caller's context that ends with the domain, too: a call waits for room with it.
// What that takes is made when a wait asks for it: most calls find room.
type roomContext struct {
	context.Context
	ended context.Context // the domain's
	both  context.Context // ends with either; nil: nobody has asked
	stop  func()
}

// Err returns why either has ended, or nil.
func (c *roomContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	return c.ended.Err()
}

// Done is closed when either ends.
func (c *roomContext) Done() <-chan struct{} {
	if c.Context.Done() == nil {
		return c.ended.Done()
	}
	if c.both == nil {
		both, cancel := context.WithCancel(c.Context)
		forget := context.AfterFunc(c.ended, cancel)
		c.both, c.stop = both, func() { forget(); cancel() }
	}
	return c.both.Done()
}

// free gives back what was made.
func (c *roomContext) free() {
	if c.stop != nil {
		c.stop()
	}
	*c = roomContext{}
}
