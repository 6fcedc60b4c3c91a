//go:build !race

package race

// Release does nothing here.
func Release[T any](*T) {}

// Acquire does nothing here.
func Acquire[T any](*T) {}
