// Package room sees to it that packages of others have what they do not look for themselves.
package room
