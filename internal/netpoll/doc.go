// Package netpoll lets goroutines sleep until a link's socket has something for them.
package netpoll
