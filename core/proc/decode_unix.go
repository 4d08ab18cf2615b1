//go:build unix

package proc

func decodeConsole([]byte) (string, bool) { return "", false }
